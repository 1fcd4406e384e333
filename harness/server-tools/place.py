"""What the checks of server tools share: the places, the scripted model, and what must hold for any answer.

The plan (`xtask/src/clients/server_tools.rs` writes it) has the addresses of gateways in front of one demo
model, of the services of `services.py`, and of a server that a check starts itself. There is no gateway
`off`, without server tools, where the model speaks Responses: then its own server may have such tools.
"""
import json
import math
import sys
import urllib.request
from pathlib import Path

import anthropic

sys.path.append(str(Path(__file__).parents[1] / "clients"))
from as_chat import as_chat  # noqa: E402

PLAN = json.loads(sys.argv[1])
URLS = PLAN["services"]
DEMO = PLAN["demo"]
TOOLSETS = "mcp-client-2025-11-20"
LISTINGS = "mcp-client-2026-09-15"
FIRST_BETA = "mcp-client-2025-04-04"


def fetch(url, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def client(place, **options):
    options = {"max_retries": 0, "timeout": 60, **options}
    return anthropic.Anthropic(base_url=PLAN["gateways"][place], api_key="sk-test", **options)


def user(content):
    return {"role": "user", "content": content}


def assistant(message):
    return {"role": "assistant", "content": message.content}


def call(name, _say="", _late_ms=0, **arguments):
    """Returns words for the demo model that call a tool."""
    words = f"demo:tool {name}\ndemo:input {json.dumps(arguments)}"
    words += f"\ndemo:say {_say}" if _say else ""
    return words + (f"\ndemo:late {_late_ms}" if _late_ms else "")


def calls(*made):
    """Returns words for the demo model that call several tools in one turn."""
    lines = [f"demo:tool {name}\ndemo:input {json.dumps(arguments)}" for name, arguments in made]
    return "\n".join(lines)


def say(text):
    return f"demo:say {text}"


def script(*turns):
    """Sets the model's next answers, and forgets what it was asked before."""
    fetch(f"{DEMO}/demo/script", "DELETE")
    fetch(f"{DEMO}/demo/requests", "DELETE")
    fetch(f"{DEMO}/demo/script", "POST", [{"words": words} for words in turns])


def records():
    return fetch(f"{DEMO}/demo/requests")["requests"]


def asked():
    """Returns the bodies that reached the model, oldest first, as those of Chat Completions."""
    return [as_chat(json.loads(record["body"])) for record in records()]


def functions(body):
    return [tool["function"]["name"] for tool in body.get("tools", [])]


def served(name, url=None, **more):
    """Returns the element of `mcp_servers` for a server of the plan."""
    return {"type": "url", "name": name, "url": url or URLS[name], **more}


def toolset(name, **more):
    return {"type": "mcp_toolset", "mcp_server_name": name, **more}


def mcp(*names):
    """Returns the arguments of a request that takes all tools of these servers."""
    return {
        "betas": [TOOLSETS],
        "mcp_servers": [served(name) for name in names],
        "tools": [toolset(name) for name in names],
    }


def ask(place, streamed, messages, plain=False, **arguments):
    """Returns the message that the SDK made of an answer, which must be well-formed."""
    api = client(place)
    api = api.messages if plain else api.beta.messages
    arguments = {"model": "demo", "max_tokens": 2000, "messages": messages, **arguments}
    before = len(records())
    if not streamed:
        message = api.create(**arguments)
    else:
        with api.stream(**arguments) as stream:
            events = list(stream)
            message = stream.get_final_message()
        check_events(events, message)
    check_message(message, records()[before:], bool(arguments.get("betas")))
    return message


def check_events(events, message):
    """Checks that one message begins and ends, and that its blocks come one after the other."""
    raw = [event for event in events if event.type in (
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    )]
    kinds = [event.type for event in raw]
    assert kinds[0] == "message_start" and kinds.count("message_start") == 1, kinds
    assert kinds[-2:] == ["message_delta", "message_stop"], kinds
    assert kinds.count("message_delta") == 1, kinds
    opened = None
    begun = 0
    for event in raw:
        if event.type == "content_block_start":
            assert opened is None and event.index == begun, (event, begun)
            opened, begun = event.index, begun + 1
        elif event.type == "content_block_delta":
            assert event.index == opened, event
        elif event.type == "content_block_stop":
            assert event.index == opened, event
            opened = None
    assert opened is None and begun == len(message.content), (begun, message)


CALLS = ("server_tool_use", "mcp_tool_use", "tool_use")
PREFIXES = {"server_tool_use": "srvtoolu_", "mcp_tool_use": "mcptoolu_", "tool_use": "toolu_"}


def check_message(message, turns, is_beta):
    """Checks ids, the pairs of calls and results, and that the usage is that of all turns."""
    made = [block for block in message.content if block.type in CALLS]
    for block in made:
        assert block.id.startswith(PREFIXES[block.type]), block
        assert isinstance(block.input, dict), block
    ids = [block.id for block in made]
    assert len(set(ids)) == len(ids), ids
    results = [block.tool_use_id for block in message.content if block.type.endswith("_tool_result")]
    assert len(set(results)) == len(results), results
    # The demo model counts a token for every four bytes of a request.
    expected = sum(math.ceil(len(turn["body"].encode()) / 4) for turn in turns)
    assert message.usage.input_tokens == expected, (message.usage, expected)
    iterations = getattr(message.usage, "iterations", None)
    if is_beta and len(turns) > 1:
        assert len(iterations) == len(turns), (iterations, len(turns))
        for count in ("input_tokens", "output_tokens"):
            total = sum(getattr(one, count) for one in iterations)
            assert total == getattr(message.usage, count), (message.usage, iterations)


def check_next(message, question, place, streamed, messages, **arguments):
    """Sends the message back with a question. The model must get what it had, and its answer."""
    known = asked()[-1]["messages"]
    script(say("Indeed. [[2]]"))
    history = [*messages, assistant(message), user(question)]
    after = ask(place, streamed, history, **arguments)
    assert text_of(after).startswith("Indeed."), after
    (body,) = asked()
    got = body["messages"]
    assert got[: len(known)] == known, (got, known)
    assert [one["role"] for one in got[len(known):]] == ["assistant", "user"], got
    return after


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def kinds_of(message):
    return [block.type for block in message.content]


def told(body):
    """Returns the texts of the tool results in a request to the model."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def refused(streamed, status, place, *arguments, **named):
    """Returns the words with which a request is refused. No model may be asked."""
    script()
    try:
        ask(place, streamed, *arguments, **named)
    except anthropic.APIStatusError as raised:
        assert raised.status_code == status, raised
        assert not records(), records()
        return raised.body["error"]["message"]
    raise AssertionError("the request was not refused")


def transcript(message):
    """Returns an answer as lines for people."""
    lines = []
    for block in message.content:
        if block.type == "text":
            lines.append(f"text             {block.text}")
        elif block.type in CALLS:
            lines.append(f"{block.type:<16} {block.name} {json.dumps(block.input)}")
        elif block.type == "mcp_tool_result":
            mark = " error" if block.is_error else ""
            text = " ".join(part.text for part in block.content)
            lines.append(f"{block.type:<16}{mark} {' '.join(text.split())}")
        else:
            lines.append(block.type)
    return "\n".join([*lines, f"stop_reason      {message.stop_reason}"])
