"""A model server that is scripted, and hostile where it is told to be.

    upstream.py PORT

The model's name in a request chooses a behaviour: `do:NAME` or `do:NAME:BYTES`, about so many bytes of it. A path
that ends in `/do/NAME` does so too. `GET /seen` gives what arrived, as JSON, and forgets it.
"""
import asyncio
import base64
import json
import re
import sys

TICK_S = 0.01
PIECE = 200_000


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


USAGE = {"prompt_tokens": 3, "completion_tokens": 4}
END = chunk({}, "stop") + b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\ndata: [DONE]\n\n"


def whole(text=b"hello"):
    return (
        b'{"id":"c","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"'
        + text + b'"}}],"usage":' + json.dumps(USAGE).encode() + b"}"
    )


def filled(before, element, after, size):
    """An array with as many elements as fit."""
    return before + b",".join([element] * max(1, size // (len(element) + 1))) + after


# Arrays of the smallest things, in an event and in a whole answer of Chat Completions.
ARRAYS = {
    "choices": (b'{"choices":[', b"{}", b"]}"),
    "choices_of_words": (b'{"choices":[', b'{"delta":{"content":"a"},"message":{"content":"a"}}', b"]}"),
    "calls": (b'{"choices":[{"delta":{"tool_calls":[', b"{}", b"]}}]}"),
    "reasoning": (b'{"choices":[{"delta":{"reasoning_details":[', b"{}", b"]}}]}"),
    "members": (b'{"choices":[{"delta":{"content":"a"}}],"x":[', b"{}", b"]}"),
}
# The same of Messages.
MESSAGE = b'{"id":"m","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"content":['


class Answer:
    """The answer to one request, written as raw bytes."""

    def __init__(self, writer, head, body):
        self.writer, self.head = writer, head
        self.streams = b'"stream":true' in body or b'"stream": true' in body

    async def write(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def sized(self, body, status="200 OK", kind="application/json", extra=""):
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
        await self.write(head.encode() + body)

    async def begin(self):
        await self.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    async def piece(self, data):
        for start in range(0, len(data), PIECE):
            part = data[start:start + PIECE]
            await self.write(b"%x\r\n%s\r\n" % (len(part), part))
            # Others have their turn, though the buffer has room.
            await asyncio.sleep(0)

    async def end(self, data=END):
        await self.piece(data)
        await self.write(b"0\r\n\r\n")

    async def events(self, *data):
        await self.begin()
        for one in data:
            await self.piece(one)
        await self.end()


async def text(answer, size):
    if answer.streams:
        await answer.events(chunk({"role": "assistant", "content": "hello"}))
    else:
        await answer.sized(whole())


async def tick(answer, size):
    """A stream of `size` events, one in 10 ms."""
    await answer.begin()
    for _ in range(size):
        await answer.piece(chunk({"content": "w "}))
        await asyncio.sleep(TICK_S)
    await answer.end()


async def late_models(answer, size):
    await asyncio.sleep(4)
    await answer.sized(json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode())


async def hold(answer, size):
    await asyncio.sleep(600)


async def line(answer, size):
    """An event that does not end."""
    await answer.begin()
    await answer.piece(chunk({"content": "a"}))
    await answer.piece(b"data: " + b"x" * size)
    await asyncio.sleep(600)


async def waiting_call(answer, size):
    """A call that has to wait for the end of the one before it."""
    def call(index, name, arguments):
        function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
        more = {"id": f"call_{index}", "type": "function"} if name else {}
        return chunk({"tool_calls": [{"index": index, **more, "function": function}]})

    await answer.begin()
    await answer.piece(call(0, "look", "{") + call(1, "look", '{"x":"'))
    for _ in range(max(1, size // 100_000)):
        await answer.piece(call(1, None, "z" * 100_000))
    await asyncio.sleep(600)


async def large(answer, size):
    await answer.sized(whole(b"z" * size))


async def message_blocks(answer, size):
    await answer.sized(filled(MESSAGE, b"{}", b"]}", size))


async def message_event(answer, size):
    started = filled(b'{"type":"message_start","message":' + MESSAGE, b"{}", b"]}}", size)
    await answer.begin()
    await answer.piece(b"event: message_start\ndata: " + started + b"\n\n")
    await answer.end(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


async def picture(answer, size):
    await answer.sized(b"\x89PNG\r\n\x1a\n" + bytes(40), kind="image/png")


async def echo_head(answer, size):
    await answer.sized(answer.head.encode(), kind="message/http")


async def quote_key(answer, size):
    """An error that shows the key that came, in the ways of real servers."""
    found = re.search(r"(?im)^(?:authorization: bearer|x-api-key:) (\S+)", answer.head)
    key = found[1] if found else ""
    shown = [key, base64.b64encode(key.encode()).decode(), base64.b64encode(f"Bearer {key}".encode()).decode(), key[:20]]
    error = {"error": {"message": f"Incorrect API key provided: {' '.join(shown)}", "type": "invalid_request_error"}}
    await answer.sized(json.dumps(error).encode(), "401 Unauthorized")


def of_array(name):
    async def array(answer, size):
        data = filled(*ARRAYS[name], size)
        if answer.streams:
            await answer.events(b"data: " + data + b"\n\n")
        else:
            await answer.sized(data.replace(b'"delta":', b'"message":'))
    return array


DO = {function.__name__: function for function in (
    text, tick, late_models, hold, line, waiting_call, large, message_blocks, message_event, picture,
    echo_head, quote_key)}
DO.update({name: of_array(name) for name in ARRAYS})
NAMED = re.compile(rb'"model"\s*:\s*"do:([a-z_]+):?(\d*)"')
PATH = re.compile(r"^[A-Z]+ \S*/do/([a-z_]+)")
seen = []


async def read(reader):
    """The head as text, and the body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"(?im)^content-length:\s*(\d+)", head)
    body = b""
    if length:
        body = await reader.readexactly(int(length[1]))
    elif re.search(r"(?im)^transfer-encoding:\s*chunked", head):
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    return head, body


async def client(reader, writer):
    try:
        while True:
            head, body = await read(reader)
            if head.startswith("GET /seen "):
                found, seen[:] = json.dumps(seen).encode(), []
                await Answer(writer, head, b"").sized(found)
                continue
            seen.append({"head": head, "body": body[:2000].decode("utf-8", "replace"), "bytes": len(body)})
            answer = Answer(writer, head, body)
            # Members of a request come in any order, and the model may be last.
            named = NAMED.search(body, 0, 4096) or NAMED.search(body, max(0, len(body) - 4096))
            by_path = PATH.match(head)
            name = named[1].decode() if named else by_path[1] if by_path else "text"
            await DO[name](answer, int(named[2] or 0) if named else 0)
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main(port):
    server = await asyncio.start_server(client, "127.0.0.1", port, limit=1 << 20, backlog=4096)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
