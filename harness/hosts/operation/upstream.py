"""A scripted Chat Completions server: the word after `do:` in a request chooses what it does.

Everything that it says has a canary, so that a log that repeats it is found out.
"""

import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CANARY = "canary-upstream"


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
CALL = {
    "id": "call_abc",
    "type": "function",
    "function": {"name": "look", "arguments": json.dumps({"at": CANARY + "-input"})},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        with self.server.lock:
            self.server.seen.append((self.path, dict(self.headers), body))
        word = body.partition("do:")[2].partition(" ")[0].strip('"\\')
        stream = '"stream":true' in body
        self.has_found = "Tool loaded: " in body
        getattr(self, "do_" + word.replace("-", "_"), self.do_text)(stream)

    def reply(self, status, text, kind="application/json", **headers):
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("x-request-id", "up-1")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def events(self, chunks, end="data: [DONE]\n\n"):
        text = "".join(f"data: {json.dumps(one)}\n\n" for one in chunks) + end
        self.reply(200, text, "text/event-stream")

    def do_text(self, stream, delta=None, finish="stop"):
        delta = delta or {"role": "assistant", "content": CANARY + "-text"}
        if stream:
            self.events([chunk(delta), chunk({}, finish), {"choices": [], "usage": USAGE}])
            return
        choice = {"index": 0, "message": delta, "finish_reason": finish}
        self.reply(200, json.dumps({"id": "chatcmpl-1", "choices": [choice], "usage": USAGE}))

    def do_tool(self, stream):
        self.do_text(stream, {"role": "assistant", "tool_calls": [{"index": 0, **CALL}]}, "tool_calls")

    def do_search(self, stream):
        """Searches for a tool, and answers once it was found."""
        if self.has_found:
            self.do_text(stream)
            return
        function = {"name": "tool_search_tool_bm25", "arguments": json.dumps({"query": CANARY + "-query"})}
        call = {"index": 0, "id": "call_search", "type": "function", "function": function}
        self.do_text(stream, {"role": "assistant", "tool_calls": [call]}, "tool_calls")

    def do_think(self, stream):
        self.do_text(stream, {"reasoning_content": CANARY + "-thought", "content": "x"})

    def error(self, status, **more):
        message = {"message": f"you said {CANARY}-error", "type": "x", **more}
        self.reply(status, json.dumps({"error": message}), set_cookie=CANARY)

    def do_400(self, _):
        self.error(400)

    def do_401(self, _):
        self.error(401)

    def do_429(self, _):
        self.error(429)

    def do_503(self, _):
        self.error(503)

    def do_html(self, _):
        self.reply(500, f"<html><title>{CANARY}-html</title></html>", "text/html")

    def do_garbage(self, _):
        self.reply(200, f"%% {CANARY}-garbage %%")

    def do_mid(self, _):
        error = {"error": {"message": CANARY + "-mid", "code": 500}}
        self.events([chunk({"content": CANARY}), error])

    def do_invalid(self, _):
        self.events([chunk({"content": CANARY})], f"data: {{broken {CANARY}\n\n")

    def do_unfinished(self, _):
        self.events([chunk({"content": CANARY})], "")

    def start_stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        data = f"data: {json.dumps(chunk({'content': CANARY}))}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def drop(self):
        """Resets the connection instead of closing it."""
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        # The reader and the writer hold the socket open.
        self.connection.shutdown(socket.SHUT_RD)
        self.rfile.close()
        self.connection.close()

    def do_reset(self, _):
        self.start_stream()
        time.sleep(0.2)
        self.drop()

    def do_refuse(self, _):
        self.drop()

    def do_stall(self, _):
        self.start_stream()
        time.sleep(self.server.stall_seconds)
        self.drop()

    def do_slow(self, _):
        self.start_stream()
        for _ in range(50):
            time.sleep(0.1)
            data = f"data: {json.dumps(chunk({'content': CANARY}))}\n\n".encode()
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            except OSError:
                return
        self.drop()


class Upstream(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port, stall_seconds=3.0):
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.seen = []
        self.stall_seconds = stall_seconds
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass
