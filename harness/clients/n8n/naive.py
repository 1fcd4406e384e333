"""A translator without Creole's measures, to show what they are for: it passes the upstream's ids and
names on as they came, and sends a call's whole input when its block starts. Standard library only, one
thread for each connection, no errors, no images.
"""
import itertools
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBER = itertools.count(1)


def text(content):
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if block["type"] == "text")


def request(body):
    """A Messages request as Chat Completions."""
    messages = []
    if body.get("system"):
        messages.append({"role": "system", "content": text(body["system"])})
    for message in body["messages"]:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        calls = [
            {"id": block["id"], "type": "function",
             "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
            for block in blocks if block["type"] == "tool_use"
        ]
        for block in blocks:
            if block["type"] == "tool_result":
                messages.append({"role": "tool", "tool_call_id": block["tool_use_id"],
                                 "content": text(block["content"])})
        if text(blocks) or calls:
            made = {"role": message["role"], "content": text(blocks) or None}
            messages.append({**made, "tool_calls": calls} if calls else made)
    tools = [
        {"type": "function", "function": {"name": tool["name"], "description": tool.get("description", ""),
                                          "parameters": tool["input_schema"]}}
        for tool in body.get("tools", [])
    ]
    made = {"model": body["model"], "messages": messages, "max_tokens": body["max_tokens"]}
    return {**made, "tools": tools} if tools else made


def answer(body, model):
    """A Chat Completions answer as a message."""
    message = body["choices"][0]["message"]
    content = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or []:
        content.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
                        "input": json.loads(call["function"]["arguments"])})
    reason = "tool_use" if message.get("tool_calls") else "end_turn"
    return {"id": f"msg_{next(NUMBER)}", "type": "message", "role": "assistant", "model": model,
            "content": content, "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}


def events(message):
    """A message as a stream: every block whole at its start."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def serve(upstream):
    """Starts it on a free port; gives its URL."""
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked = urllib.request.Request(
                upstream + "/v1/chat/completions", data=json.dumps(request(body)).encode(),
                headers={"content-type": "application/json"},
            )
            with urllib.request.urlopen(asked) as found:
                message = answer(json.load(found), body["model"])
            made, kind = json.dumps(message), "application/json"
            if body.get("stream"):
                made = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(message))
                kind = "text/event-stream"
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(made.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
