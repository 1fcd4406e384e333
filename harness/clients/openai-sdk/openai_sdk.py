"""The official Python SDK of OpenAI on Creole's listener: what is not the Messages API passes untouched.
See `../harness.py`. Every call is made twice, through the host and straight to the demo model, and the
bytes are compared on both sides.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

import openai

TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]


def user(text):
    return [{"role": "user", "content": text}]


def exchange(base, ask):
    """The answer's status and bytes, and the request as it arrived at the model."""
    http("DELETE", DEMO + "/demo/requests")
    client = openai.OpenAI(base_url=base + "/v1", api_key="sk-test", max_retries=0, timeout=30)
    try:
        status, answer = ask(client)
    except openai.APIStatusError as error:
        status, answer = error.status_code, error.response.content
    record = json.loads(http("GET", DEMO + "/demo/requests")[1])["requests"][-1]
    # The host's own headers, and those that name the connection.
    hop = {"host", "connection", "x-forwarded-for", "x-forwarded-proto", "x-request-id", "via", "accept-encoding",
           "x-creole-hops", "x-envoy-expected-rq-timeout-ms", "content-length", "transfer-encoding"}
    headers = sorted((name, value) for name, value in record["headers"] if name not in hop)
    return {"status": status, "answer": answer, "path": record["path"], "body": record["body"], "headers": headers}


def same(ask):
    through, direct = exchange(BASE, ask), exchange(DEMO, ask)
    for part, wanted in direct.items():
        assert through[part] == wanted, f"{part}: {through[part]!r} instead of {wanted!r}"
    return direct


def chat(**arguments):
    def ask(client):
        raw = client.chat.completions.with_raw_response.create(model="demo", **arguments)
        return raw.status_code, raw.http_response.content
    return ask


def streamed(**arguments):
    def ask(client):
        with client.chat.completions.with_streaming_response.create(
            model="demo", stream=True, stream_options={"include_usage": True}, **arguments
        ) as raw:
            return raw.status_code, b"".join(raw.iter_bytes())
    return ask


@check
def a_whole_answer_is_the_same_bytes():
    assert b"Hello" in same(chat(messages=user("Grüße ✓ \\ \"")))["answer"]


@check
def a_stream_is_the_same_bytes():
    assert b"[DONE]" in same(streamed(messages=user("Grüße ✓")))["answer"]


@check
def tool_calls_are_the_same_bytes():
    assert b"tool_calls" in same(chat(messages=user("demo:tool get_weather"), tools=TOOLS))["answer"]
    assert b"tool_calls" in same(streamed(messages=user("demo:parallel 2"), tools=TOOLS))["answer"]


@check
def a_large_stream_is_the_same_bytes():
    assert len(same(streamed(messages=user("demo:big 300000")))["answer"]) > 300000


@check
def errors_are_the_same_bytes():
    for status in (400, 401, 429, 500):
        assert same(chat(messages=user(f"demo:error {status}")))["status"] == status


@check
def other_paths_are_the_same_bytes():
    def embeddings(client):
        raw = client.embeddings.with_raw_response.create(model="demo", input="x")
        return raw.status_code, raw.http_response.content
    assert same(embeddings)["path"] == "/v1/embeddings"


if __name__ == "__main__":
    version("openai", openai.__version__)
    main()
