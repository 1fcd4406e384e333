"""Mixed load with faults on a real host: every response is classified, and none may be wrong.

    chaos.py HOST ADDRESS UPSTREAM_PORT LOG METRICS_URL SECONDS

Clients send whole and streaming requests to an upstream that answers, refuses, resets, stalls, sends
garbage and closes in mid-stream; some clients leave. A response is one of

    answer    whole, with the text that the upstream sent
    error     an HTTP error or an error event of the kind that the fault must give
    broken    the connection broke off: allowed only in Envoy, which tells a filter nothing then
    left      the client went away

Anything else is wrong. At the end the host must answer plain requests, all of them.
"""

import collections
import json
import random
import sys
import threading
import time

from client import Checks, send, until
from upstream import CANARY, Upstream

CLIENTS = 12

# The fault, and what a client may see: (status, error.type); None is a whole answer. A stream that is
# broken by its upstream between two events is told in an `error` event where the host can write then.
ALLOWED = {
    "text": {(200, None)},
    "tool": {(200, None)},
    "400": {(400, "invalid_request_error")},
    "429": {(429, "rate_limit_error")},
    "503": {(529, "overloaded_error")},
    "html": {(500, "api_error")},
    "garbage": {(502, "api_error")},
    "mid": {(200, "api_error"), (500, "api_error")},
    "invalid": {(200, "api_error"), (502, "api_error")},
    "unfinished": {(200, "api_error"), (502, "api_error")},
    "refuse": {(502, "api_error")},
    "reset": {(200, "api_error"), (502, "api_error")},
    "stall": {(200, "timeout_error"), (504, "timeout_error"), (200, "api_error"), (502, "api_error")},
}
# What happens to a stream whose upstream dies or stalls after its head, in Envoy: it breaks.
BREAKS = {"reset", "stall"}
WEIGHTS = [30, 10] + [3] * (len(ALLOWED) - 2)


def body(word, stream):
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    message = {"role": "user", "content": f"do:{word} please"}
    return json.dumps({"model": "m", "max_tokens": 9, "stream": stream, "messages": [message], "tools": tools})


def classify(host, word, got):
    """The class of a response, and what is wrong with it."""
    if got.ended():
        right = word in ("text", "tool") and CANARY in got.text
        return "answer", "" if right else f"a whole answer: {got.text[-300:]}"
    if not got.complete or (got.status == 200 and got.error() is None):
        right = host == "envoy" and word in BREAKS and got.status == 200 and not got.complete
        return "broken", "" if right else f"broke off: {got.status} {got.text[-300:]}"
    found = (got.status, got.error())
    return "error", "" if found in ALLOWED[word] else f"{found}: {got.text[-300:]}"


class Load:
    def __init__(self, host, address, seed):
        self.host, self.address, self.seed = host, address, seed
        self.counts = collections.Counter()
        self.wrong = []
        self.lock = threading.Lock()
        self.stop = False

    def client(self, number):
        chance = random.Random(self.seed * 1000 + number)
        while not self.stop:
            word = chance.choices(list(ALLOWED), WEIGHTS)[0]
            stream = chance.random() < 0.7
            leaves = chance.random() < 0.05
            if leaves:
                word, stream = "slow", True
            try:
                if leaves:
                    got = send(self.address, "/v1/messages", body(word, stream), read_bytes=40)
                    kind, wrong = "left", "" if got.status == 200 else f"{got.status} {got.text}"
                else:
                    got = send(self.address, "/v1/messages", body(word, stream))
                    kind, wrong = classify(self.host, word, got)
            except Exception as error:  # whatever cannot be read is no answer; the client goes on
                kind, wrong = "wrong", f"{type(error).__name__}: {error}"
            with self.lock:
                self.counts[kind, word] += 1
                if wrong and len(self.wrong) < 20:
                    self.wrong.append(f"{word}, stream {stream}: {wrong}")
                self.counts["wrong"] += bool(wrong)


def main(host, address, upstream_port, log, metrics_url, seconds):
    check = Checks()
    Upstream(int(upstream_port), stall_seconds=6.0)
    until("a plain answer", lambda: send(address, "/v1/messages", body("text", False)).ended())
    load = Load(host, address, seed=1)
    clients = [threading.Thread(target=load.client, args=[number]) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(float(seconds))
    load.stop = True
    for client in clients:
        client.join(60)
    check("every client came to an end", not any(client.is_alive() for client in clients))
    totals = collections.Counter()
    for key, count in load.counts.items():
        if isinstance(key, tuple):
            totals[key[0]] += count
    sent = sum(totals.values())
    print(f"{host}: {sent} requests in {seconds} s: " + ", ".join(f"{count} {kind}" for kind, count in sorted(totals.items())))
    for word in [*ALLOWED, "slow"]:
        seen = {kind: count for (kind, of), count in ((key, count) for key, count in load.counts.items() if isinstance(key, tuple)) if of == word}
        check(f"{word} happened", bool(seen), "never sent")
    check("no response is wrong", not load.wrong, f"{load.counts['wrong']} of {sent}:\n" + "\n".join(load.wrong))
    # Afterwards the host is as it was.
    for number in range(20):
        got = send(address, "/v1/messages", body("text", bool(number % 2)))
        check("answers afterwards", got.ended(), f"{got.status} {got.text[:200]}")
    with open(log, encoding="utf-8", errors="replace") as lines:
        check("no canary in the log", CANARY not in lines.read())
    return check.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
