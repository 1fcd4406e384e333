"""The deployment manifests: each is well formed, its configuration is one that Creole reads, its
statistics have the labels of `envoy/envoy.yaml`, and Envoy takes its configuration, with and without TLS,
as the template and the recipes of `docs/envoy.md` say it. Behind Istio and Envoy Gateway conversations stay on their
replicas.

    manifests.py ROOT CREOLE ENVOY WASM TLS AUTHORITIES

TLS is the transport socket of `cargo xtask run`, AUTHORITIES the file of roots on this machine.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml
import replicas
from client import Checks, send, until

RAW = {
    "name": "envoy.transport_sockets.raw_buffer",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"},
}


def members(value, name):
    """Every value of this key, at any depth."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key == name:
                yield member
            yield from members(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from members(member, name)


def commented(template):
    """The transport socket with TLS that the template's comment shows."""
    comment = re.sub(r"\n# +", " ", template)
    return re.search(r"where HOST is UPSTREAM_HOST: (\{.*?\}) \(all in one line", comment)[1]


def guard(document):
    """Policies of `creole-guard` in a document, without the names of clusters of models."""
    found = [rules for rules in members(document, "policies") if "condition" in rules.get("creole_route", {})]
    return [re.sub(r'"upstream"|"vllm"|"outbound[^"]*"', '"MODELS"', json.dumps(one, sort_keys=True)) for one in found]


def hashed(documents):
    """The headers by which a control plane's objects choose a replica."""
    return [
        header
        for one in members(documents, "consistentHash")
        for header in [one.get("httpHeaderName"), *(each["name"] for each in one.get("headers", []))]
        if header
    ]


def stays(folder, envoy, filled, name, header):
    places, sessions = replicas.spread(folder, envoy, filled, name, header)
    assert places == [1] * replicas.SESSIONS, f"replicas of each session: {places}"
    assert all(sessions), f"sessions of each replica: {sessions}"


def recipes(page):
    """Creole's configuration and the commands of each recipe of a page: what follows `json` is `sh`."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    for (kind, document), (_, commands) in zip(blocks, blocks[1:]):
        if kind == "json" and "creole envoy-config" in commands:
            yield document, commands


def sides(page):
    """The configuration that a page's difference begins with, and the one that it leads to."""
    difference = re.search(r"```diff\n(.*?)```", page, re.DOTALL)[1].splitlines()
    return ("\n".join(line[1:] for line in difference if not line.startswith(other)) for other in "+-")


def answers(folder, creole, envoy, wasm):
    """Starts an Envoy as `creole envoy-config` says, in front of the demo model, with a key for clients."""
    ports = [replicas.free_port() for _ in range(3)]
    model, listen, admin = [f"127.0.0.1:{port}" for port in ports]
    path, log = folder / "finished.yaml", folder / "finished.log"
    flags = ["--upstream", f"http://{model}/v1", "--client-key-env", "TEAM_KEY", "--model", "demo"]
    flags += ["--listen", listen, "--admin", admin, "--wasm", wasm]
    path.write_text(subprocess.run([creole, "envoy-config", *flags], capture_output=True, text=True, check=True).stdout)
    body = json.dumps({"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "demo:say Hello."}]})
    keys = {**os.environ, "TEAM_KEY": "sk-team"}
    with log.open("w") as written:
        demo = [creole, "demo", "--listen", "127.0.0.1:0", "--model-listen", model]
        started = [subprocess.Popen(demo, stdout=written, stderr=written)]
        proxy = [envoy, "-c", path, "--disable-hot-restart"]
        started.append(subprocess.Popen(proxy, env=keys, stdout=written, stderr=written))
    try:
        until("Envoy listens", lambda: all(map(replicas.listens, ports)), 60)
        # Without the guard, the second request that is let in would get 500.
        for key, status, says in [("team", 200, "Hello."), ("other", 401, "authentication_error"), ("team", 200, "Hello.")]:
            got = send(listen, "/v1/messages", body, {"x-api-key": f"sk-{key}"})
            assert got.status == status and says in got.text, f"{got.text} {log.read_text()[-800:]}"
    finally:
        for process in started:
            process.kill()
            process.wait()


def rendered(root, wasm, config, transport=json.dumps(RAW)):
    values = {
        "LISTEN_ADDRESS": "127.0.0.1", "LISTEN_PORT": "0", "ADMIN_ADDRESS": "127.0.0.1", "ADMIN_PORT": "0",
        "UPSTREAM_HOST": "localhost", "UPSTREAM_PORT": "1", "UPSTREAM_TRANSPORT": transport,
        "WASM_PATH": wasm, "SECRET_NAMES": "[]", "CREOLE_CONFIG": config,
    }
    text = (root / "envoy/envoy.yaml").read_text()
    return re.sub(r"\{\{([A-Z_]+)\}\}", lambda found: values[found[1]], text)


def main(root, creole, envoy, wasm, tls, authorities):
    check, root = Checks(), pathlib.Path(root)
    folder = pathlib.Path(tempfile.mkdtemp())

    def validated(name, text):
        path = folder / f"{name}.yaml"
        path.write_text(text)
        return subprocess.run([envoy, "--mode", "validate", "-c", path], capture_output=True, text=True)

    def accepted(name, document):
        path = folder / "creole.json"
        path.write_text(json.dumps(document))
        done = subprocess.run([creole, "check-config", path], capture_output=True, text=True)
        check(f"{name}: its configuration", done.returncode == 0, done.stderr)

    good = rendered(root, wasm, "{}")
    done = validated("good", good)
    check("Envoy takes envoy.yaml", done.returncode == 0 and "OK" in done.stderr + done.stdout, done.stderr[-500:])
    check("Envoy refuses a wrong one", validated("wrong", good.replace("codec_type: AUTO", "codec_typo: AUTO")).returncode != 0)
    documented = commented((root / "envoy/envoy.yaml").read_text())
    roots = "/etc/ssl/certs/ca-certificates.crt"
    for name, transport in {"run": tls, "envoy.yaml": documented.replace("HOST", "api.openai.com").replace(roots, authorities)}.items():
        done = validated("tls", rendered(root, wasm, "{}", transport))
        check(f"Envoy takes TLS as {name} says it", done.returncode == 0, done.stderr[-500:])
        check(f"{name}: whose certificate it is is checked", "auto_sni_san_validation" in transport, transport)
    check("the template says where roots are", roots in documented, documented)
    found = list(recipes((root / "docs/envoy.md").read_text()))
    check("docs/envoy.md has both recipes", len(found) == 2, str(len(found)))
    for number, (document, commands) in enumerate(found):
        recipe = folder / str(number)
        recipe.mkdir()
        (recipe / "creole.json").write_text(document)
        (recipe / "dist").mkdir()
        (recipe / "dist/creole.wasm").symlink_to(wasm)
        (recipe / "bin").mkdir()
        (recipe / "bin/envoy").symlink_to(envoy)
        (recipe / "bin/creole").symlink_to(creole)
        commands = commands.replace("envoy -c", "envoy --mode validate -c")
        # What stands for a key is refused as none.
        commands = commands.replace("sk-…", "sk-own")
        # As the page sets them in a clone.
        own = {"WASM": str(recipe / "dist/creole.wasm"), "SSL_CERT_FILE": authorities}
        paths = {**os.environ, **own, "PATH": f"{recipe}/bin:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-ec", commands], cwd=recipe, env=paths, capture_output=True, text=True)
        said = done.stderr + done.stdout + (recipe / "envoy.log").read_text()
        check(f"docs/envoy.md: recipe {number}", done.returncode == 0 and "OK" in said, said[-500:])
    before, after = sides((root / "docs/envoy.md").read_text())
    check("docs/envoy.md: the filter is only in what the change leads to", "creole" not in before and "root_id: creole" in after)
    for name, text in {"before": before, "after": after.replace("dist/creole.wasm", wasm)}.items():
        done = validated(name, text)
        check(f"docs/envoy.md: Envoy takes what is {name} the change", done.returncode == 0, done.stderr[-500:])
    check("docs/envoy.md: the change has the guard", guard(yaml.safe_load(after)) == guard(yaml.safe_load(good)), after)
    check.run("what envoy-config prints answers", lambda: answers(folder, creole, envoy, wasm))
    tags = sorted(map(str, next(members(yaml.safe_load(good), "stats_tags"))))
    # From here on, what only a cluster could run.
    for name, kinds in {
        "istio": ["WasmPlugin", "VirtualService", "DestinationRule", "EnvoyFilter"],
        "envoy-gateway": ["EnvoyExtensionPolicy", "ClientTrafficPolicy", "BackendTrafficPolicy", "HTTPRoute"],
        "higress": ["WasmPlugin"],
    }.items():
        documents = list(yaml.safe_load_all((root / f"envoy/deploy/{name}.yaml").read_text()))
        check(f"{name}: its objects", [one["kind"] for one in documents] == kinds, str(kinds))
        text = json.dumps(documents)
        check(f"{name}: never fails open", "FAIL_OPEN" not in text and '"failOpen": true' not in text)
        # In Higress the route is that of an Ingress, which is not here.
        removed = [header for headers in members(documents, "remove") for header in headers]
        check(f"{name}: Creole's own header stays", removed == ["x-creole-upstream"] or name == "higress", str(removed))
        keys = ["pluginConfig", "config"]
        configs = [one for key in keys for one in members(documents, key) if isinstance(one, dict)]
        check(f"{name}: has a configuration", len(configs) == 1, str(configs))
        for config in configs:
            accepted(name, config)
            # These cannot let heads wait for bodies.
            check(f"{name}: heads do not wait", config["pause_headers"] is False and len(config["upstreams"]) == 1)
            # Elsewhere the plugin is only on its own route; here the client's Host would choose who gets the key.
            if name == "istio":
                urls = [f"http://{host}" for hosts in members(documents, "hosts") for host in hosts]
                held = [one for one in config["upstreams"].values() if isinstance(one.get("key"), dict)]
                check(f"{name}: a key stays with its host", all(one.get("url") in urls for one in held), str(held))
        told = [name for names in members(documents, "session_headers") for name in names]
        check(f"{name}: hashes the header that the filter sets", hashed(documents) == told, str(told))
        for header in hashed(documents):
            [config] = [json.loads(json.dumps(one)) for one in configs]
            for upstream in config["upstreams"].values():
                upstream["key"] = "none"
            filled = rendered(root, wasm, json.dumps(config))
            check.run(f"{name}: a conversation stays on its replica", lambda: stays(folder, envoy, filled, name, header))
        # Where there is no place for the guard, the filter does not wait for it.
        guards = guard(documents)
        check(f"{name}: its guard", guards == (guard(yaml.safe_load(good)) if name == "istio" else []), str(guards))
        for config in configs:
            check(f"{name}: waits for its guard", config.get("check_route", True) is bool(guards), str(config))
        # Higress sets the limit of streams for all of its gateway: its file says where.
        limits = [one.get("max_concurrent_streams") or one.get("maxConcurrentStreams") for key in ["http2_protocol_options", "http2"] for one in members(documents, key)]
        check(f"{name}: limits the streams of a connection", limits == [100] or name == "higress", str(limits))
        labels = list(members(documents, "stats_tags"))
        check(f"{name}: has labels", bool(labels) == (name == "istio"), str(labels))
        for found in labels:
            check(f"{name}: labels", sorted(map(str, found)) == tags, str(found))
    service = (root / "gateway/deploy/creole.service").read_text().replace("/usr/local/bin/creole", creole)
    (folder / "creole.service").write_text(service)
    flags = re.search(r"^ExecStart=\S+ serve (.*)$", service, re.MULTILINE)[1].split()
    container = (root / "gateway/deploy/Containerfile").read_text()
    flags += json.loads(re.search(r"^CMD (.*)$", container, re.MULTILINE)[1])[1:]
    known = subprocess.run([creole, "serve", "--help"], capture_output=True, text=True).stdout
    for flag in [flag for flag in flags if flag.startswith("--")]:
        check(f"gateway: {flag}", f" {flag} " in known, known)
    analyze = shutil.which("systemd-analyze")
    if analyze:
        done = subprocess.run([analyze, "verify", folder / "creole.service"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        check("systemd takes creole.service", "creole.service" not in done.stderr, done.stderr)
    else:
        print("systemd-analyze is not on this machine: creole.service was not looked at by systemd")
    shutil.rmtree(folder)
    return check.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
