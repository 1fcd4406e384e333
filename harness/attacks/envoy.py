"""Attacks on the filter in a stock Envoy.

    envoy.py ENVOY FILTER TEMPLATE FOLDER small|large

TEMPLATE is `envoy/envoy.yaml`. Each check starts an Envoy of its own with one worker, so that everyone shares its VM:
it must not trap, and no other stream may break. Needs PyYAML. Prints `ok NAME` or `FAIL NAME` for each check, and last
`N passed, N failed`.
"""
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

import yaml

from bombs import answer_bombs, long_requests, pauses, request_bombs
from http2 import PREFACE, frame, literal, literal_once
from rig import MIB, PAUSE_S, Checks, Process, Upstream, Watch, answers, ask, connect, free, head, message, post, until
from shares import silent
from watch import computed

ENVOY, FILTER, TEMPLATE, FOLDER, SIZE = sys.argv[1:6]
FILTERS = "type.googleapis.com/envoy.extensions.filters.http"
RAW = {
    "name": "envoy.transport_sockets.raw_buffer",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"},
}
KEY = "sk-client-0123456789abcdef"
check = Checks(FOLDER, SIZE)


class Envoy(Process):
    """Of the template; `change` edits the document: it gets the list of filters, the routes and the clusters. `streams`:
    so many of them on one connection."""

    def __init__(self, upstream, config=None, change=None, workers=1, streams=None, **secrets):
        self.port, self.admin = free(), free()
        with open(TEMPLATE, encoding="utf-8") as file:
            text = file.read()
        for name, value in {
            "LISTEN_ADDRESS": "127.0.0.1", "LISTEN_PORT": self.port,
            "ADMIN_ADDRESS": "127.0.0.1", "ADMIN_PORT": self.admin,
            "UPSTREAM_HOST": "127.0.0.1", "UPSTREAM_PORT": upstream.port, "UPSTREAM_TRANSPORT": json.dumps(RAW),
            "WASM_PATH": FILTER, "SECRET_NAMES": json.dumps(list(secrets)), "CREOLE_CONFIG": json.dumps({"log": "warn", **(config or {})}),
        }.items():
            text = text.replace("{{" + name + "}}", str(value))
        if streams:
            allowed = text.replace("max_concurrent_streams: 100", f"max_concurrent_streams: {streams}")
            assert allowed != text, "the template limits no streams"
            text = allowed
        document = yaml.safe_load(text)
        resources = document["static_resources"]
        manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        if change:
            change(manager["http_filters"], manager["route_config"]["virtual_hosts"][0]["routes"], resources["clusters"])
        path = f"{FOLDER}/{self.port}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        command = [ENVOY, "-c", path, "--disable-hot-restart", "--concurrency", str(workers)]
        super().__init__(
            [*command, "--log-level", "warning"], f"{FOLDER}/{self.port}.log", stdout=subprocess.DEVNULL,
            env={**os.environ, **secrets},
        )
        until("Envoy", self.is_ready, 60)

    def read(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=5) as page:
            return page.read().decode()

    def is_ready(self):
        assert self.alive(), self.log()[-1500:]
        try:
            connect(self.port, 1).close()
            return self.read("/ready").startswith("LIVE")
        except OSError:
            return False

    def is_whole(self):
        """Fails if a VM trapped since the start."""
        assert self.alive(), self.log()[-500:]
        answers(self.port)
        reloads = [
            line for line in self.read("/stats?filter=vm_reload").splitlines() if not line.endswith(": 0")
        ]
        assert not reloads, reloads
        traps = [line for line in self.log().splitlines() if "failed: Uncaught" in line or "Uncaught RuntimeError" in line]
        assert not traps, traps[0][-300:]


def cluster(name, port):
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    return {
        "name": name, "connect_timeout": "5s", "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
    }


def under_attack(envoy, upstream, attack, seconds=8.0, pause=0):
    """The attack, while five others have streams. They stand still for no longer than a thousand small requests take."""
    pause = pause or max(PAUSE_S, time_of_requests(envoy, 1000))
    with Watch(envoy, upstream, 5, seconds) as watch:
        said = attack()
        others = watch.end(pause)
    envoy.is_whole()
    return f"{said}; {others}"


