"""One day of who runs the gateway in Kubernetes: deploys, rotates a key, finds why a request failed, sees that memory is
short before a client gets 529, and rolls back.

    day.py ROOT CREOLE HELM PROMTOOL
"""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pod
import yaml
from client import Checks, send, until
from upstream import Upstream

CLIENTS, METRICS = "127.0.0.1:8787", "127.0.0.1:9787"
OLD, NEW, OTHER = ("key-of-team-" + end * 8 for end in "abc")
CONFIG = {
    "upstreams": {"default": {"url": "http://vllm.models:8000", "profile": "vllm", "key": {"file": "/etc/creole/keys/vllm"}}},
    "client_keys": [{"file": f"/etc/creole/keys/{name}", "name": name} for name in ("team-a", "team-b")],
    "buffered_bytes_max": 4 << 20,
}
# Envoy, whose histograms have the same names, takes whole numbers.
LINTS = re.compile(r'creole_\w+_(milliseconds|microseconds) use base unit "seconds" instead of "\1"')


def ask(key, word="text", stream=False, **more):
    body = {"model": "m", "max_tokens": 64, "stream": stream, "messages": [{"role": "user", "content": f"do:{word} "}]}
    return send(CLIENTS, "/v1/messages", json.dumps(body), {"x-api-key": key}, **more)


def exposition(accept):
    return send(METRICS, "/metrics", None, {"accept": accept}, "GET").text


