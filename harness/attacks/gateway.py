"""Attacks on the native gateway.

    gateway.py BINARY FOLDER small|large

Each check starts gateways of its own. `large` takes gigabytes and minutes. Linux only: memory and descriptors are
read in `/proc`. Prints `ok NAME` or `FAIL NAME` for each check, and last `N passed, N failed`.
"""
import base64
import json
import os
import re
import subprocess
import sys
import threading
import time

from bombs import answer_bombs, long_requests, pauses, request_bombs
from contents import document, documents, images
from http2 import PREFACE, frame, literal
from rig import HERE, MIB, Checks, Process, Upstream, Watch, answers, ask, connect, free, head, message, post, receive, until
from shares import is_refused, others_are_served, refused_before_the_body, streams, unfinished

BINARY, FOLDER, SIZE = sys.argv[1:4]
KEY = "sk-operator-0123456789abcdef"
# What every host has before a client comes, with room for what threads keep.
IDLE = 64 * MIB
# Allocators keep some of what is given back.
TIMES_HELD = 2.5
check = Checks(FOLDER, SIZE)


class Gateway(Process):
    def __init__(self, *upstreams, config=None, arguments=(), descriptors=None, port=None, log="warn", **environment):
        document = {"log": log, **(config or {})}
        if upstreams:
            document["upstreams"] = {f"u{number}": {"url": url} for number, url in enumerate(upstreams)}
        self.port = port or free()
        path = f"{FOLDER}/{self.port}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        command = [BINARY, "serve", "--no-check", "--config", path, "--listen", f"127.0.0.1:{self.port}", *arguments]
        if descriptors:
            command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$0" "$@"', *command]
        super().__init__(
            command, f"{FOLDER}/{self.port}.log", stdout=subprocess.PIPE, env={**os.environ, **environment}
        )
        line = self.child.stdout.readline()
        assert b"listening" in line, self.log()


@check
def requests_of_small_things_take_no_more_than_eight_times_their_size(start):
    upstream = start(Upstream(FOLDER))
    return request_bombs(start(Gateway(upstream.url)), check.sized(3 * MIB, 30 * MIB))


@check
def counts_of_small_things_take_no_more_than_eight_times_their_size(start):
    upstream = start(Upstream(FOLDER))
    return request_bombs(start(Gateway(upstream.url)), check.sized(MIB, 30 * MIB), "/v1/messages/count_tokens")


@check
def answers_of_small_things_take_no_more_than_eight_times_their_size(start):
    upstream = start(Upstream(FOLDER))
    return answer_bombs(start(Gateway(upstream.url)), check.sized(3 * MIB, 7 * MIB))


@check
def answers_of_a_messages_upstream_take_no_more_than_eight_times_their_size(start):
    upstream = start(Upstream(FOLDER))
    config = {"upstreams": {"native": {"url": upstream.url, "protocol": "anthropic"}}}
    kinds = [("message_blocks", False), ("message_event", True)]
    return answer_bombs(start(Gateway(config=config)), check.sized(3 * MIB, 7 * MIB), kinds)


@check
def long_translations_do_not_hold_up_the_streams_of_others(start):
    upstream = start(Upstream(FOLDER))
    return pauses(start(Gateway(upstream.url)), upstream, long_requests(check.sized(4, 30) * MIB))


@check
def many_requests_that_are_small_enough_for_the_threads_of_streams_do_not_hold_them_up(start):
    upstream = start(Upstream(FOLDER))
    gateway = start(Gateway(upstream.url))
    raw = post(long_requests(MIB - 20_000)["calls"])
    clients = [connect(gateway.port, 60) for _ in range(check.sized(12, 60))]
    for client in clients:
        client.sendall(raw[:-1])
    with Watch(gateway, upstream, 2, 4) as watch:
        for client in clients:
            client.sendall(raw[-1:])
        statuses = {receive(client).status for client in clients}
        return f"{watch.end()}, {statuses}"


