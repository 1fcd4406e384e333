"""Attacks on the Worker in workerd.

    worker.py WORKERD MODULES WRANGLER FOLDER small|large

MODULES is a build with `test-hooks`, which says how many exchanges live and how much memory WebAssembly has. WRANGLER is
`wrangler.toml`, whose flags choose the runtime's behaviour. Each check starts Workers of its own. Linux only. Prints
`ok NAME` or `FAIL NAME` for each check, and last `N passed, N failed`.
"""
import json
import re
import sys
import time

from rig import (
    MIB, Checks, Process, Upstream, answers, ask, connect, free, head, message, post, receive, reset,
    serves_no_foreign_pages, serves_nobody, until,
)

WORKERD, MODULES, WRANGLER, FOLDER, SIZE = sys.argv[1:6]
KEY = "sk-operator-0123456789abcdef"
# All that Cloudflare gives an isolate.
ISOLATE = 128 * MIB
# Of those who fill the memory: an owner of their own.
OTHER = ["x-api-key: other"]
check = Checks(FOLDER, SIZE)


def compatibility():
    """The date and the flags as workerd's configuration has them."""
    with open(WRANGLER, encoding="utf-8") as file:
        found = dict(re.findall(r"(?m)^(compatibility_\w+) = (.+)$", file.read()))
    return f"compatibilityDate = {found['compatibility_date']}, compatibilityFlags = {found['compatibility_flags']},"


class Worker(Process):
    def __init__(self, upstream, config=None, behind="", **variables):
        self.port = free()
        named = {"UPSTREAM_URL": f"{upstream.url}{behind}/v1", "CREOLE_CONFIG": json.dumps(config or {}), **variables}
        bindings = "".join(f"(name = {json.dumps(name)}, text = {json.dumps(value)})," for name, value in named.items())
        path = f"{FOLDER}/{self.port}.capnp"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""using Workerd = import "/workerd/workerd.capnp";
using Modules = import "/modules.capnp";
const config :Workerd.Config = (
  services = [(name = "creole", worker = .creole), (name = "internet", network = (allow = ["local"]))],
  sockets = [(name = "http", address = "127.0.0.1:{self.port}", http = (), service = "creole")]);
