"""What the guards prevent, with the official Python SDK and its tool loop.

    python guards.py HOST OFF_URL OFF_DEMO ON_URL ON_DEMO [DEFERRED_URL DEFERRED_DEMO]

Each scene runs twice: in front of a host whose guards are off, where the failure must happen, and in
front of one whose guards are on, where it must not. HOST (`envoy`, `worker`, `gateway`) says what the
host can do; the DEMO addresses are those of the demo models behind the hosts. `xtask/src/clients/guards.rs` has
the configurations. The scenes of streams run a third time where Envoy writes from a timer
(`deferred_flush`). The last line is `N passed, N failed`.
"""
import json
import logging
import sys
import time
import traceback
import urllib.request
import warnings

import anthropic
from anthropic import Anthropic, beta_tool

HOST = sys.argv[1]
MODEL = "demo"
# So long a client waits, and so often an agent asks, where nobody guards it.
PATIENCE_S = 4
TURNS_MAX = 12
# The limits of the configuration with guards.
STALL_S = 0.5
TOOL_TURNS_MAX = 9
WITHHOLD_AFTER = 6
# Envoy cannot ask an upstream again, nor write into a stream that is silent unless it is deferred.
ASKS_AGAIN = HOST != "envoy"

warnings.simplefilter("ignore", DeprecationWarning)
logging.disable(logging.CRITICAL)
LOOK = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
scenes = []
of_streams = []


class Place:
    """A host, and the demo model behind it."""

    def __init__(self, name, url, demo):
        self.name, self.url, self.demo = name, url, demo
        self.guarded = name != "off"
        self.writes_into_silence = HOST != "envoy" or name == "deferred"
        self.client = self.with_retries(0)

    def with_retries(self, retries):
        return Anthropic(
            base_url=self.url, api_key="sk-test", max_retries=retries, timeout=PATIENCE_S
        )

    def ask(self, messages, client=None, **arguments):
        """The answer and its headers."""
        raw = (client or self.client).messages.with_raw_response.create(
            model=MODEL, max_tokens=200, messages=messages, tools=[LOOK], **arguments
        )
        return raw.parse(), raw.headers

    def demo_request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.demo + path, data=data, method=method)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def sent(self):
        """The bodies that reached the demo model, oldest first."""
        records = json.loads(self.demo_request("GET", "/demo/requests"))["requests"]
        return [json.loads(record["body"]) for record in records]


def scene(function):
    scenes.append(function)
    return function


def stream_scene(function):
    of_streams.append(function)
    return scene(function)


def user(content):
    return {"role": "user", "content": content}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def call(id, input=None):
    return {"type": "tool_use", "id": id, "name": "look", "input": input or {}}


def result(id, content):
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def refused_for_ever(place, history):
    """Without a guard, the conversation is refused, whatever the user says next."""
    for more in ([], [user("please")], [user("hello?")]):
        try:
            place.ask(history + more)
        except anthropic.BadRequestError as raised:
            assert "tool" in raised.body["error"]["message"], raised.body
        else:
            raise AssertionError("a broken conversation was accepted")


def repaired(place, history):
    message, headers = place.ask(history)
    assert message.stop_reason == "end_turn" and text_of(message), message
    assert headers["x-creole-guard"] == "pairing", headers
    return place.sent()[-1]["messages"]


def run_tool_loop(place, tool):
    """The SDK's own loop with a model that calls the tool again and again: the answers."""
    runner = place.client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=200,
        tools=[tool],
        messages=[user("demo:turns 50\ndemo:input {}")],
        max_iterations=TURNS_MAX,
    )
    answers = list(runner)
    if not place.guarded:
        assert len(answers) == TURNS_MAX, len(answers)
        assert answers[-1].stop_reason == "tool_use", answers[-1]
    else:
        assert answers[-1].stop_reason == "end_turn", answers[-1]
        assert text_of(answers[-1]), answers[-1]
        # The last turn had no tools, so the model had to say what it knows.
        assert not place.sent()[-1].get("tools"), place.sent()[-1]
    return answers


def results_sent(place):
    messages = place.sent()[-1]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


@scene
def a_shell_call_without_its_command_does_not_go_round_for_ever(place):
    @beta_tool
    def shell(command: str) -> str:
        """Runs a command."""
        return f"ran {command}"

    answers = run_tool_loop(place, shell)
    told = "The required fields are: command."
    if place.guarded:
        assert len(answers) == WITHHOLD_AFTER + 1, len(answers)
        assert told in results_sent(place)[-1], results_sent(place)
    else:
        assert told not in json.dumps(results_sent(place))


