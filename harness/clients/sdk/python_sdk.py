"""The official Python SDK in front of Creole.

    python python_sdk.py BASE_URL DEMO_URL

BASE_URL is the gateway, DEMO_URL the demo model behind it (its records show what arrived there).
Works with every major version of the SDK; what an old one does not have is printed as `not there`.
The last line is `N passed, N failed`.
"""
import json
import os
import re
import sys
import traceback
import urllib.request
import warnings

import anthropic
from anthropic import Anthropic

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from as_chat import as_chat

BASE, DEMO = sys.argv[1], sys.argv[2]
MODEL = "demo"
warnings.simplefilter("ignore", DeprecationWarning)
MAJOR = int(anthropic.__version__.split(".")[0])
client = Anthropic(base_url=BASE, api_key="sk-test", max_retries=0, timeout=30)
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
tests = []


def test(function):
    tests.append(function)
    return function


def user(text):
    return {"role": "user", "content": text}


def records():
    """What reached the demo model, oldest first."""
    with urllib.request.urlopen(DEMO + "/demo/requests") as answer:
        return json.load(answer)["requests"]


def sent():
    """The bodies that reached the demo model, oldest first."""
    return [as_chat(json.loads(record["body"])) for record in records()]


def forget():
    urllib.request.urlopen(urllib.request.Request(DEMO + "/demo/requests", method="DELETE"))


def ask(stream, **arguments):
    arguments = {"model": MODEL, "max_tokens": 4096, **arguments}
    if not stream:
        return client.messages.create(**arguments)
    with client.messages.stream(**arguments) as events:
        kinds = [event.type for event in events]
        message = events.get_final_message()
    assert kinds[0] == "message_start" and "message_stop" in kinds, kinds
    return message


def both(function):
    """Runs a test once with whole answers and once with streams."""
    for stream in (False, True):
        def run(stream=stream):
            function(stream)
        run.__name__ = function.__name__ + ("_streamed" if stream else "")
        tests.append(run)
    return function


@both
def a_text_answer_has_usage_and_a_stop_reason(stream):
    message = ask(stream, system="Be brief.", messages=[user("hello")])
    assert message.role == "assistant" and message.model == MODEL
    assert message.id.startswith("msg_"), message.id
    assert message.stop_reason == "end_turn"
    assert message.content and message.content[0].type == "text" and message.content[0].text
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0


def tool_loop(stream, prompt, turns_wanted, calls_each):
    messages, turns = [user(prompt)], 0
    ids = set()
    while True:
        message = ask(stream, tools=[WEATHER], messages=messages)
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            assert message.stop_reason == "end_turn", message.stop_reason
            break
        turns += 1
        assert turns <= turns_wanted, "the loop does not end"
        assert message.stop_reason == "tool_use"
        assert len(calls) == calls_each, calls
        for call in calls:
            assert call.id.startswith("toolu_") and call.id not in ids, call.id
            ids.add(call.id)
            assert call.name == "get_weather"
            assert isinstance(call.input["city"], str) and isinstance(call.input["days"], int)
        messages.append({"role": "assistant", "content": message.content})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"sunny {number}"}
            for number, call in enumerate(calls)
        ]
        messages.append({"role": "user", "content": results})
    assert turns == turns_wanted, turns
    text = "".join(block.text for block in message.content if block.type == "text")
    assert "sunny" in text, text


@both
def a_tool_loop_of_five_turns_ends_with_the_answer(stream):
    tool_loop(stream, "demo:turns 5", 5, 1)


