"""The component in a Python program. Needs `pip install wasmtime` (tried with 50).

    python embed.py dist/creole.component.wasm
"""

# docs: begin
import json
import secrets
import sys
import time

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker


class Creole:
    """The interface `creole:translate/exchanges`: `creole.call("[method]exchange.is-ended", it)`."""

    def __init__(self, path):
        engine = Engine()
        self.store = Store(engine)
        # It asks for nothing, so the linker stays empty.
        self.instance = Linker(engine).instantiate(self.store, Component.from_file(engine, path))
        self.exchanges = self.instance.get_export_index(
            self.store, "creole:translate/exchanges@0.3.0"
        )

    def call(self, name, *arguments):
        index = self.instance.get_export_index(self.store, name, self.exchanges)
        function = self.instance.get_func(self.store, index)
        result = function(self.store, *arguments)
        function.post_return(self.store)
        return result


def now():
    return int(time.time() * 1000)


def translate(creole, config, body, pieces):
    """Yields what the client gets; `pieces` are what the upstream answers."""
    seed = (secrets.randbits(64), secrets.randbits(64))
    exchange = creole.call("[constructor]exchange", config, seed, set())
    try:
        headers = [("x-api-key", "local")]
        head = creole.call(
            "[method]exchange.handle-request-head", exchange, "POST", "/v1/messages", headers
        )
        assert head == "translate", head
        creole.call("[method]exchange.handle-request-body", exchange, body, now())
        request = creole.call("[method]exchange.poll-call", exchange, now())
        if request is None:
            yield creole.call("[method]exchange.poll-output", exchange).body
            return
        print("POST", request.url + request.path, len(request.body), "bytes")
        headers = [("content-type", "text/event-stream")]
        creole.call("[method]exchange.handle-call-head", exchange, request.id, 200, headers, now())
        for piece in pieces:
            creole.call("[method]exchange.handle-call-body", exchange, request.id, piece, now())
            yield creole.call("[method]exchange.poll-output", exchange).body
        if not creole.call("[method]exchange.is-ended", exchange):
            creole.call("[method]exchange.handle-call-end", exchange, request.id, "complete", now())
            yield creole.call("[method]exchange.poll-output", exchange).body
    finally:
        exchange.drop(creole.store)


CONFIG = {"upstreams": {"local": {"url": "http://localhost:11434", "profile": "ollama"}}}
REQUEST = {
    "model": "m",
    "max_tokens": 9,
    "stream": True,
    "messages": [{"role": "user", "content": "Hi"}],
}
ANSWER = [
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python embed.py dist/creole.component.wasm")
    creole = Creole(sys.argv[1])
    config = creole.call("[static]config.parse", json.dumps(CONFIG), [])
    if isinstance(config, str):
        sys.exit(config)
    for output in translate(creole, config, json.dumps(REQUEST).encode(), ANSWER):
        print(output.decode(), end="")
# docs: end