def budget(**more):
    """A configuration with a small budget, and the most that the gateway may hold under it."""
    held = check.sized(32, 256) * MIB
    return {"buffered_bytes_max": held, **more}, IDLE + TIMES_HELD * held


def stays_below(gateway, most, attack):
    """Runs an attack, whose clients stay, and looks at the peak once nothing is added to it."""
    clients = attack()
    end, peak, same = time.monotonic() + 20, 0, 0
    while same < check.sized(4, 10) and time.monotonic() < end:
        time.sleep(0.5)
        peak, before = gateway.peak(), peak
        same = same + 1 if peak - before < MIB else 0
    took = answers(gateway.port)
    assert gateway.alive(), gateway.log()[-500:]
    assert peak < most, f"a peak of {peak / MIB:.0f} MiB, where {most / MIB:.0f} were allowed"
    for client in clients:
        client.close()
    return f"peak {peak / MIB:.0f} of {most / MIB:.0f} MiB; a small request took {took:.2f} s"


def at_once(gateway, raws):
    """Clients that send, and then wait and read nothing."""
    clients = []

    def send(raw):
        client = connect(gateway.port, 30)
        clients.append(client)
        try:
            client.sendall(raw)
        except OSError:
            pass

    senders = [threading.Thread(target=send, args=(raw,), daemon=True) for raw in raws]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(20)
    return clients