def time_of_requests(envoy, count):
    """How long the host computes for so many small requests."""
    for _ in range(50):
        ask(envoy.port, post(message()))
    before = computed(envoy.pid)
    for _ in range(100):
        ask(envoy.port, post(message()))
    return (computed(envoy.pid) - before) / 100 * count


@check
def requests_of_small_things_break_no_stream(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    return under_attack(envoy, upstream, lambda: request_bombs(envoy, check.sized(8, 30) * MIB))


@check
def counts_of_small_things_break_no_stream(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    size = check.sized(4, 30) * MIB
    return under_attack(envoy, upstream, lambda: request_bombs(envoy, size, "/v1/messages/count_tokens"))


@check
def answers_of_small_things_break_no_stream(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    return under_attack(envoy, upstream, lambda: answer_bombs(envoy, check.sized(3, 7) * MIB), 14)


@check
def answers_of_a_messages_upstream_break_no_stream(start):
    upstream = start(Upstream(FOLDER))
    config = {
        "upstreams": {"native": {"protocol": "anthropic"}, "chat": {}},
        "models": {"do:message*": {"upstream": "native"}, "*": {"upstream": "chat"}},
    }
    envoy = start(Envoy(upstream, config))
    kinds = [("message_blocks", False), ("message_event", True)]
    return under_attack(envoy, upstream, lambda: answer_bombs(envoy, check.sized(3, 7) * MIB, kinds))


@check
def long_translations_do_not_hold_up_the_streams_of_others(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    said = pauses(envoy, upstream, long_requests(check.sized(8, 30) * MIB))
    envoy.is_whole()
    return said


@check
def events_that_do_not_end_trap_no_vm(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))

    def attack():
        clients = [connect(envoy.port) for _ in range(check.sized(60, 130))]
        for client in clients:
            client.sendall(post(message("do:line:7800000", True)))
        time.sleep(check.sized(5, 15))
        for client in clients:
            client.close()
        return f"{envoy.peak() / MIB:.0f} MiB"
    return under_attack(envoy, upstream, attack)


POSTED = b"\x83\x86" + literal_once(b":path", b"/v1/messages") + literal_once(b":authority", b"localhost")


def unfinished(port, count):
    """A connection of HTTP/2 with so many requests without an end, with heads of 30 kB for a few bytes each."""
    client = connect(port, 5)
    client.sendall(PREFACE + frame(4, 0, 0))
    fields = literal(b"x-a", b"b" * 3700) + b"\xbe" * 7
    for number in range(1, 2 * count, 2):
        # Pseudo-headers go first.
        head = POSTED + fields
        fields = b"\xbe" * 8
        try:
            client.sendall(frame(1, 4, number, head) + frame(0, 0, number, b"{"))
        except OSError:
            break
        if number % 61 == 0:
            silent(client)
    return client


def refused(envoy, status):
    """Requests that the filter has answered with this status, by Envoy's statistics."""
    lines = envoy.read("/stats?filter=creole_requests_total").splitlines()
    return sum(int(line.rsplit(":", 1)[1]) for line in lines if f"status={status};" in line)


@check
def requests_without_an_end_trap_no_vm_and_keep_nobody_out(start):
    upstream = start(Upstream(FOLDER))
    said = []
    for streams in (None, 1000):
        envoy = start(Envoy(upstream, {"buffered_bytes_max": check.sized(16, 256) * MIB}, streams=streams))

        def attack():
            clients = [unfinished(envoy.port, 1000) for _ in range(check.sized(6, 64))]
            statuses = [got.status if (got := ask(envoy.port, post(message()))) else "closed" for _ in range(30)]
            time.sleep(3)
            for client in clients:
                client.close()
            assert statuses == [200] * 30, statuses
            return f"{envoy.peak() / MIB:.0f} MiB"
        # The requests of one connection come at one moment, and others wait for them. Without an end, each takes less
        # than a whole one; half as much again is for noise.
        pause = max(PAUSE_S, 1.5 * time_of_requests(envoy, streams or 100))
        said.append(f"at most {pause:.2f} s")
        said.append(under_attack(envoy, upstream, attack, pause=pause))
        if streams:
            count = refused(envoy, 529)
            assert count > 1000, f"only {count} requests were refused and counted"
            said.append(f"{count} refused")
            lines = envoy.log().count('"overloaded"')
            assert lines <= 300, f"{lines} lines of refused requests"
    return "; ".join(said)


@check
def refusals_of_which_no_byte_is_taken_keep_no_memory(start):
    upstream = start(Upstream(FOLDER))
    config = {"upstreams": {"u": {"key": "none"}}, "client_keys": [{"env": "CLIENT"}], "buffered_bytes_max": 16 * MIB}
    envoy = start(Envoy(upstream, config, CLIENT="k"))
    clients, fields = [], literal(b"x-a", b"b" * 3700) + b"\xbe" * 6
    for _ in range(check.sized(8, 40)):
        clients.append(connect(envoy.port, 5))
        clients[-1].sendall(PREFACE + frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00"))
        for number in range(1, 200, 2):
            again = fields if number == 1 else b"\xbe" * 7
            clients[-1].sendall(frame(1, 4, number, POSTED + again) + frame(0, 1, number))
    time.sleep(2)
    got = ask(envoy.port, post(message(text="a" * 500_000)))
    ended, said = refused(envoy, 401), f"{envoy.peak() / MIB:.0f} MiB"
    assert got and got.status == 200, f"{got}; {said}"
    envoy.is_whole()
    for client in clients:
        client.close()
    until("their refusals", lambda: refused(envoy, 401) - ended >= 100 * len(clients))
    return f"{said}, {ended} had ended"


@check
def hundreds_of_streams_that_end_in_one_moment_trap_no_vm(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream, {"stall_timeout_ms": 4000, "first_byte_timeout_ms": 4000}))

    def attack():
        clients = [connect(envoy.port) for _ in range(check.sized(400, 1500))]
        for client in clients:
            client.sendall(post(message("do:hold", True)))
        time.sleep(7)
        answers = [client.recv(12) for client in clients]
        assert answers == [b"HTTP/1.1 504"] * len(clients), {answer: answers.count(answer) for answer in answers}
        return f"{len(clients)} streams"
    return under_attack(envoy, upstream, attack, 10)


@check
def an_attacker_who_goes_on_breaks_no_stream(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    bomb = post(b'{"model":"do:text","max_tokens":5,"messages":[],"tools":[' + b"{}," * 2_800_000 + b"{}]}")

    def attack():
        end, sent = time.monotonic() + check.sized(5, 20), 0
        while time.monotonic() < end:
            ask(envoy.port, bomb)
            sent += 1
            time.sleep(0.5)
        return f"{sent} times 8.4 MB"
    return under_attack(envoy, upstream, attack, check.sized(6, 22))


# Keys and prompts go to the chosen backend, and nowhere else.

def beside_a_site(site, only):
    """Creole's route, beside one that takes everything else."""
    def change(filters, routes, clusters):
        clusters.append(cluster("site", site.port))
        mine = routes[-1]
        mine["match"] = {"prefix": only}
        routes.append({"match": {"prefix": "/"}, "route": {"cluster": "site"}})
    return change


@check
def a_route_that_takes_everything_else_gets_no_prompt_and_no_key(start):
    upstream, site = start(Upstream(FOLDER)), start(Upstream(FOLDER))
    envoy = start(Envoy(upstream, change=beside_a_site(site, "/v1/messages")))
    for stream in (False, True):
        got = ask(envoy.port, post(message(stream=stream, text="a secret prompt"), headers=[f"x-api-key: {KEY}"]))
        arrived = site.seen()
        leaked = [one for one in arrived if KEY in one["head"] or "secret prompt" in one["body"]]
        assert not leaked, f"the site got {leaked[0]['head'][:80]!r}"
        assert got and got.status in (200, 404), got
    got = ask(envoy.port, head(None, path="/index.html", method="GET", headers=[]), method="GET")
    assert got and got.status == 200 and site.seen(), got


@check
def the_home_page_of_a_site_behind_the_same_listener_stays(start):
    upstream, site = start(Upstream(FOLDER)), start(Upstream(FOLDER))
    envoy = start(Envoy(upstream, change=beside_a_site(site, "/v1/messages")))
    for path in ("/", "/api/hello"):
        browser = ["user-agent: Mozilla/5.0", "accept: text/html"]
        got = ask(envoy.port, head(None, path=path, method="GET", headers=browser), method="GET")
        assert got and got.body != b"{}" and site.seen(), f"GET {path} is answered by the filter: {got}"


@check
def a_header_that_chooses_the_address_does_not_pass(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    names = ["x-envoy-original-dst-host", "x-creole-upstream", "x-original-url", "x-rewrite-url"]
    ask(envoy.port, post(message(), headers=["x-api-key: k", *[f"{name}: evil" for name in names]]))
    (arrived,) = upstream.seen()
    passed = [name for name in names if f"\n{name}: evil" in arrived["head"].lower()]
    assert not passed, passed


@check
def methods_that_show_or_tunnel_are_no_requests_and_never_show_the_key(start):
    upstream = start(Upstream(FOLDER))
    config = {"upstreams": {"u": {"url": upstream.url, "key": {"secret": "CREOLE_OPERATOR"}}}}
    envoy = start(Envoy(upstream, config, CREOLE_OPERATOR=KEY))
    for method in ("TRACE", "TRACK", "CONNECT"):
        got = ask(envoy.port, head(None, path="/v1/messages", method=method), method="POST")
        assert got is None or got.status >= 400, f"{method}: {got}"
        assert not upstream.seen(), f"{method} reached the upstream"
        # Other paths are Envoy's own business: they get no key of Creole.
        got = ask(envoy.port, head(None, path="/v1/do/echo_head", method=method), method="POST")
        assert got is None or KEY.encode() not in got.body, f"{method} shows the key"
        upstream.seen()


# Filters in front of Creole (CORS, compression, limits of rates) see all of its answers.

def marked(filters, routes, clusters):
    append = {"append": {"header": {"key": "x-in-front", "value": "1"}}}
    config = {"@type": f"{FILTERS}.header_mutation.v3.HeaderMutation", "mutations": {"response_mutations": [append]}}
    filters.insert(0, {"name": "in-front", "typed_config": config})


def passes_through_filters_in_front(start, config):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream, config, marked))
    missing = []
    for name, raw, method in (
        ("a whole answer", post(message()), "POST"),
        ("a short stream", post(message(stream=True)), "POST"),
        ("a stream", post(message("do:tick:20", True)), "POST"),
        ("an answer that is none", post(message("do:echo_head")), "POST"),
        ("a bad request", post(b"{"), "POST"),
        ("a path that is not there", post(b"{}", path="/v1/messages/x"), "POST"),
        ("a count", post(message(), path="/v1/messages/count_tokens"), "POST"),
        ("the list of models", head(None, path="/v1/models", method="GET"), "GET"),
    ):
        got = ask(envoy.port, raw, method=method)
        if got is None or "x-in-front" not in got.headers:
            missing.append(f"{name}: {got.status if got else got}")
    assert not missing, "; ".join(missing)


@check
def filters_in_front_see_every_answer(start):
    passes_through_filters_in_front(start, {})


@check
def filters_in_front_see_every_answer_of_a_timer(start):
    passes_through_filters_in_front(start, {"deferred_flush": True})


@check
def short_streams_keep_the_upstreams_connection(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))
    count = check.sized(60, 200)
    for _ in range(count):
        got = ask(envoy.port, post(message(stream=True)))
        assert got and got.complete and b"message_stop" in got.body, got
    stats = dict(
        line.split(": ") for line in envoy.read("/stats?filter=cluster.upstream.upstream_cx").splitlines()
        if line.count(": ") == 1
    )
    opened = int(stats["cluster.upstream.upstream_cx_total"])
    assert opened < count / 4, f"{opened} connections for {count} short streams, one after the other"
    return f"{opened} connections for {count} streams"


@check
def clients_that_leave_in_the_middle_trap_no_vm(start):
    upstream = start(Upstream(FOLDER))
    envoy = start(Envoy(upstream))

    def leave(number):
        with connect(envoy.port) as client:
            client.sendall(post(message("do:tick:100", True))[:None if number % 2 else -20])
            if number % 2:
                client.recv(100)

    def attack():
        for _ in range(check.sized(3, 20)):
            clients = [threading.Thread(target=leave, args=(number,)) for number in range(40)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
        return "gone"
    return under_attack(envoy, upstream, attack, 5)


if __name__ == "__main__":
    sys.exit(check.run())