const creole :Workerd.Worker = (modules = Modules.modules, {compatibility()} bindings = [{bindings}]);
""")
        with open(f"{FOLDER}/{self.port}.out", "wb") as out:
            super().__init__([WORKERD, "serve", "--import-path", MODULES, path], f"{FOLDER}/{self.port}.log", stdout=out)
        until("workerd", self.listens)

    def listens(self):
        try:
            connect(self.port, 1).close()
        except OSError:
            assert self.alive(), self.log()
            return False
        return True

    def log(self):
        with open(f"{FOLDER}/{self.port}.out", encoding="utf-8", errors="replace") as file:
            return file.read() + super().log()

    def figures(self):
        """Live exchanges, what waits for the module, and bytes of WebAssembly."""
        got = json.loads(ask(self.port, head(None, path="/", method="GET", headers=["x-test-hook: figures"]), method="GET").body)
        return got["live"], got["waiting"], got["bytes"]

    def is_empty(self):
        return self.figures()[:2] == (0, 0)


def sent(port, raw, count):
    clients = [connect(port) for _ in range(count)]
    for client in clients:
        client.sendall(raw)
    return clients


def leaves_nothing(worker, raw, when=lambda clients: time.sleep(0.1), headers=("x-api-key: k",)):
    """Clients that send and reset: nothing of them lives, and more of them take no more memory."""
    def wave():
        for _ in range(check.sized(8, 70)):
            clients = sent(worker.port, raw, 50)
            when(clients)
            reset(clients)
        until("the end of what lives", worker.is_empty)
        return worker.figures()[2]

    wave()
    before, after = wave(), wave()
    assert after - before < MIB // 8, f"{after - before} bytes more of WebAssembly"
    got = ask(worker.port, post(message(), headers=headers))
    assert got.status == 200, got
    return f"{after / MIB:.1f} MiB of WebAssembly"


@check
def clients_that_reset_in_their_body_leave_nothing(start):
    return leaves_nothing(start(Worker(start(Upstream(FOLDER)))), head(1))


@check
def clients_that_reset_before_the_head_leave_nothing(start):
    raw = post(message("do:hold", True, "x" * 20_000))
    return leaves_nothing(start(Worker(start(Upstream(FOLDER)))), raw)


@check
def clients_that_reset_in_mid_stream_leave_nothing(start):
    worker = start(Worker(start(Upstream(FOLDER)), {"ping_interval_ms": 60_000}))
    return leaves_nothing(worker, post(message("do:line:1000", True)), lambda clients: [one.recv(10) for one in clients])


@check
def clients_that_are_refused_and_reset_leave_nothing(start):
    worker = start(Worker(start(Upstream(FOLDER)), CLIENT_KEY="key-of-the-team", UPSTREAM_KEY=KEY))
    return leaves_nothing(worker, head(1), headers=["x-api-key: key-of-the-team"])


@check
def claims_of_bodies_keep_nobody_out(start):
    worker = start(Worker(start(Upstream(FOLDER))))
    clients = sent(worker.port, head(256 << 10), check.sized(100, 400))
    slowest = max(answers(worker.port) for _ in range(5))
    reset(clients)
    slowest = max(slowest, *(answers(worker.port) for _ in range(5)))
    assert slowest < 2, slowest
    return f"a small request took {slowest:.2f} s at most"


@check
def unfinished_bodies_keep_nobody_out(start):
    worker = start(Worker(start(Upstream(FOLDER))))
    length = 8 * MIB
    clients = [connect(worker.port) for _ in range(3)]
    for client in clients:
        client.settimeout(3)
        try:
            client.sendall(head(length, headers=["x-api-key: other"]) + b"{" + b" " * (length - 10))
        except OSError:
            pass  # Some are refused meanwhile.
    time.sleep(2.2)
    slowest = max(answers(worker.port) for _ in range(5))
    reset(clients)
    return f"a small request took {slowest:.2f} s at most"


def stays_in_the_isolate(start, raw, count=20):
    worker = start(Worker(start(Upstream(FOLDER))))
    clients, most = [connect(worker.port, 60) for _ in range(count)], 0
    for client in clients:
        client.sendall(raw)
    end = time.monotonic() + check.sized(5, 15)
    while time.monotonic() < end:
        most = max(most, worker.figures()[2])
        time.sleep(0.1)
    took = answers(worker.port)
    reset(clients)
    until("the end of what lives", worker.is_empty)
    assert most < ISOLATE // 2, f"{most / MIB:.0f} MiB of WebAssembly"
    return f"{most / MIB:.0f} MiB of WebAssembly; a small request took {took:.2f} s"


@check
def events_that_do_not_end_stay_in_the_isolate(start):
    return stays_in_the_isolate(start, post(message("do:line:3900000", True), headers=OTHER))


@check
def calls_that_wait_stay_in_the_isolate(start):
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    return stays_in_the_isolate(start, post(message("do:waiting_call:7000000", True, tools=tools), headers=OTHER))


@check
def whole_answers_that_nobody_reads_stay_in_the_isolate(start):
    return stays_in_the_isolate(start, post(message("do:large:8000000"), headers=OTHER))


@check
def heads_that_wait_stay_in_the_isolate(start):
    return stays_in_the_isolate(start, head(1, headers=["x-api-key: k", *(f"x-{n}: {'b' * 1000}" for n in range(60))]), 200)


@check
def a_request_without_a_body_keeps_its_place(start):
    worker = start(Worker(start(Upstream(FOLDER)), behind="/do/late_models"))
    client = connect(worker.port)
    client.sendall(head(None, "/v1/models", "GET", headers=["x-api-key: k", "anthropic-version: 2023-06-01"]))
    time.sleep(2.2)
    greedy = sent(worker.port, head(8 * MIB, headers=["x-api-key: a"]) + b" " * (8 * MIB - 10), 1)
    greedy += sent(worker.port, head(8 * MIB, headers=["x-api-key: b"]) + b" " * (15 * MIB // 2), 1)
    assert receive(greedy[0]).status == 529, "nobody gave way"
    got = receive(client, "GET")
    assert got and got.status == 200, got


@check
def invented_addresses_are_no_owners(start):
    worker = start(Worker(start(Upstream(FOLDER))))
    clients = []
    for address in ("192.0.2.1", "192.0.2.2"):
        raw = head(8 * MIB, headers=["x-api-key: k", f"cf-connecting-ip: {address}"]) + b" " * (6 * MIB)
        clients += sent(worker.port, raw, 1)
        time.sleep(0.5)
    got = receive(clients[1])
    assert got and got.status == 529, got


@check
def web_pages_of_others_cannot_use_the_key(start):
    serves_no_foreign_pages(start, start(Upstream(FOLDER)), lambda upstream: Worker(upstream, UPSTREAM_KEY=KEY))


@check
def an_empty_key_opens_nothing(start):
    serves_nobody(start, start(Upstream(FOLDER)), lambda upstream: Worker(upstream, UPSTREAM_KEY=KEY, CLIENT_KEY=""))


@check
def a_name_that_every_object_has_ends_nothing(start):
    config = {"upstreams": {"u": {"key": {"env": "toString"}}}}
    worker = start(Worker(start(Upstream(FOLDER)), config))
    for _ in range(3):
        got = ask(worker.port, post(message()), timeout=5)
        assert got.status == 500 and b"its log says why" in got.body, got


@check
def refused_requests_do_not_fill_the_log(start):
    worker = start(Worker(start(Upstream(FOLDER)), CLIENT_KEY="key-of-the-team", UPSTREAM_KEY=KEY))
    for _ in range(1000):
        with connect(worker.port) as client:
            client.sendall(post(message()))
            assert receive(client).status == 401
    lines = worker.log().count('"status":401')
    assert 100 <= lines <= 500, f"{lines} lines"
    return f"{lines} lines for 1000 requests"


if __name__ == "__main__":
    sys.exit(check.run())
