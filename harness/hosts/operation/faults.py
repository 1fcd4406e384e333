"""Envoy's configuration changes under load, and its VM traps: what becomes of the streams.

    faults.py ROOT ENVOY FILTER FILTER_WITH_HOOKS FOLDER

The listener comes from a file that Envoy watches. Each version of Creole's configuration gives the
upstream another model's name, which the upstream says in its answer; so each answer tells which
version served it.
"""

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import yaml
from client import Checks, send, until
from upstream import Handler, Upstream, chunk

RAW = {
    "name": "envoy.transport_sockets.raw_buffer",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"},
}
LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener"
PIECES = 30


class Telling(Handler):
    """Says the model's name, at once (`do:text`) or over three seconds (`do:long`)."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        request = json.loads(body)
        if not request.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": request["model"]}, "finish_reason": "stop"}
            self.reply(200, json.dumps({"id": "c", "choices": [choice]}))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for _ in range(PIECES):
                self.piece(chunk({"content": request["model"] + " "}))
                time.sleep(0.1)
            self.piece(chunk({}, "stop"))
            self.wfile.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        except OSError:
            pass

    def piece(self, value):
        data = f"data: {json.dumps(value)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def ask(address, stream, headers=None):
    message = {"role": "user", "content": "hi"}
    body = json.dumps({"model": "m", "max_tokens": 99, "stream": stream, "messages": [message]})
    return send(address, "/v1/messages", body, headers)


def said(got):
    """The words of a whole answer, or nothing where it is not whole."""
    if not got.ended():
        return []
    if "event-stream" not in got.headers["content-type"]:
        return json.loads(got.body)["content"][0]["text"].split()
    lines = [line[6:] for line in got.text.splitlines() if line.startswith("data: ") and "text_delta" in line]
    return "".join(json.loads(line)["delta"]["text"] for line in lines).split()


class Envoy:
    """A real Envoy whose listener can be changed while it runs."""

    def __init__(self, root, binary, wasm, folder, upstream_port, workers):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.wasm, self.version = folder, wasm, 0
        self.address, self.admin = f"127.0.0.1:{free()}", f"127.0.0.1:{free()}"
        with open(f"{root}/envoy/envoy.yaml", encoding="utf-8") as template:
            self.template = template.read()
        self.values = {
            "LISTEN_ADDRESS": "127.0.0.1", "LISTEN_PORT": self.address.split(":")[1],
            "ADMIN_ADDRESS": "127.0.0.1", "ADMIN_PORT": self.admin.split(":")[1],
            "UPSTREAM_HOST": "127.0.0.1", "UPSTREAM_PORT": str(upstream_port),
            "UPSTREAM_TRANSPORT": json.dumps(RAW), "WASM_PATH": wasm, "SECRET_NAMES": "[]",
        }
        bootstrap, _ = self.render({})
        bootstrap["node"] = {"id": "test", "cluster": "test"}
        source = {"path": f"{folder}/listeners.json"}
        bootstrap["dynamic_resources"] = {"lds_config": {"resource_api_version": "V3", "path_config_source": source}}
        del bootstrap["static_resources"]["listeners"]
        self.publish()
        with open(f"{folder}/envoy.json", "w", encoding="utf-8") as file:
            json.dump(bootstrap, file)
        with open(f"{folder}/log", "wb") as log:
            command = [binary, "-c", f"{folder}/envoy.json", "--disable-hot-restart", "--concurrency", str(workers)]
            command += ["--log-level", "warning", "--drain-time-s", "20"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def render(self, config):
        text = self.template
        for name, value in {**self.values, "CREOLE_CONFIG": json.dumps(config)}.items():
            text = text.replace("{{" + name + "}}", value)
        document = yaml.safe_load(text)
        return document, document["static_resources"]["listeners"]

    def publish(self, config=None):
        """The next version: its model's name is `v` and its number."""
        self.version += 1
        config = config or {"models": {"*": {"model": f"v{self.version}"}}}
        _, listeners = self.render(config)
        resources = [{"@type": LISTENER, **listener} for listener in listeners]
        path = f"{self.folder}/listeners.json"
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"version_info": str(self.version), "resources": resources}, file)
        os.replace(path + ".new", path)  # Envoy sees a file that is moved, not one that is written

    def statistics(self):
        try:
            with urllib.request.urlopen(f"http://{self.admin}/stats", timeout=5) as page:
                lines = page.read().decode().splitlines()
        except OSError:
            return {}
        pairs = (line.rsplit(": ", 1) for line in lines if ": " in line)
        return {name: int(value) for name, value in pairs if value.isdigit()}

    def answers(self):
        try:
            return bool(said(ask(self.address, False)))
        except OSError:
            return False

    def log(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def close(self):
        self.process.terminate()
        self.process.wait(20)


def free():
    """A port below those that the system gives to clients, so that no connection takes it meanwhile."""
    while True:
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", random.randrange(10_000, 30_000)))
            except OSError:
                continue
            return listener.getsockname()[1]


def reload(check, envoy):
    """Eight versions while clients ask: each answer is whole and of one version that was in force."""
    until("Envoy", envoy.answers)
    in_force, wrong, counts, lock = [1], [], {}, threading.Lock()
    stop = threading.Event()

    def client(stream):
        while not stop.is_set():
            oldest = in_force[-1]
            try:
                words = said(got := ask(envoy.address, stream))
            except OSError as error:
                words, got = [], error
            newest = envoy.version
            versions = set(words)
            whole = len(words) == (PIECES if stream else 1)
            number = int(words[0][1:]) if len(versions) == 1 else -1
            right = whole and oldest <= number <= newest
            with lock:
                counts[stream] = counts.get(stream, 0) + 1
                if not right:
                    text = getattr(got, "text", got)
                    wrong.append(f"stream {stream}: {versions}, {oldest} to {newest}: {str(text)[-200:]}")

    clients = [threading.Thread(target=client, args=[number % 3 > 0]) for number in range(12)]
    for one in clients:
        one.start()
    for _ in range(7):
        time.sleep(1)
        envoy.publish()
        now = f"v{envoy.version}"
        until(f"version {now}", lambda: said(ask(envoy.address, False)) == [now])
        # The workers take a new listener one after the other.
        until(f"version {now} on all workers", lambda: all(said(ask(envoy.address, False)) == [now] for _ in range(8)))
        in_force.append(envoy.version)
    last = envoy.version
    envoy.publish({"guards": {"pairing": "mend"}})
    refused = until("the refusal", lambda: envoy.statistics().get("listener_manager.lds.update_rejected", 0))
    time.sleep(1)
    stop.set()
    for one in clients:
        one.join(60)
    print(f"8 versions under load: {counts.get(True, 0)} streams and {counts.get(False, 0)} whole answers, {len(wrong)} wrong")
    check("no answer is wrong while the configuration changes", not wrong, "\n".join(wrong[:10]))
    check("there was load", counts.get(True, 0) > 20 and counts.get(False, 0) > 50, counts)
    check("a bad version is rejected", refused == 1, refused)
    check("and named in the log", "guards.pairing: expected one of repair" in envoy.log(), envoy.log()[-500:])
    check("and the good one stays", said(ask(envoy.address, False)) == [f"v{last}"], last)


def trap(check, envoy):
    """One VM traps: its worker's streams break, the others go on, and all workers serve again."""
    until("Envoy", envoy.answers)
    # Both workers must have streams.
    results, lock = [], threading.Lock()

    def client():
        got = ask(envoy.address, True)
        with lock:
            results.append(got)

    streams = [threading.Thread(target=client) for _ in range(24)]
    for one in streams:
        one.start()
    time.sleep(1)
    trapped = ask(envoy.address, False, {"x-test-hook": "trap"})
    since = time.monotonic()
    until("an answer of every worker", lambda: all(envoy.answers() for _ in range(20)))
    seconds = time.monotonic() - since
    for one in streams:
        one.join(60)
    whole = [got for got in results if got.ended()]
    broken = [got for got in results if not got.complete or got.error() is not None or "message_stop" not in got.text]
    print(
        f"one VM of two trapped: {len(whole)} streams went on to their end, {len(broken)} broke; the request that "
        f"did it got {trapped.status}; all workers answered {seconds:.1f} s later"
    )
    check("the request that traps fails", trapped.status in (500, 503), f"{trapped.status} {trapped.text[:200]}")
    check("as an error of the API", trapped.error() == "api_error", trapped.text[:300])
    check("streams of the other worker are whole", whole and all(len(said(got)) == PIECES for got in whole), len(whole))
    check("streams of that worker break, and none ends as if it were whole", broken and len(whole) + len(broken) == 24, len(broken))
    check("all workers serve again within five seconds", seconds < 5, seconds)
    reloaded = sum(value for name, value in envoy.statistics().items() if name.endswith("vm_reload_success"))
    check("Envoy counts a reload", reloaded >= 1, reloaded)
    # And again: a VM is replaced as often as it must be.
    for _ in range(3):
        time.sleep(1.2)
        ask(envoy.address, False, {"x-test-hook": "trap"})
    until("an answer of every worker", lambda: all(envoy.answers() for _ in range(20)))
    check("it serves after four traps", said(ask(envoy.address, True)) == ["v1"] * PIECES)


def main(root, binary, wasm, hooks, folder):
    check = Checks()
    upstream = Upstream(0)
    upstream.RequestHandlerClass = Telling
    port = upstream.server_address[1]
    for name, test, module in (("reload", reload, wasm), ("trap", trap, hooks)):
        envoy = Envoy(root, binary, module, f"{folder}/{name}", port, workers=2)
        try:
            check.run(name, lambda test=test, envoy=envoy: test(check, envoy))
            check("Envoy is alive", envoy.process.poll() is None, envoy.log()[-800:])
        finally:
            envoy.close()
    return check.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