def gauge(name):
    return float(re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", exposition("text/plain"), re.MULTILINE)[1])


def deploy(check, one):
    one.start()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        check(f"deploy: {probe}", one.probe(probe) == 200, one.log.read_text())
    check("deploy: its user", set(one.status("Uid") + one.status("Gid")) == {"65534"}, str(one.status("Uid")))
    check("deploy: no capability", one.status("CapEff") == one.status("CapPrm") == ["0" * 16], str(one.status("CapEff")))
    check("deploy: gets no privileges", one.status("NoNewPrivs") == ["1"])
    check("deploy: a client with a key", ask(OLD).ended(), one.log.read_text())
    check("deploy: a client without one", ask("sk-other").status == 401)


def rotate(check, one, keys, upstream):
    """Keys change while an answer runs."""
    running = []
    before = gauge("creole_gateway_config_loaded_timestamp_seconds")
    thread = threading.Thread(target=lambda: running.append(ask(OLD, "slow", True)))
    thread.start()
    until("the stream", lambda: gauge("creole_gateway_streams_running") == 1)
    time.sleep(1)
    keys.update({"team-a": NEW + "\n", "vllm": "upstream-new\n"})
    pod.lay(one.volumes["keys"], "keys", keys)
    until("the new key", lambda: ask(NEW).status == 200)
    check("rotate: the old key is refused", ask(OLD).status == 401)
    check("rotate: the upstream gets its new key", upstream.seen[-1][1].get("authorization") == "Bearer upstream-new", str(upstream.seen[-1][1]))
    check("rotate: the gauge says when", gauge("creole_gateway_config_loaded_timestamp_seconds") > before)
    thread.join()
    # The upstream breaks off at its own end, after five seconds.
    check("rotate: the running answer goes on to its end", running[0].text.count("canary-upstream") == 51, running[0].text[-300:])


def find(check, one, root):
    """A client shows an error: its line has the cause, also the upstream that refuses Creole's key, which an alert tells."""
    for word, cause, outcome in [("401", "upstream_refused", "failed_operator"), ("429", "upstream_refused", "failed_upstream"), ("unfinished", "upstream_broke_off", "failed_upstream")]:
        got = ask(NEW, word, word == "unfinished")
        shown = re.search(r'"request_id":"(req_\w+)"', got.text)
        check(f"find: {word} shows an id", bool(shown), got.text)
        lines = until("the line", lambda: [json.loads(line) for line in one.log.read_text().splitlines() if shown[1] in line])
        check(f"find: {word}: its cause", [(line["cause"], line["outcome"]) for line in lines] == [(cause, outcome)], str(lines))
    filter = re.search(r"^jq -cR '(.*)' creole.log$", (root / "docs/alerts.md").read_text(), re.MULTILINE)[1]
    if shutil.which("jq"):
        done = subprocess.run(["jq", "-cR", filter, one.log], capture_output=True, text=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        check("find: the filter of docs/alerts.md shows it", [line["cause"] for line in found] == ["upstream_refused"], done.stdout + done.stderr)
    check("find: no key is in the log", not re.search(r"key-of-team|upstream-(old|new)", one.log.read_text()))


def upload(key, size):
    """A client that sends the first bytes of a body, and then waits."""
    connection = socket.create_connection(("127.0.0.1", 8787))
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 10.0.0.7\r\nx-api-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {2 * size}\r\n\r\n"
    connection.sendall(head.encode() + b" " * size)
    return connection


def memory(check):
    """Bodies of two teams fill the memory: the alert's condition holds before anybody gets 529."""
    share = lambda: gauge("creole_gateway_held_bytes") / gauge("creole_gateway_held_bytes_max")
    refused = lambda: 'status="529"' in exposition("text/plain")
    waiting, seen = [], 0
    while not refused() and len(waiting) < 100:
        seen = max(seen, share())
        waiting.append(upload((NEW, OTHER)[len(waiting) % 2], 100_000))
        time.sleep(0.05)
    check("memory: the gauge is above the alert's limit before 529", seen > 0.4, str(seen))
    check("memory: then somebody gets 529", refused(), f"{len(waiting)} {share()}")
    for connection in waiting:
        connection.close()
    until("the memory", lambda: share() < 0.1)
    check("memory: later requests are answered", ask(NEW).ended())


def back(check, one, config):
    """A configuration with a mistake changes nothing, and the one before comes back."""
    pod.lay(one.volumes["config"], "config", {"creole.json": config.replace("profile", "profil")})
    until("the refusal", lambda: gauge("creole_gateway_config_reload_failed") == 1)
    check("back: the mistake is named", "profil: " in one.log.read_text(), one.log.read_text()[-500:])
    check("back: requests are answered", ask(NEW).ended() and one.probe("readinessProbe") == 200)
    pod.lay(one.volumes["config"], "config", {"creole.json": config})
    until("the former one", lambda: gauge("creole_gateway_config_reload_failed") == 0)
    check("back: requests are answered with the former one", ask(NEW).ended())


def metrics(check, root, promtool):
    text = exposition("text/plain")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if not LINTS.fullmatch(line)]
    check("promtool takes the metrics", not said, str(said))
    there = set(re.findall(r"^(\w+)[ {]", text, re.MULTILINE))
    for file in ("deploy/prometheus/creole.rules.yaml", "deploy/kubernetes/manifests/creole.yaml"):
        named = set(re.findall(r"\b(?:creole|process)_[a-z_]+", (root / file).read_text()))
        check(f"{file}: names gauges", len(named) > 1, str(named))
        check(f"{file}: its metrics are there", named <= there, str(named - there))


def gone(check, one, upstream):
    """The upstream is gone: no new requests, but the process lives."""
    upstream.shutdown()
    upstream.server_close()
    # The gateway keeps an idle connection for four seconds, and its thread here goes on.
    time.sleep(5)
    check("gone: the client reads why", ask(NEW).status == 502)
    until("the gauge", lambda: gauge("creole_gateway_upstream_reachable") == 0)
    check("gone: not ready", one.probe("readinessProbe") == 503)
    check("gone: but alive", one.probe("livenessProbe") == 200)
    one.process.terminate()
    check("gone: it stops by itself", one.process.wait(10) == 0)


def main(root, creole, helm, promtool):
    check, root = Checks(), pathlib.Path(root)
    folder = pathlib.Path(tempfile.mkdtemp())
    config, upstream = json.dumps(CONFIG), Upstream(8000)
    (folder / "creole.json").write_text(config)
    chart = root / "deploy/kubernetes/chart/creole"
    made = subprocess.run([helm, "template", "creole", chart, "--set-file", f"config={folder / 'creole.json'}"], capture_output=True, text=True, check=True)
    objects = {one["kind"]: one for one in yaml.safe_load_all(made.stdout)}
    one = pod.Pod(folder, creole, objects, "vllm.models")
    keys = {"team-a": OLD, "team-b": OTHER, "vllm": "upstream-old"}
    try:
        pod.lay(one.volumes["config"], "config", objects["ConfigMap"]["data"])
        pod.lay(one.volumes["keys"], "keys", keys)
        deploy(check, one)
        rotate(check, one, keys, upstream)
        find(check, one, root)
        memory(check)
        back(check, one, config)
        metrics(check, root, promtool)
        gone(check, one, upstream)
    finally:
        one.remove()
        shutil.rmtree(folder)
    return check.close()


if __name__ == "__main__":
    if not pod.enter([sys.executable, "-B", *sys.argv]):
        print("without root, unshare, setpriv and ip no pod was started\n0 passed, 0 failed")
        sys.exit(0)
    sys.exit(main(*sys.argv[1:]))