@scene
def the_same_call_with_the_same_result_does_not_go_round_for_ever(place):
    @beta_tool
    def look() -> str:
        """Looks."""
        return "a.txt"

    answers = run_tool_loop(place, look)
    if place.guarded:
        assert len(answers) == WITHHOLD_AFTER + 1, len(answers)
        assert "was already called" in results_sent(place)[-1], results_sent(place)


@scene
def an_agent_that_always_finds_something_new_comes_to_an_end(place):
    pages = iter(range(1000))

    @beta_tool
    def next_page() -> str:
        """Turns the page."""
        return f"page {next(pages)}"

    answers = run_tool_loop(place, next_page)
    if place.guarded:
        assert len(answers) == TOOL_TURNS_MAX + 1, len(answers)


@scene
def the_tool_turns_are_counted_in_a_header(place):
    history = [user("go"), assistant(call("toolu_1")), user([result("toolu_1", "a.txt")])]
    _, headers = place.ask(history)
    expected = f"1/{TOOL_TURNS_MAX}" if place.guarded else None
    assert headers.get("x-creole-tool-turn") == expected, headers


@scene
def errors_that_n8n_does_not_mark_are_errors(place):
    """n8n: each call alone, its id again inside the input, errors as JSON without `is_error`."""
    history = [user("demo:turns 50\ndemo:input {}")]
    for turn in range(TURNS_MAX):
        message, headers = place.ask(history)
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            break
        (made,) = calls
        history += [
            assistant(call(made.id, {"id": made.id})),
            user([result(made.id, '[{"error":"No prompt specified"}]')]),
        ]
    if place.guarded:
        assert turn == WITHHOLD_AFTER and text_of(message), (turn, message)
        assert headers["x-creole-guard"] == "breaker", headers
    else:
        assert turn == TURNS_MAX - 1, turn


@scene
def a_result_that_n8n_dropped_does_not_block_the_conversation(place):
    history = [user("Look"), assistant(call("toolu_1")), user("What is it?")]
    if not place.guarded:
        return refused_for_ever(place, history)
    sent = repaired(place, history)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"], sent
    assert "missing" in sent[2]["content"], sent


@scene
def a_call_that_n8n_forgot_does_not_block_the_conversation(place):
    history = [user([result("toolu_1", "a.txt")]), assistant({"type": "text", "text": "One file."}),
               user("Which?")]
    if not place.guarded:
        return refused_for_ever(place, history)
    sent = repaired(place, history)
    assert "a.txt" in json.dumps(sent[0]) and sent[0]["role"] == "user", sent


@scene
def an_interrupted_parallel_branch_does_not_block_the_conversation(place):
    history = [
        user("Look twice"),
        assistant(call("toolu_1"), call("toolu_2")),
        user([result("toolu_1", "a.txt"), {"type": "text", "text": "Stop. What is there?"}]),
    ]
    if not place.guarded:
        return refused_for_ever(place, history)
    sent = repaired(place, history)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert sent[2]["content"] == "a.txt" and "missing" in sent[3]["content"], sent


def chunk(delta):
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return "data: " + json.dumps({**body, "choices": [choice]}) + "\n\n"


def watch(place, **arguments):
    """Reads a stream that must fail: the events, what the client has by then, and the error."""
    kinds = []
    started = time.monotonic()
    with place.client.messages.stream(
        model=MODEL, max_tokens=200, tools=[LOOK], **arguments
    ) as stream:
        try:
            for event in stream:
                kinds.append(event.type)
        except Exception as raised:  # an error event, or the HTTP library's own error
            assert "message_stop" not in kinds, kinds
            took = time.monotonic() - started
            return kinds, stream.current_message_snapshot, raised, took
    raise AssertionError(f"a broken stream looked like success: {kinds}")


@stream_scene
def an_orphan_after_a_cut_stream_does_not_block_the_conversation(place):
    function = {"name": "look", "arguments": '{"wh'}
    made = {"index": 0, "id": "call_cut12345", "type": "function", "function": function}
    pieces = [
        {"data": chunk({"role": "assistant", "tool_calls": [made]})},
        {"data": ": cut\n\n", "delay_ms": 150},
    ]
    stream = [["content-type", "text/event-stream"]]
    script = [{"when": "Look here", "headers": stream, "pieces": pieces, "end": "abort"}]
    place.demo_request("POST", "/demo/script", script)
    kinds, snapshot, _, _ = watch(place, messages=[user("Look here")])
    # Claude Code runs every call whose block was closed.
    assert "content_block_stop" not in kinds, kinds
    (begun,) = [block for block in snapshot.content if block.type == "tool_use"]
    # The client keeps what it saw, and its user writes on.
    history = [user("Look here"), assistant(call(begun.id)), user("What is it?")]
    if not place.guarded:
        return refused_for_ever(place, history)
    repaired(place, history)


