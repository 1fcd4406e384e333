"""A model server like vLLM, whose model calls one tool and then says that it is done."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ModelServer:
    """Server on a port of the loopback address. `tool` is the name and input of the call that answers a request
    without a tool's result; `window` is the size of each model's context window in tokens."""

    def __init__(self, port, models, window, tool):
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def reply(self, kind, body):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                listed = [{"id": it, "object": "model", "owned_by": "vllm", "max_model_len": window} for it in models]
                if self.path == "/v1/models":
                    return self.reply("application/json", json.dumps({"object": "list", "data": listed}).encode())
                self.send_error(404)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append(body)
                self.reply("text/event-stream", "".join(outer.chunks(body)).encode())

        self.tool = tool
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def chunks(self, body):
        offered = [tool["function"]["name"] for tool in body.get("tools", [])]
        name, given = self.tool
        has_result = any(message["role"] == "tool" for message in body["messages"])
        if name in offered and not has_result:
            function = {"name": name, "arguments": json.dumps(given)}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            deltas = [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]
        else:
            deltas = [({"role": "assistant", "content": "It is done."}, None), ({}, "stop")]
        for delta, reason in deltas:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            yield "data: " + json.dumps({"id": "c", "model": body["model"], "choices": [choice]}) + "\n\n"
        yield "data: [DONE]\n\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