@both
def two_parallel_calls_are_answered_together(stream):
    forget()
    tool_loop(stream, "demo:parallel 2", 1, 2)
    roles = [message["role"] for message in sent()[-1]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"], roles


@both
def an_image_and_a_document_arrive(stream):
    forget()
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    text = {"type": "text", "media_type": "text/plain", "data": "the secret word is xyzzy"}
    content = [
        {"type": "image", "source": source},
        {"type": "document", "source": text, "title": "Notes"},
        {"type": "text", "text": "what is this?"},
    ]
    message = ask(stream, messages=[user(content)])
    assert message.content[0].text
    arrived = json.dumps(sent()[-1]["messages"])
    assert "data:image/png;base64," + PIXEL in arrived, arrived
    assert "xyzzy" in arrived and "Notes" in arrived, arrived


@both
def thinking_comes_out_and_goes_back(stream):
    forget()
    thinking = {"type": "enabled", "budget_tokens": 1024}
    first = ask(stream, thinking=thinking, messages=[user("demo:reason")])
    assert first.content[0].type == "thinking" and first.content[0].thinking
    assert first.content[0].signature, "a signature is never empty"
    assert first.content[-1].type == "text"
    history = [user("demo:reason"), {"role": "assistant", "content": first.content}]
    ask(stream, thinking=thinking, messages=history + [user("go on")])
    back = [message for message in sent()[-1]["messages"] if message["role"] == "assistant"]
    assert back[0].get("reasoning_content") == first.content[0].thinking, back


def up_to_the_end(body):
    """A request up to the end of its conversation, which the next one extends."""
    start = re.search(r'"(messages|input)":', body).end()
    return body[:json.JSONDecoder().raw_decode(body, start)[1] - 1]


def reasoning_item(record):
    """The bytes of the reasoning item that answered a request in Responses: the same request has the same answer."""
    asked = urllib.request.Request(DEMO + record["path"], record["body"].encode(), method="POST")
    with urllib.request.urlopen(asked) as answer:
        text = answer.read().decode()
    found = None
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        if value.get("type") == "reasoning":
            # A stream has it several times; complete in the end.
            found = text[start:end]
    return found


@both
def ten_turns_extend_each_request_and_keep_every_reasoning_item(stream):
    forget()
    messages, items = [user("demo:turns 10")], []
    for turn in range(11):
        message = ask(
            stream, tools=[WEATHER], messages=messages, thinking={"type": "enabled", "budget_tokens": 1024}
        )
        last = message.content[-1]
        assert last.type == ("tool_use" if turn < 10 else "text"), message.content
        messages.append({"role": "assistant", "content": message.content})
        if turn < 10:
            result = {"type": "tool_result", "tool_use_id": last.id, "content": f"sunny {turn}"}
            messages.append(user([result]))
    requests = records()
    assert len(requests) == 11, len(requests)
    for before, after in zip(requests, requests[1:]):
        assert after["body"].startswith(up_to_the_end(before["body"])), (before["body"], after["body"])
    for record in requests:
        # Only Responses has such items.
        if not record["path"].endswith("/responses"):
            continue
        rest = record["body"]
        for item in items:
            assert item in rest, (item, record["body"])
            rest = rest.split(item, 1)[1]
        items.append(reasoning_item(record))
        assert "encrypted_content" in items[-1], items
    assert len(set(items)) == len(items), items


@test
def errors_have_the_classes_of_their_status():
    for status, error in {
        400: anthropic.BadRequestError,
        401: anthropic.AuthenticationError,
        403: anthropic.PermissionDeniedError,
        404: anthropic.NotFoundError,
        429: anthropic.RateLimitError,
        500: anthropic.InternalServerError,
        # 529 has a class of its own in some releases.
        503: (anthropic.InternalServerError, getattr(anthropic, "OverloadedError", ())),
    }.items():
        for stream in (False, True):
            try:
                ask(stream, messages=[user(f"demo:error {status}")])
            except error as raised:
                assert raised.body["type"] == "error", raised.body
                assert raised.body["error"]["type"].endswith("_error"), raised.body
                assert raised.request_id and raised.request_id.startswith("req_")
            else:
                raise AssertionError(f"no error for {status}")


@test
def a_bad_request_names_the_path():
    try:
        client.messages.create(
            model=MODEL, max_tokens=10, messages=[{"role": "user", "content": [{"type": "text"}]}]
        )
    except anthropic.BadRequestError as raised:
        assert "messages" in raised.body["error"]["message"], raised.body
    else:
        raise AssertionError("accepted")


@test
def an_upstream_error_in_mid_stream_is_raised():
    try:
        ask(True, messages=[user("demo:error-mid")])
    except anthropic.APIError as raised:
        assert "message" in str(raised) or str(raised), raised
    else:
        raise AssertionError("a broken stream looked like success")


@test
def a_stream_that_ends_early_is_not_success():
    try:
        ask(True, messages=[user("demo:unfinished")])
    except anthropic.APIError as raised:
        assert "ended before completion" in str(raised), raised
    else:
        raise AssertionError("a broken stream looked like success")


@test
def a_connection_that_is_cut_is_not_success():
    finished = False
    try:
        with client.messages.stream(
            model=MODEL, max_tokens=100, messages=[user("demo:cut")]
        ) as events:
            for event in events:
                finished |= event.type == "message_stop"
    except Exception as raised:  # an error event, or the HTTP library's own error for a cut body
        module = type(raised).__module__.split(".")[0]
        assert module == "anthropic" or module.startswith("http"), raised
    else:
        raise AssertionError("a broken stream looked like success")
    assert not finished


@test
def structured_output_is_parsed():
    if not hasattr(client.messages, "parse"):
        return "not there"
    from pydantic import BaseModel

    class Place(BaseModel):
        city: str
        temperature: int

    message = client.messages.parse(
        model=MODEL, max_tokens=200, messages=[user("give me a place")], output_format=Place
    )
    assert isinstance(message.parsed_output, Place), message
    assert sent()[-1]["response_format"]["type"] == "json_schema"


@both
def the_tool_runner_replays_its_thread(stream):
    if not hasattr(client.beta.messages, "tool_runner"):
        return "not there"
    from anthropic import beta_tool

    asked = []

    @beta_tool
    def get_weather(city: str, days: int) -> str:
        """The weather of a city"""
        asked.append(city)
        return f"sunny for {days} days"

    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=200, tools=[get_weather], messages=[user("demo:turns 2")],
        **({"stream": True} if stream else {}),
    )
    last = None
    for message in runner:
        last = message.get_final_message() if stream else message
    assert len(asked) == 2, asked
    assert last.stop_reason == "end_turn" and "sunny" in last.content[-1].text, last


