"""Conversations and replicas behind a control plane: a real Envoy with a manifest's own configuration of Creole, and with
the route and the cluster that the control plane makes of its objects."""

import collections
import json
import pathlib
import socket
import subprocess

import yaml
from client import send, until
from upstream import Handler, Upstream

SESSIONS, TURNS, REPLICAS = 24, 3, 3
# Clients name a session in different headers.
NAMES = ["x-claude-code-session-id", "session-id", "x-session-id"]
MAGLEV = {
    "name": "envoy.load_balancing_policies.maglev",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.maglev.v3.Maglev"},
}
# What they make of an object that asks for a hash by Maglev.
CLUSTERS = {
    "istio": {"lb_policy": "MAGLEV"},
    "envoy-gateway": {
        "per_connection_buffer_limit_bytes": 32768,
        "load_balancing_policy": {"policies": [{"typed_extension_config": MAGLEV}]},
    },
}


class Chunked(Handler):
    """Reads a body without a length: the head had to leave before the body was known."""

    def do_POST(self):
        while size := int(self.rfile.readline(), 16):
            self.rfile.read(size + 2)
        self.rfile.readline()
        with self.server.lock:
            self.server.seen.append(self.headers)
        self.do_text(False)


def holders(value, name):
    """Every object that has this key, at any depth."""
    if isinstance(value, dict) and name in value:
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from holders(each, name)


def endpoint(port):
    return {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def document(template, plane, header, port, replicas):
    """The template as the control plane would write it."""
    envoy = yaml.safe_load(template)
    [filter_config] = holders(envoy, "allow_on_headers_stop_iteration")
    filter_config["allow_on_headers_stop_iteration"] = False
    [listener] = envoy["static_resources"]["listeners"]
    listener["address"]["socket_address"]["port_value"] = port
    [one] = [route for routes in holders(envoy, "routes") for route in routes["routes"]]
    one["route"]["hash_policy"] = [{"header": {"header_name": header}}]
    [cluster] = envoy["static_resources"]["clusters"]
    cluster.update({"type": "STATIC", **CLUSTERS[plane]})
    cluster.pop("dns_lookup_family", None)
    cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [endpoint(each) for each in replicas]}]
    return envoy


def spread(folder, envoy, template, plane, header):
    """On how many replicas each session was, and how many sessions each replica had."""
    replicas = [Upstream(0) for _ in range(REPLICAS)]
    for replica in replicas:
        replica.RequestHandlerClass = Chunked
    port = free_port()
    path = pathlib.Path(folder) / f"{plane}.json"
    ports = [replica.server_port for replica in replicas]
    path.write_text(json.dumps(document(template, plane, header, port, ports)))
    # Two workers must come to the same choice.
    started = subprocess.Popen(
        [envoy, "-c", path, "--disable-hot-restart", "--concurrency", "2", "-l", "off"], stderr=subprocess.DEVNULL
    )
    try:
        until(f"Envoy for {plane} listens", lambda: started.poll() is None and listens(port))
        for turn in range(TURNS):
            for session in range(SESSIONS):
                ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"turn {turn}"}]}
                name = {NAMES[session % len(NAMES)]: f"session-{session}"}
                got = send(f"127.0.0.1:{port}", "/v1/messages", json.dumps(ask), name)
                assert got.status == 200, got.text
    finally:
        started.terminate()
        started.wait()
        for replica in replicas:
            replica.shutdown()
            replica.server_close()
    there = collections.defaultdict(set)
    for replica in replicas:
        for headers in replica.seen:
            there[headers[header]].add(replica.server_port)
    sessions = [sum(replica.server_port in ports for ports in there.values()) for replica in replicas]
    return sorted(map(len, there.values())), sessions


def listens(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
