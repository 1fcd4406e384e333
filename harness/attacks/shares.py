"""Attacks on the native gateway by clients that take a share of its memory, and leave nothing for others.

Each fills `buffered_bytes_max` with requests that do not end, while an honest client asks.
"""
import socket
import threading
import time

from http2 import PREFACE, frame, literal
from rig import ask, connect, head, message, post, until

# Part of the honest requests that must be served.
SERVED = 0.99


def keyed(key):
    return [f"x-api-key: {key}"]


def silent(stream):
    """Takes what an attacked host answered, and gives it up where it waits."""
    stream.settimeout(0.02)
    try:
        stream.recv(1 << 16)
    except OSError:
        pass
    stream.settimeout(5)


def streams(port, count, key, body):
    """A connection of HTTP/2 with so many requests without an end."""
    client = connect(port, 5)
    client.sendall(PREFACE + frame(4, 0, 0))
    fields = b"\x83\x86" + literal(b":path", b"/v1/messages") + literal(b"x-api-key", key.encode())
    for number in range(1, 2 * count, 2):
        # The second head has the fields of the first by their numbers in the table.
        raw = frame(1, 4, number, fields) + frame(0, 0, number, body)
        fields = b"\x83\x86\xbf\xbe"
        try:
            client.sendall(raw)
        except OSError:
            break
        if number % 61 == 0:
            silent(client)
    return client


def unfinished(port, key, body):
    """A connection of HTTP/1.1 with one request without an end."""
    client = connect(port, 5)
    try:
        client.sendall(head(30_000_000, headers=keyed(key)) + body)
    except OSError:
        pass
    return client


def others_are_served(gateway, attack, key="k", seconds=6.0):
    """Asks with small requests while the attack goes on, which gives its connections."""
    end, statuses, sets = time.monotonic() + seconds, {}, []
    refused = 0

    def fill():
        nonlocal refused
        while time.monotonic() < end:
            sets.append(attack())
            time.sleep(1)
            # The requests of the last set were given up for those of this one.
            for client in sets[-2] if len(sets) > 1 else []:
                refused += is_refused(client)
                client.close()

    attacker = threading.Thread(target=fill, daemon=True)
    attacker.start()
    time.sleep(0.5)
    while time.monotonic() < end:
        got = ask(gateway.port, post(message(), headers=keyed(key)))
        status = got.status if got else "closed"
        statuses[status] = statuses.get(status, 0) + 1
        time.sleep(0.02)
    attacker.join(20)
    for client in sets[-1]:
        refused += is_refused(client)
        client.close()
    asked = sum(statuses.values())
    assert statuses.get(200, 0) >= SERVED * asked, f"others were refused: {statuses}"
    assert refused, "the memory was not filled"
    lines = gateway.log().count('"overloaded"')
    assert lines <= 100 * (seconds // 10 + 2), f"{lines} lines of refused requests"
    return f"{statuses}, {len(sets)} sets of connections, {refused} of them refused, {lines} lines of refused requests"


def is_refused(client):
    """Whether the gateway refused a request of this connection, or closed it."""
    client.setblocking(False)
    try:
        # Where nothing is refused, HTTP/2 has only settings and windows.
        got = client.recv(1 << 20)
        return not got or b" 529 " in got or len(got) > 1000
    except BlockingIOError:
        return False
    except OSError:
        return True


def refused_before_the_body(port, key, length, status):
    """A refusal comes while the body does not, and an honest client reads it behind all that it sent."""
    with connect(port, 5) as client:
        client.sendall(head(length, headers=keyed(key)) + b"{")
        begin = time.monotonic()
        until("an answer", lambda: client.recv(12, socket.MSG_PEEK), 5)
        took = time.monotonic() - begin
        assert client.recv(12) == f"HTTP/1.1 {status}".encode() and took < 1, f"after {took:.1f} s"
    with connect(port, 20) as client:
        client.sendall(head(length, headers=keyed(key)))
        for _ in range(length >> 20):
            client.sendall(b" " * (1 << 20))
        got = client.recv(12)
        assert got == f"HTTP/1.1 {status}".encode(), f"{length} bytes: {got}"
    return took