@scene
def a_refusal_that_comes_in_spite_of_repairs_is_tried_again(place):
    # Mistral takes no user message after a result.
    refusal = {
        "object": "error",
        "message": "Unexpected role 'user' after role 'tool'",
        "type": "invalid_request_message_order",
        "code": "3230",
    }
    pieces = [{"data": json.dumps(refusal)}]
    script = [{
        "when": "And why?",
        "status": 400,
        "headers": [["content-type", "application/json"]],
        "pieces": pieces,
    }]
    history = [
        user("Look"), assistant(call("toolu_1")), user([result("toolu_1", "a.txt")]),
        user("And why?"),
    ]
    place.demo_request("POST", "/demo/script", script)
    if not place.guarded:
        try:
            place.ask(history)
        except anthropic.BadRequestError as raised:
            assert "Unexpected role" in str(raised), raised
            return
        raise AssertionError("accepted")
    if not ASKS_AGAIN:
        # The SDK does it: the host tells it to.
        message, _ = place.ask(history, client=place.with_retries(1))
        assert text_of(message), message
        place.demo_request("POST", "/demo/script", script)
        try:
            place.ask(history)
        except anthropic.APIStatusError as raised:
            assert raised.status_code == 529, raised
            assert raised.body["error"]["type"] == "overloaded_error", raised.body
            assert raised.response.headers["x-should-retry"] == "true"
            return
        raise AssertionError("accepted")
    message, headers = place.ask(history)
    assert text_of(message), message
    assert headers["x-creole-guard"] == "pairing", headers
    assert headers["x-creole-warnings"] == "pairing_refused", headers
    sent = place.sent()[-1]["messages"]
    assert [one["role"] for one in sent] == ["user"] and "gave: a.txt" in json.dumps(sent), sent


@scene
def a_stall_before_the_first_byte_is_noticed(place):
    started = time.monotonic()
    try:
        place.ask([user("demo:late 60000")])
    except anthropic.APITimeoutError:
        # The client's own patience has run out; nobody told it why.
        assert not place.guarded
    except anthropic.APIStatusError as raised:
        assert place.guarded, raised
        assert raised.status_code == 504, raised
        assert raised.body["error"]["type"] == "timeout_error", raised.body
        assert raised.response.headers["x-creole-guard"] == "stall"
        assert STALL_S <= time.monotonic() - started < PATIENCE_S - 1
    else:
        raise AssertionError("an upstream that is silent looked like success")


@stream_scene
def a_stall_in_mid_stream_is_noticed(place):
    kinds, _, raised, took = watch(place, messages=[user("demo:tool look\ndemo:hang")])
    # Claude Code runs every call whose block was closed.
    assert "content_block_stop" not in kinds, kinds
    if not place.guarded:
        assert "timeout" in type(raised).__name__.lower(), repr(raised)
        assert took >= PATIENCE_S, took
        return
    assert STALL_S <= took < PATIENCE_S - 1, took
    if place.writes_into_silence:
        assert isinstance(raised, anthropic.APIStatusError), repr(raised)
        assert raised.body["error"]["type"] == "timeout_error", raised.body
    else:
        # The connection breaks, which no client takes for an answer.
        assert "timeout" not in type(raised).__name__.lower(), repr(raised)


@stream_scene
def a_stream_that_is_slow_is_no_stall(place):
    words = "one two three four five six seven eight nine ten"
    with place.client.messages.stream(
        model=MODEL, max_tokens=200, messages=[user(f"demo:slow 120\ndemo:say {words}")]
    ) as stream:
        message = stream.get_final_message()
    assert (text_of(message), message.stop_reason) == (words, "end_turn"), message


def main():
    names = iter(["off", "on", "deferred"])
    addresses = iter(sys.argv[2:])
    places = [Place(*place) for place in zip(names, addresses, addresses)]
    passed = failed = 0
    for run in scenes:
        for place in places:
            if place.name == "deferred" and run not in of_streams:
                continue
            name = f"{run.__name__} (guards {place.name})"
            place.demo_request("DELETE", "/demo/script")
            place.demo_request("DELETE", "/demo/requests")
            try:
                run(place)
                passed += 1
                print(f"ok   {name}")
            except Exception:
                failed += 1
                print(f"FAIL {name}")
                traceback.print_exc(file=sys.stdout)
    print(f"anthropic {anthropic.__version__}, python")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
