"""Attacks on the component in `wasmtime serve`.

    component.py WASMTIME COMPONENT FOLDER small|large

Each check starts servers of its own, with the flags of `cargo xtask run --on component`. Linux only. Prints `ok NAME` or
`FAIL NAME` for each check, and last `N passed, N failed`.
"""
import json
import os
import sys
import time

from rig import (
    Checks, Process, Upstream, ask, connect, free, head, message, post, receive, reset, serves_no_foreign_pages,
    serves_nobody, until,
)

WASMTIME, COMPONENT, FOLDER, SIZE = sys.argv[1:5]
KEY = "sk-operator-0123456789abcdef"
check = Checks(FOLDER, SIZE)


class Component(Process):
    def __init__(self, upstream, config=None, **variables):
        self.port = free()
        named = {"UPSTREAM_URL": f"{upstream.url}/v1", "CREOLE_CONFIG": json.dumps(config or {}), **variables}
        command = [WASMTIME, "serve", "-Scli", "-Opooling-allocator=n", "--addr", f"127.0.0.1:{self.port}"]
        for name in named:
            command += ["--env", name]
        super().__init__([*command, COMPONENT], f"{FOLDER}/{self.port}.log", env={**os.environ, **named})
        until("wasmtime", lambda: "Serving HTTP" in self.log() or not self.alive())


def keeps_nobody_out(server, raw, headers=("x-api-key: k",)):
    """Requests that do not end: others are served beside them, and after they were reset."""
    clients = [connect(server.port) for _ in range(check.sized(450, 800))]
    for client in clients:
        client.sendall(raw)
    time.sleep(1)

    def slowest():
        took = []
        for _ in range(5):
            begin = time.monotonic()
            got = ask(server.port, post(message(), headers=headers), timeout=5)
            assert got and got.status == 200, got
            took.append(time.monotonic() - begin)
        return max(took)

    beside = slowest()
    reset(clients)
    return f"a small request took {beside:.2f} s beside {len(clients)}, and then {slowest():.2f} s"


@check
def claims_of_bodies_keep_nobody_out(start):
    return keeps_nobody_out(start(Component(start(Upstream(FOLDER)))), head(9))


@check
def requests_that_wait_keep_nobody_out(start):
    return keeps_nobody_out(start(Component(start(Upstream(FOLDER)))), post(message("do:hold", True)))


@check
def refused_requests_keep_nobody_out(start):
    server = start(Component(start(Upstream(FOLDER)), CLIENT_KEY="key-of-the-team", UPSTREAM_KEY=KEY))
    return keeps_nobody_out(server, head(9), ["x-api-key: key-of-the-team"])


@check
def bodies_that_pause_are_refused(start):
    server = start(Component(start(Upstream(FOLDER)), {"stall_timeout_ms": 2000}))
    clients = [connect(server.port) for _ in range(50)]
    for client in clients:
        client.sendall(head(9) + b"{")
    statuses = {receive(client).status for client in clients}
    assert statuses == {408}, statuses


@check
def a_refusal_comes_before_the_body(start):
    server = start(Component(start(Upstream(FOLDER)), CLIENT_KEY="key-of-the-team", UPSTREAM_KEY=KEY))
    ask(server.port, head(None, path="/", method="GET"), method="GET")
    begin = time.monotonic()
    got = ask(server.port, head(9_000_000))
    took = time.monotonic() - begin
    assert got.status == 401 and took < 1.5, f"{got} after {took:.1f} s"
    return f"{took:.2f} s"


@check
def web_pages_of_others_cannot_use_the_key(start):
    serves_no_foreign_pages(start, start(Upstream(FOLDER)), lambda upstream: Component(upstream, UPSTREAM_KEY=KEY))


@check
def an_empty_key_opens_nothing(start):
    serves_nobody(start, start(Upstream(FOLDER)), lambda upstream: Component(upstream, UPSTREAM_KEY=KEY, CLIENT_KEY=""))


if __name__ == "__main__":
    sys.exit(check.run())
