"""A small client of the Messages API, and what the checks share."""

import http.client
import json
import time


class Got:
    """What a client got: `complete` is false where the connection broke off."""

    def __init__(self, status, headers, body, complete):
        self.status, self.headers, self.body, self.complete = status, headers, body, complete

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def error(self):
        """The `error.type` that the client was told, in either form."""
        if self.status != 200:
            return json.loads(self.body)["error"]["type"]
        for line in self.text.splitlines():
            if line.startswith("data: ") and '"type":"error"' in line:
                return json.loads(line[6:])["error"]["type"]
        return None

    def ended(self):
        """Whether it is a whole answer."""
        if self.status != 200 or not self.complete:
            return False
        if "event-stream" in self.headers.get("content-type", ""):
            return "event: message_stop" in self.text
        return json.loads(self.body).get("type") == "message"


def send(address, path, body, headers=None, method="POST", read_bytes=None, timeout=30):
    """Sends one request. `read_bytes`: leaves after so many bytes of the body."""
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    try:
        given = {"content-type": "application/json", "x-api-key": "sk-canary-key", **(headers or {})}
        connection.request(method, path, body=body, headers=given)
        response = connection.getresponse()
        kept = {name.lower(): value for name, value in response.getheaders()}
        if read_bytes is not None:
            return Got(response.status, kept, response.read1(read_bytes), False)
        try:
            return Got(response.status, kept, response.read(), True)
        except http.client.IncompleteRead as broken:
            return Got(response.status, kept, broken.partial, False)
        except OSError:
            return Got(response.status, kept, b"", False)
    finally:
        connection.close()


def until(what, condition, seconds=30):
    """Waits until `condition` gives something true, and gives that."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited too long: {what}")
        time.sleep(0.05)


class Checks:
    """Counts what holds, and says what does not."""

    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, holds, said=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name}: {said}", flush=True)

    def run(self, name, test):
        try:
            said = test()
            self(name, True, said)
        except Exception as error:  # a check that breaks has failed
            self(name, False, f"{type(error).__name__}: {error}")

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0
