"""What the attacks share: hosts as processes, raw clients, others who must not notice, and checks that are counted."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
import urllib.request
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
# What another client may wait longer than it does without the host.
PAUSE_S = 0.5
# How many small attacks run at one time.
AT_ONCE = 3


def free():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Process:
    """A process whose memory and descriptors are read."""

    def __init__(self, command, log, **more):
        self.log_file = log
        with open(log, "wb") as out:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=out, **more)
        self.pid = self.child.pid

    def kib(self, key):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            return int(re.search(rf"{key}:\s*(\d+)", file.read())[1])

    def memory(self):
        return self.kib("VmRSS") * 1024

    def peak(self):
        return self.kib("VmHWM") * 1024

    def forget_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="utf-8") as file:
            file.write("5")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def alive(self):
        return self.child.poll() is None

    def log(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def close(self):
        if self.alive():
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(3)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


class Upstream(Process):
    """`upstream.py` as a process, so that its work does not hold up what is measured here."""

    def __init__(self, folder):
        self.port = free()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-B", f"{HERE}/upstream.py", str(self.port)]
        super().__init__(command, f"{folder}/upstream-{self.port}.log", stdout=subprocess.PIPE)
        assert self.child.stdout.readline() == b"ready\n", self.log()

    def seen(self):
        with urllib.request.urlopen(self.url + "/seen", timeout=20) as answer:
            return json.load(answer)


class Watch:
    """Other clients' streams during an attack: see `watch.py`."""

    def __init__(self, host, upstream, streams=3, seconds=5.0):
        numbers = host.port, host.pid, upstream.port, streams, int(seconds * 100)
        command = [sys.executable, "-B", f"{HERE}/watch.py", *map(str, numbers)]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.child.stdout.readline() == b"ready\n", "the streams did not begin"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def end(self, pause=PAUSE_S):
        """Fails unless every stream came to its end, and none stood still for longer than this."""
        found = json.loads(self.child.stdout.readline())
        assert found["whole"] == found["streams"], f"streams of others broke: {found}"
        own = found["pause"] - found["machine"]
        assert own < pause, f"streams of others stood still for more than {pause:.2f} s: {found}"
        return f"others waited {found['pause']:.2f} s"


# Raw HTTP/1.1: what a client library would not send.

def message(model="do:text", stream=False, text="hi", **more):
    messages = [{"role": "user", "content": text}]
    body = {"model": model, "max_tokens": 50, "stream": stream, "messages": messages, **more}
    return json.dumps(body, separators=(",", ":")).encode()


def head(length, path="/v1/messages", method="POST", host="localhost", headers=("x-api-key: k",)):
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "content-type: application/json", *headers]
    if length is not None:
        lines.append(f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(body, **more):
    return head(len(body), **more) + body


def connect(port, timeout=20):
    return socket.create_connection(("127.0.0.1", port), timeout=timeout)


class Got:
    def __init__(self, status, headers, body, complete):
        self.status, self.headers, self.body, self.complete = status, headers, body, complete

    def __repr__(self):
        return f"{self.status} {'whole' if self.complete else 'BROKEN'} {self.body[:200]!r}"


def receive(stream, method="POST"):
    """One response, or nothing where the connection closed without any."""
    response = http.client.HTTPResponse(stream, method=method)
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, headers, response.read(), True)
    except http.client.IncompleteRead as broken:
        return Got(response.status, headers, broken.partial, False)
    except (http.client.BadStatusLine, ConnectionError):
        return None


def ask(port, raw, timeout=20, method="POST"):
    with connect(port, timeout) as stream:
        try:
            stream.sendall(raw)
        except OSError:
            pass  # An answer can come before the whole request was read.
        return receive(stream, method)


def answers(port, timeout=10):
    """Whether a plain request gets its answer; how long it took."""
    start = time.monotonic()
    got = ask(port, post(message()), timeout)
    assert got and got.status == 200, got
    return time.monotonic() - start


def reset(clients):
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


def serves_no_foreign_pages(start, upstream, host_for):
    """Web pages of others get nothing of a host on this machine that has the operator's key and no client keys."""
    host = start(host_for(upstream))
    body = message()
    for headers in (["origin: http://evil.example"], ["origin: null"], ["sec-fetch-site: cross-site"]):
        got = ask(host.port, post(body, headers=headers))
        assert got.status == 403, f"{headers}: {got}"
    for name in ("evil.example", "evil.example:8787"):
        got = ask(host.port, post(body, host=name))
        assert got.status == 403, f"rebound to {name}: {got}"
    assert not upstream.seen(), "a page reached the upstream"
    answers(host.port)


def serves_nobody(start, upstream, host_for):
    """A host whose configuration is wrong refuses every request."""
    got = ask(start(host_for(upstream)).port, post(message()))
    assert got.status == 500 and not upstream.seen(), got


def until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited too long: {what}"
        time.sleep(0.05)


class Checks:
    """Named checks, each with hosts of its own, which are gone when it ends."""

    def __init__(self, folder, size):
        self.folder, self.large = folder, size == "large"
        self.all = []
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)

    def sized(self, small, large):
        """How much an attack takes: of `cargo xtask test`, and of `cargo xtask chaos --hostile`."""
        return large if self.large else small

    def __call__(self, function):
        self.all.append(function)
        return function

    def run(self):
        """Runs the checks, those alone whose name has one of the words in CREOLE_ONLY."""
        only = os.environ.get("CREOLE_ONLY", "").split()
        chosen = [one for one in self.all if not only or any(word in one.__name__ for word in only)]
        # Most of them wait most of their time.
        with ThreadPoolExecutor(1 if self.large else AT_ONCE) as threads:
            failed = list(threads.map(attempt, chosen)).count(False)
        print(f"{len(chosen) - failed} passed, {failed} failed")
        return 1 if failed else 0


def attempt(check):
    """Runs one check, ends its hosts, and says whether it held."""
    start, running = time.monotonic(), []
    try:
        said = check(lambda host: running.append(host) or host)
        line = f"ok {check.__name__} ({time.monotonic() - start:.1f} s) {said or ''}"
    except Exception as error:
        line = f"FAIL {check.__name__} ({time.monotonic() - start:.1f} s): {error!r}"
        if not isinstance(error, AssertionError):
            line += "\n" + traceback.format_exc(limit=-2)
    for host in reversed(running):
        host.close()
    print(line, flush=True)
    return line.startswith("ok ")