@check
def bodies_at_once_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    size, count = check.sized(5, 30) * MIB, check.sized(16, 30)
    bodies = [post(message("do:hold", True, "a" * size))] * (count // 2)
    escaped = message("do:hold", True, "X").replace(b'"X"', b'"' + b"\\u0041" * (size // 6) + b'"')
    bodies += [post(escaped)] * (count // 2)
    return stays_below(gateway, most, lambda: at_once(gateway, bodies))


@check
def events_that_do_not_end_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    raws = [post(message("do:line:7800000", True))] * check.sized(24, 130)
    return stays_below(gateway, most, lambda: at_once(gateway, raws))


@check
def calls_that_wait_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    raws = [post(message("do:waiting_call:7000000", True, tools=tools))] * check.sized(24, 100)
    return stays_below(gateway, most, lambda: at_once(gateway, raws))


@check
def answers_that_nobody_reads_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    raws = [post(message(f"do:large:{check.sized(8, 60) * MIB}"))] * 16
    return stays_below(gateway, most, lambda: at_once(gateway, raws))


@check
def heads_that_do_not_end_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    raw = b"GET / HTTP/1.1\r\nhost: localhost\r\nx-a: " + b"a" * 390_000
    return stays_below(gateway, most, lambda: at_once(gateway, [raw] * check.sized(400, 1500)))


@check
def large_heads_of_requests_that_wait_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    raw = post(message("do:hold"), headers=["x-api-key: k", "x-a: " + "a" * 390_000])
    return stays_below(gateway, most, lambda: at_once(gateway, [raw] * check.sized(200, 1000)))


@check
def heads_that_http2_compresses_to_nothing_stay_within_the_budget(start):
    upstream = start(Upstream(FOLDER))
    config, most = budget()
    gateway = start(Gateway(upstream.url, config=config))
    # 14 times one remembered field of 3.7 kB: 15 bytes on the wire for each head of 52 kB.
    first = b"\x83\x86" + literal(b":path", b"/v1/messages") + literal(b"x-a", b"b" * 3700)
    again = b"\x83\x86" + b"\x04\x0c/v1/messages" + b"\x41\x09localhost".replace(b"\x41", b"\x01") + b"\xbe" * 14
    sent = 0

    def attack():
        nonlocal sent
        for _ in range(check.sized(3, 6)):
            client = connect(gateway.port)
            clients.append(client)
            client.sendall(PREFACE + frame(4, 0, 0))
            client.sendall(frame(1, 4, 1, first) + frame(0, 0, 1, b"{"))
            client.settimeout(0.05)
            for number in range(3, 2 * check.sized(300, 1000), 2):
                raw = frame(1, 4, number, again) + frame(0, 0, number, b"{")
                try:
                    client.sendall(raw)
                    sent += len(raw)
                    if number % 41 == 0:
                        client.recv(65536)
                except TimeoutError:
                    continue
                except OSError:
                    break
        return clients

    clients = []
    said = stays_below(gateway, most, attack)
    assert sent > 5_000, "the heads were not taken"
    return f"{said}; {sent} bytes were sent"


@check
def bodies_that_trickle_do_not_keep_others_out(start):
    upstream = start(Upstream(FOLDER))
    held = 32 * MIB
    gateway = start(Gateway(upstream.url, config={"buffered_bytes_max": held}))
    size = 4 * MIB
    clients = at_once(gateway, [head(size) + b"{" + b" " * (size - 100)] * (held // size + 1))
    time.sleep(1)
    slowest = max(answers(gateway.port) for _ in range(5))
    until(
        "the slow bodies to be refused", lambda: trickled(clients) == 0, check.sized(45, 90)
    )
    return f"a small request took {slowest:.2f} s at most"


def trickled(clients):
    """Sends one more byte to each; how many are still taken."""
    left = 0
    time.sleep(0.5)
    for client in clients:
        try:
            client.setblocking(False)
            try:
                ended = client.recv(1) is not None
            except BlockingIOError:
                ended = False
            if not ended:
                client.send(b" ")
                left += 1
        except OSError:
            pass
    return left


def shared(start, keys=0):
    """A gateway with little memory, and the keys of its clients."""
    upstream = start(Upstream(FOLDER))
    names = [f"key-of-client-{number:02}-0123456789" for number in range(keys)]
    config = {"buffered_bytes_max": check.sized(4, 32) * MIB}
    config["upstreams"] = {"u": {"url": upstream.url, "key": "none"}}
    if names:
        config["client_keys"] = [{"env": f"CLIENT_{number}"} for number in range(keys)]
    environment = {f"CLIENT_{number}": name for number, name in enumerate(names)}
    return start(Gateway(config=config, **environment)), names


def endless(gateway, keys):
    """Connections of HTTP/2 with as many small requests without an end as fill the memory twice."""
    count, body = check.sized(250, 1000), b"{" + b" " * check.sized(2000, 4000)
    return lambda: [streams(gateway.port, count, key, body) for key in keys]


@check
def streams_without_an_end_on_few_connections_keep_nobody_out(start):
    gateway, _ = shared(start)
    return others_are_served(gateway, endless(gateway, ["k"] * 17))


@check
def seventeen_client_keys_keep_the_eighteenth_in(start):
    gateway, keys = shared(start, 18)
    return others_are_served(gateway, endless(gateway, keys[:17]), keys[17])


@check
def bodies_without_an_end_on_many_connections_keep_nobody_out(start):
    gateway, _ = shared(start)
    count, body = check.sized(128, 512), b"{" + b" " * 100_000
    attack = lambda: [unfinished(gateway.port, "k", body) for _ in range(count)]
    return others_are_served(gateway, attack)


def with_two_keys(start, upstream, **more):
    config = {"upstreams": {"u": {"url": upstream.url, "profile": "ollama", "key": "none"}}, **more}
    config["client_keys"] = [{"env": "CLIENT_0"}, {"env": "CLIENT_1"}]
    keys = [f"key-of-client-{number:02}-0123456789" for number in range(2)]
    return start(Gateway(config=config, CLIENT_0=keys[0], CLIENT_1=keys[1])), [[f"x-api-key: {key}"] for key in keys]


@check
def documents_that_take_long_do_not_keep_those_of_others_waiting(start):
    upstream = start(Upstream(FOLDER))
    gateway, (attacker, other) = with_two_keys(start, upstream)
    slow = [post(documents(document(number, True)), headers=attacker) for number in range(25)]
    clients = at_once(gateway, slow)
    time.sleep(0.5)
    slowest = 0
    for number in range(3):
        begin = time.monotonic()
        got = ask(gateway.port, post(documents(document(number)), headers=other), timeout=20)
        slowest = max(slowest, time.monotonic() - begin)
        assert got and got.status == 200, got
        assert f"text of {number}" in upstream.seen()[-1]["body"]
    for client in clients:
        client.close()
    assert slowest < 3, f"a document took {slowest:.1f} s"
    return f"a document took {slowest:.2f} s at most"


@check
def images_that_do_not_come_do_not_keep_those_of_others_waiting(start):
    upstream = start(Upstream(FOLDER))
    gateway, (attacker, other) = with_two_keys(start, upstream, fetch_images={"hosts": [upstream.url]})
    held = [images(*(f"{upstream.url}/do/hold?{number}-{one}" for one in range(20))) for number in range(20)]
    clients = at_once(gateway, [post(body, headers=attacker) for body in held])
    time.sleep(0.5)
    begin = time.monotonic()
    got = ask(gateway.port, post(images(f"{upstream.url}/do/picture"), headers=other), timeout=30)
    took = time.monotonic() - begin
    for client in clients:
        client.close()
    assert got and got.status == 200 and took < 3, f"{got} after {took:.1f} s"
    return f"an image took {took:.2f} s"


@check
def nothing_is_fetched_for_a_request_that_is_refused(start):
    upstream = start(Upstream(FOLDER))
    config = {"upstreams": {"u": {"url": upstream.url, "profile": "ollama", "key": "client"}}}
    gateway = start(Gateway(config={**config, "fetch_images": {"hosts": [upstream.url]}}))
    picture = f"{upstream.url}/do/picture"
    refused = {
        "an image that may not be fetched": post(images(picture, "https://elsewhere.example/a.png")),
        "more images than are fetched": post(images(*(f"{picture}?{number}" for number in range(21)))),
        "no key": post(images(picture), headers=[]),
    }
    for name, raw in refused.items():
        got = ask(gateway.port, raw)
        assert got and 400 <= got.status < 500, f"{name}: {got}"
        assert not upstream.seen(), name


@check
def invented_names_of_models_keep_no_label_from_those_that_are_used(start):
    upstream = start(Upstream(FOLDER))
    gateway = start(Gateway(upstream.url, log="off"))
    invented = [f"invented-{number}" for number in range(check.sized(300, 6000)) for _ in range(2)]
    with connect(gateway.port) as client:
        for name in invented + ["used"] * 4:
            client.sendall(post(message(name)))
            assert receive(client).status == 200
    metrics = ask(gateway.port, head(None, path="/metrics", method="GET"), method="GET").body.decode()
    labels = set(re.findall(r'model="([^"]*)"', metrics))
    assert "used" in labels and len(labels) <= 33, labels
    return f"{len(labels)} labels"


@check
def refusals_do_not_wait_for_the_body_and_are_read_behind_it(start):
    gateway, keys = shared(start, 1)
    wrong = refused_before_the_body(gateway.port, "wrong", 40 * MIB, 401)
    large = refused_before_the_body(gateway.port, keys[0], 40 * MIB, 413)
    return f"a wrong key {wrong:.2f} s, a large body {large:.2f} s"


@check
def silent_connections_give_way_to_new_clients(start):
    return given_way(start(Gateway(start(Upstream(FOLDER)).url, descriptors=256)), b"")


@check
def connections_with_bodies_without_an_end_give_way_to_new_clients(start):
    return given_way(start(Gateway(start(Upstream(FOLDER)).url, descriptors=256)), head(1000) + b"{")


def given_way(gateway, sent):
    """More clients than there are descriptors, which send this and no more."""
    clients = []
    for _ in range(check.sized(400, 600)):
        try:
            clients.append(connect(gateway.port, 1))
            clients[-1].sendall(sent)
        except OSError:
            break
    time.sleep(0.5)
    return f"{len(clients)} clients; a request took {answers(gateway.port, 4):.2f} s"


def keyed_gateway(start, descriptors=256, **config):
    """A gateway whose clients have a key."""
    config = {"upstreams": {"u": {"url": start(Upstream(FOLDER)).url, "key": "none"}}, **config}
    config["client_keys"] = [{"secret": "CLIENT"}]
    return start(Gateway(config=config, descriptors=descriptors, CLIENT=CLIENT_KEY))


CLIENT_KEY = "key-of-a-client-0123456789"


@check
def uploads_outlive_the_connections_of_refused_strangers(start):
    gateway = keyed_gateway(start)
    with connect(gateway.port) as upload:
        raw = post(message(text="a" * 100_000), headers=[f"x-api-key: {CLIENT_KEY}"])
        upload.sendall(raw[:50_000])
        time.sleep(0.2)
        strangers = []
        for _ in range(check.sized(300, 600)):
            strangers.append(connect(gateway.port, 5))
            strangers[-1].sendall(head(None, method="GET"))
            assert strangers[-1].recv(12) == b"HTTP/1.1 401"
        upload.sendall(raw[50_000:])
        got = receive(upload)
        assert got and got.status == 200, got
    return f"{len(strangers)} strangers"


@check
def refusals_in_http2_for_which_there_is_no_window_keep_no_place_and_little_memory(start):
    config, most = budget()
    gateway = keyed_gateway(start, **config)
    fields = b"\x82\x86" + literal(b":path", b"/v1/messages") + literal(b":authority", b"localhost")
    window = frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00")
    clients = []
    for _ in range(check.sized(120, 400)):
        clients.append(connect(gateway.port, 5))
        heads = [fields] + [b"\x82\x86\xbf\xbe"] * check.sized(200, 1000)
        raw = b"".join(frame(1, 5, 2 * number + 1, one) for number, one in enumerate(heads))
        try:
            clients[-1].sendall(PREFACE + window + raw)
        except OSError:
            pass
    time.sleep(1)
    slowest = 0.0
    for _ in range(10):
        begin = time.monotonic()
        got = ask(gateway.port, post(message(), headers=[f"x-api-key: {CLIENT_KEY}"]))
        slowest = max(slowest, time.monotonic() - begin)
        assert got and got.status == 200, got
    refused = sum(is_refused(client) for client in clients)
    # Some were closed for others before they had an answer.
    assert refused > 50, f"only {refused} of {len(clients)} were refused"
    peak = gateway.peak()
    assert peak < most, f"a peak of {peak / MIB:.0f} MiB, where {most / MIB:.0f} were allowed"
    return f"peak {peak / MIB:.0f} of {most / MIB:.0f} MiB; a request took {slowest:.2f} s at most"


@check
def what_strangers_leave_of_heads_cuts_no_request_of_others(start):
    gateway = keyed_gateway(start, None, buffered_bytes_max=32 * MIB)
    fields = b"\x83\x86" + literal(b":path", b"/v1/messages") + literal(b":authority", b"localhost")
    clients = [connect(gateway.port, 5) for _ in range(check.sized(400, 1500))]
    for client in clients:
        client.sendall(PREFACE + frame(4, 0, 0) + frame(1, 5, 1, fields))
    time.sleep(0.5)
    for number, client in enumerate(clients):
        try:
            # HTTP/2 does not know this kind, and drops it. Small ones fill what large ones leave.
            client.sendall(frame(99, 0, 0, b" " * 16_000) * (8 if number < 0.8 * len(clients) else 2))
        except OSError:
            pass
    body = message(text="a" * 60_000)
    pieces = [body[at:at + 16_000] for at in range(0, len(body), 16_000)]
    raw = frame(1, 4, 1, fields + literal(b"x-api-key", CLIENT_KEY.encode()))
    raw += b"".join(frame(0, piece is pieces[-1], 1, piece) for piece in pieces)
    cut = 0
    for _ in range(50):
        with connect(gateway.port, 5) as client:
            got = data = b""
            try:
                client.sendall(PREFACE + frame(4, 0, 0) + raw)
                while SERVED not in got and (data := client.recv(65536)):
                    got += data
            except OSError:
                pass
            cut += SERVED not in got
    long = post(message(), headers=[f"x-api-key: {CLIENT_KEY}", "x-a: " + "a" * 60_000])
    answers = [ask(gateway.port, long) for _ in range(20)]
    assert not cut and all(got and got.status == 200 for got in answers), f"{cut} were cut; {answers}"
    refused_before_the_body(gateway.port, "wrong", 2 * MIB, 401)


# The head of an answer with status 200 in the first stream.
SERVED = b"\x01\x04\x00\x00\x00\x01\x88"


@check
def an_upstream_whose_name_is_not_found_does_not_hold_up_others(start):
    library = f"{FOLDER}/slow_names.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, f"{HERE}/slow_names.c", "-ldl"], check=True)
    upstream = start(Upstream(FOLDER))
    config = {
        "upstreams": {"good": {"url": upstream.url}, "slow": {"url": "http://slow.test:80"}},
        "models": {"slow": {"upstream": "slow"}, "*": {"upstream": "good"}},
    }
    gateway = start(Gateway(config=config, arguments=["--shutdown-timeout", "1"], LD_PRELOAD=library))
    clients = at_once(gateway, [post(message("slow"))] * check.sized(600, 1100))
    time.sleep(1)
    took = answers(gateway.port)
    begin = time.monotonic()
    got = ask(gateway.port, post(message(text="x" * 1_200_000)), timeout=30)
    large = time.monotonic() - begin
    assert got and got.status == 200 and large < 3, f"{got} after {large:.1f} s"
    clients[0].settimeout(30)
    refused = receive(clients[0])
    assert refused and refused.status >= 500, refused
    return f"a small request took {took:.2f} s, a large one {large:.2f} s; the slow name gave {refused.status}"


def with_key(start, upstream, *arguments):
    config = {"upstreams": {"u": {"url": upstream.url, "key": {"secret": "CREOLE_OPERATOR"}}}}
    return start(Gateway(config=config, arguments=arguments, CREOLE_OPERATOR=KEY))


@check
def methods_that_show_or_tunnel_are_refused_and_never_get_the_key(start):
    upstream = start(Upstream(FOLDER))
    gateway = with_key(start, upstream)
    for method in ("TRACE", "TRACK", "CONNECT", "PRI", "FOO", "PURGE"):
        for path in ("/v1/do/echo_head", "/v1/messages", "/v1/files"):
            with connect(gateway.port, 5) as client:
                client.sendall(head(None, path=path, method=method, headers=["connection: close"]))
                got = b""
                while data := client.recv(65536):
                    got += data
            assert KEY.encode() not in got, f"{method} {path} shows the key"
            assert b" 405 " in got[:20] or b" 40" in got[:13] or b" 501 " in got[:20], f"{method} {path}: {got[:100]}"
    seen = [one["head"].split(" ")[0] for one in upstream.seen()]
    assert not set(seen) & {"TRACE", "TRACK", "CONNECT", "PRI", "FOO", "PURGE"}, seen


@check
def an_operators_key_that_an_upstream_quotes_is_not_shown(start):
    upstream = start(Upstream(FOLDER))
    gateway = with_key(start, upstream)
    shown = [KEY[:20], base64.b64encode(KEY.encode())[:24].decode(), base64.b64encode(f"Bearer {KEY}".encode()).decode()]
    for path, body in (("/v1/messages", message("do:quote_key")), ("/v1/messages", message("do:quote_key", True))):
        got = ask(gateway.port, post(body, path=path))
        found = [part for part in shown if part in got.body.decode()]
        assert got.status >= 400 and not found, f"{path}: {found} in {got}"


PAGES = {
    "a foreign page, no preflight": ("POST", "/v1/messages", ["origin: http://evil.example", "content-type: text/plain"]),
    "a page from a file": ("POST", "/v1/messages", ["origin: null"]),
    "an image": ("GET", "/v1/files", ["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"]),
    "a link": ("GET", "/v1/files/x", ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"]),
    "an image of a site beside": ("GET", "/v1/files", ["sec-fetch-site: same-site", "sec-fetch-mode: no-cors"]),
}


@check
def web_pages_of_others_cannot_use_the_key(start):
    upstream = start(Upstream(FOLDER))
    gateway = with_key(start, upstream)
    body = message()
    for name, (method, path, headers) in PAGES.items():
        raw = head(len(body), path=path, headers=headers) + body if method == "POST" else head(
            None, path=path, method=method, headers=headers)
        got = ask(gateway.port, raw, method=method)
        assert got is None or got.status in (401, 403), f"{name}: {got}"
    # A name without a dot is one that nobody can register: docs/gateway.md.
    for host in ("evil.example", "evil.example:8787"):
        got = ask(gateway.port, post(body, host=host))
        assert got is None or got.status in (400, 401, 403, 421), f"rebound to {host}: {got}"
    assert not upstream.seen(), "a page reached the upstream"
    answers(gateway.port)


@check
def an_operators_key_is_not_offered_to_a_network_without_keys_of_clients(start):
    upstream = start(Upstream(FOLDER))
    path = f"{FOLDER}/open.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"upstreams": {"u": {"url": upstream.url, "key": {"secret": "CREOLE_OPERATOR"}}}}, file)
    command = [BINARY, "serve", "--no-check", "--config", path, "--listen", f"0.0.0.0:{free()}"]
    try:
        done = subprocess.run(
            command, env={**os.environ, "CREOLE_OPERATOR": KEY}, timeout=3, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise AssertionError("it listens for everyone") from None
    assert done.returncode != 0 and KEY not in done.stderr, done


@check
def headers_that_choose_another_address_or_account_do_not_go_with_the_operators_key(start):
    upstream = start(Upstream(FOLDER))
    gateway = with_key(start, upstream)
    names = [
        "x-original-url", "x-rewrite-url", "x-http-method-override", "x-http-method", "x-method-override",
        "x-forwarded-host", "openai-organization", "openai-project", "x-envoy-original-dst-host",
    ]
    for path, method in (("/v1/messages", "POST"), ("/v1/files", "GET")):
        body = message() if method == "POST" else b""
        raw = head(len(body) if body else None, path=path, method=method, headers=[f"{name}: evil" for name in names])
        got = ask(gateway.port, raw + body, method=method)
        assert got and got.status == 200, got
        (arrived,) = upstream.seen()
        passed = [name for name in names if f"\n{name}: evil" in arrived["head"].lower()]
        assert not passed, f"{method} {path}: {passed}"


@check
def gateways_that_lead_to_each_other_end_it(start):
    ports = free(), free()
    pair = [
        start(Gateway(f"http://127.0.0.1:{ports[1 - number]}", port=ports[number], descriptors=256))
        for number in (0, 1)
    ]
    said = []
    for path, body in (("/v1/messages", message()), ("/v1/files", b"{}")):
        begin = time.monotonic()
        got = ask(pair[0].port, post(body, path=path), timeout=15)
        took = time.monotonic() - begin
        most = max(gateway.descriptors() for gateway in pair)
        assert got and got.status >= 400 and took < 5 and most < 100, f"{got} after {took:.1f} s, {most} descriptors"
        said.append(f"{path}: {got.status}, {most} descriptors")
    return "; ".join(said)


@check
def servers_of_another_user_at_usual_ports_are_not_used(_start):
    if os.geteuid() != 0:
        return "not tried: only the superuser gives a socket to another user"
    command = ["unshare", "-n", sys.executable, "-B", f"{HERE}/strangers.py", BINARY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0 and not done.stdout, f"{done.stdout}{done.stderr}"


if __name__ == "__main__":
    sys.exit(check.run())
