"""Creole in front of a real model on this machine. See `../harness.py`; here `DEMO_URL` is llama.cpp's
server, which also speaks the Messages API itself: its answers are compared with Creole's at temperature 0.
"""
import json
import os
import socket
import sys
from importlib.metadata import version as installed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

HEADERS = {"content-type": "application/json", "x-api-key": "local", "anthropic-version": "2023-06-01"}
WEATHER = {
    "name": "get_weather", "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def user(text):
    return {"role": "user", "content": text}


def example(number, city):
    """A worked example: without some, so small a model calls nothing."""
    key = f"toolu_{number:024}"
    return [
        user(f"What is the weather in {city}?"),
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": key, "name": "get_weather", "input": {"city": city}}]},
        user([{"type": "tool_result", "tool_use_id": key, "content": "sunny"}]),
        {"role": "assistant", "content": f"It is sunny in {city}."},
    ]


PLAIN = {"max_tokens": 10, "messages": [user("The capital of France is")]}
TOOL = {
    "max_tokens": 28, "tools": [WEATHER],
    "messages": [*example(1, "Paris"), *example(2, "London"), user("What is the weather in Rome?")],
}


def ask(body, stream=False, base=BASE):
    """The message, folded from its events if it was streamed."""
    body = {"model": "local", "temperature": 0, "stream": stream, **body}
    status, text = http("POST", base + "/v1/messages", body, HEADERS, 300)
    assert status == 200, (status, text)
    return fold(text) if stream else json.loads(text)


def fold(text):
    message, inputs = {}, {}
    for line in text.splitlines():
        event = json.loads(line[6:]) if line.startswith("data: ") else {"type": "none"}
        kind = event["type"]
        if kind == "message_start":
            message = event["message"]
        elif kind == "content_block_start":
            assert event["index"] == len(message["content"]), event
            message["content"].append(event["content_block"])
        elif kind == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            elif delta["type"] == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
        elif kind == "content_block_stop" and event["index"] in inputs:
            message["content"][event["index"]]["input"] = read(inputs[event["index"]] or "{}")
        elif kind == "message_delta":
            message.update(event["delta"])
            message["usage"].update(event["usage"])
        else:
            assert kind != "error", event
    return message


def read(text):
    """An input, or its text where the length cut it: as the original API, a stream has sent it by then."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def said(message):
    """What does not differ from one answer to the next."""
    return [
        (block["type"], block.get("text") or (block.get("name"), block.get("input")))
        for block in message["content"]
    ], message["stop_reason"], message["usage"]["output_tokens"]


@check
def a_whole_and_a_streamed_answer_are_the_same():
    whole, streamed = ask(PLAIN), ask(PLAIN, True)
    assert said(whole) == said(streamed), (whole, streamed)
    assert whole["content"][0]["text"] and whole["usage"]["input_tokens"] > 0, whole
    assert whole["stop_reason"] == "max_tokens", whole


@check
def a_tool_is_called_with_an_input_that_fits():
    whole, streamed = ask(TOOL), ask(TOOL, True)
    for message in (whole, streamed):
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        assert calls and calls[0]["name"] == "get_weather" and calls[0]["input"] == {"city": "Rome"}, message
        assert calls[0]["id"].startswith("toolu_"), calls


@check
def a_length_cut_inside_a_call_is_said_by_the_stop_reason():
    cut = {**TOOL, "max_tokens": 14}
    for stream in (False, True):
        message = ask(cut, stream)
        assert message["stop_reason"] == "max_tokens", message
        for block in message["content"]:
            # A whole answer never has half an input.
            assert stream or block["type"] != "tool_use" or isinstance(block["input"], dict), block


@check
def a_prompt_that_is_too_long_is_a_bad_request():
    long = {"model": "local", "max_tokens": 8, "messages": [user("word " * 4000)]}
    for stream in (False, True):
        status, text = http("POST", BASE + "/v1/messages", {**long, "stream": stream}, HEADERS, 300)
        error = json.loads(text)["error"]
        assert status == 400 and error["type"] == "invalid_request_error", (status, text)
        assert "prompt is too long" in error["message"], error


@check
def a_client_that_leaves_frees_the_model():
    body = {"model": "local", "max_tokens": 1500, "stream": True, "temperature": 0,
            "messages": [user("Count to a thousand: 1, 2, 3,")]}
    text = json.dumps(body)
    host, port = BASE.split("//")[1].split(":")
    with socket.create_connection((host, int(port)), timeout=120) as client:
        client.sendall((
            "POST /v1/messages HTTP/1.1\r\nhost: creole\r\ncontent-type: application/json\r\n"
            f"x-api-key: local\r\nanthropic-version: 2023-06-01\r\ncontent-length: {len(text)}\r\n\r\n{text}"
        ).encode())
        got = b""
        while b"content_block_delta" not in got:
            got += client.recv(4096)
    # The model has one slot, and 1500 tokens take it minutes.
    start = time.monotonic()
    ask({"max_tokens": 2, "messages": [user("Hi")]})
    seconds = time.monotonic() - start
    assert seconds < 45, f"{seconds:.0f} s"


# Where Creole differs from the server's own API, and is right: README.md says why. A path in
# JSON: `content.0.id` is `content.id`, since it holds for every block.
KNOWN = {
    "id", "content.id", "content.caller.type", "container", "stop_details", "diagnostics",
    "usage.cache_creation_input_tokens", "usage.cache_creation", "usage.output_tokens_details",
    "usage.server_tool_use", "usage.service_tier", "usage.speed", "usage.inference_geo",
}
KNOWN_OF = {
    # A call that the length cut: the server says that its input is empty, Creole leaves it out.
    ("cut", False): {"content", "content.type", "content.name", "content.input"},
    ("too long", False): {
        "type", "request_id", "error.type", "error.message", "error.code", "error.n_prompt_tokens", "error.n_ctx",
    },
}
KNOWN_OF["too long", True] = KNOWN_OF["too long", False]


def leaves(value, path=""):
    """The values in a JSON document by their paths."""
    if isinstance(value, dict) and value:
        return {k: v for key, part in value.items() for k, v in leaves(part, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {k: v for key, part in enumerate(value) for k, v in leaves(part, f"{path}.{key}").items()}
    return {path[1:]: value}


def refused_by(base, stream):
    body = {"model": "local", "max_tokens": 8, "messages": [user("word " * 4000)], "stream": stream}
    status, text = http("POST", base + "/v1/messages", body, HEADERS, 300)
    return {"status": status, **json.loads(text)}


@check
def the_servers_own_messages_api_says_the_same():
    asked = {"plain": PLAIN, "tool": TOOL, "cut": {**TOOL, "max_tokens": 14}}
    differences, unknown = [], []
    for name in (*asked, "too long"):
        for stream in (False, True):
            if name in asked:
                # What the server has read before is counted apart.
                ask(asked[name], stream)
                ours, theirs = ask(asked[name], stream), ask(asked[name], stream, DEMO)
            else:
                ours, theirs = refused_by(BASE, stream), refused_by(DEMO, stream)
            a, b = leaves(ours), leaves(theirs)
            for path in sorted(a.keys() | b.keys()):
                one, other = (json.dumps(it[path]) if path in it else "absent" for it in (a, b))
                if one == other:
                    continue
                line = f"{name}, {'streamed' if stream else 'whole'}: {path}: Creole {one}, server {other}"
                differences.append(line)
                parts = [part for part in path.split(".") if not part.isdigit()]
                known = KNOWN | KNOWN_OF.get((name, stream), set())
                unknown += [line] if ".".join(parts) not in known else []
    with open(os.path.join(FOLDER, "differences.txt"), "w") as file:
        file.write("\n".join(differences) + "\n")
    assert not unknown, "\n".join(unknown)


if __name__ == "__main__":
    version("xllamacpp", installed("xllamacpp"))
    main()