@both
def old_results_are_cleared_and_the_prompt_keeps_its_beginning(stream):
    forget()
    of_uses = lambda value: {"type": "tool_uses", "value": value}
    edit = {"type": "clear_tool_uses_20250919", "trigger": of_uses(3), "keep": of_uses(1)}
    arguments = {
        "model": MODEL, "max_tokens": 200, "tools": [WEATHER], "context_management": {"edits": [edit]},
        "betas": ["context-management-2025-06-27"],
    }
    messages, cleared = [user("demo:turns 7")], []
    while True:
        if stream:
            with client.beta.messages.stream(messages=messages, **arguments) as events:
                message = events.get_final_message()
        else:
            message = client.beta.messages.create(messages=messages, **arguments)
        applied = message.context_management.applied_edits
        assert all(edit.cleared_input_tokens > 0 for edit in applied), applied
        cleared.append(sum(edit.cleared_tool_uses for edit in applied))
        call = message.content[-1]
        if call.type != "tool_use":
            break
        result = {"type": "tool_result", "tool_use_id": call.id, "content": f"sunny {len(cleared)} " * 50}
        messages += [{"role": "assistant", "content": message.content}, user([result])]
    assert cleared == [0, 0, 0, 0, 3, 3, 3, 6], cleared
    bodies = [body["messages"] for body in sent()]
    for number, (before, after) in enumerate(zip(bodies, bodies[1:]), 1):
        goes_on = after[:len(before)] == before
        assert goes_on == (cleared[number] == cleared[number - 1]), (number, before, after)
    del arguments["max_tokens"]
    counted = client.beta.messages.count_tokens(messages=messages, **arguments)
    assert counted.context_management.original_input_tokens > counted.input_tokens, counted


@test
def tokens_are_counted_and_models_listed():
    if not hasattr(client.messages, "count_tokens"):
        return "not there"
    assert client.messages.count_tokens(model=MODEL, messages=[user("hello")]).input_tokens > 0
    assert isinstance([model.id for model in client.models.list()], list)


def main():
    print(f"version anthropic {anthropic.__version__}")
    failed = 0
    for run in tests:
        try:
            note = run()
            print(f"ok {run.__name__}{' (' + note + ')' if note else ''}")
        except Exception:
            failed += 1
            print(f"FAIL {run.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
