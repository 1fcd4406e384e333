"""What the official Python SDK makes of Creole's streams, compared with what the tests make of them.

    python accumulate.py STREAMS

STREAMS is a folder that `tests/fixtures.rs` wrote: for each fixture the bytes of the stream, and
the message that `tests/support/fold.rs` folds from them, or null where it ends with an error.
"""

import json
import pathlib
import sys

import anthropic

try:
    import httpx
except ImportError:  # Newer releases of the SDK bring the next generation of it.
    import httpx2 as httpx


def read(stream, beta):
    def answer(request):
        return httpx.Response(
            200, headers={"content-type": "text/event-stream"}, content=stream.encode()
        )

    client = anthropic.Anthropic(
        api_key="none",
        max_retries=0,
        base_url="http://127.0.0.1",
        http_client=httpx.Client(transport=httpx.MockTransport(answer)),
    )
    messages = [{"role": "user", "content": "Hello"}]
    api = client.beta.messages if beta else client.messages
    with api.stream(model="m", max_tokens=9, messages=messages) as events:
        return events.get_final_message().to_dict()


def is_beta(message):
    """Whether it has blocks that the SDK knows in its beta part alone."""
    return any(block["type"].startswith("mcp_") for block in (message or {}).get("content", []))


def comparable(message):
    blocks = [
        {key: block.get(key) for key in ("type", "text", "thinking", "signature", "id", "name", "input")}
        for block in message["content"]
    ]
    for block in blocks:
        # The input of a call that the limit cut off is as whole as each reader likes it.
        if "partial_json" in (block["input"] or {}) or message["stop_reason"] == "max_tokens":
            block["input"] = None
    usage = {
        key: count
        for key, count in message["usage"].items()
        if key.endswith("_tokens") and count is not None
    }
    return {
        "content": blocks,
        "usage": usage,
        "stop_reason": message["stop_reason"],
        "stop_sequence": message.get("stop_sequence"),
    }


def main():
    passed, failures = 0, []
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        case = json.loads(file.read_text("utf-8"))
        try:
            found = comparable(read(case["stream"], is_beta(case["message"])))
        except anthropic.APIError as error:
            found = None if case["message"] is None else f"{type(error).__name__}: {error}"
        except Exception as error:  # Whatever breaks a client is a failure.
            found = f"{type(error).__name__}: {error}"
        expected = case["message"] and comparable(case["message"])
        if found == expected:
            passed += 1
        else:
            failures.append(f"{file.stem}: expected {expected}, but found {found}")
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(bool(failures) or not passed)


main()
