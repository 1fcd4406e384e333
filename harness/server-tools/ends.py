"""Checks of how answers end: after ten turns, at a limit, with a dead server, and with a client that leaves."""
import subprocess
import sys
import time
from pathlib import Path

import anthropic
from anthropic import beta_tool

from place import (
    DEMO, URLS, ask, asked, assistant, call, check_next, client, fetch, kinds_of, mcp, records, refused, say,
    script, text_of, told, user,
)

checks = []
PATIENCE_S = 20


def check(function):
    checks.append(function)
    return function


def notebook(method="GET"):
    return fetch(URLS["notebook"].replace("/mcp", "/state"), method)


def results(message):
    return [
        (block.is_error, "".join(part.text for part in block.content))
        for block in message.content if block.type == "mcp_tool_result"
    ]


@check
def nine_calls_and_an_answer_are_ten_turns_of_one_message(streamed):
    messages = [user("Add up.")]
    script(*[call("mcp__mcp-json__add", a=n, b=0) for n in range(9)], say("Done."))
    message = ask("on", streamed, messages, **mcp("mcp-json"))
    assert results(message) == [(False, str(n)) for n in range(9)], message
    assert (message.stop_reason, text_of(message)) == ("end_turn", "Done."), message
    turns = asked()
    assert len(turns) == 10, len(turns)
    for before, after in zip(turns, turns[1:]):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]
    check_next(message, "Sure?", "on", streamed, messages, **mcp("mcp-json"))


@check
def in_the_last_turn_the_model_must_answer(streamed):
    messages = [user("Add up.")]
    script(*[call("mcp__mcp-json__add", a=n, b=0) for n in range(12)])
    message = ask("on", streamed, messages, **mcp("mcp-json"))
    turns = asked()
    assert len(turns) == 10 and turns[-1]["tool_choice"] == "none", turns[-1]
    assert [turn.get("tool_choice") for turn in turns[:9]] == [None] * 9, turns
    assert len(results(message)) == 9 and message.stop_reason == "end_turn", message
    assert text_of(message), message
    check_next(message, "Sure?", "on", streamed, messages, **mcp("mcp-json"))


@check
def a_call_that_the_time_left_out_is_run_when_the_pause_is_continued(streamed):
    messages = [user("Wait, then add.")]
    script(call("mcp__mcp-json__add", a=1, b=1), call("mcp__mcp-json__add", _late_ms=1800, a=2, b=2))
    message = ask("short", streamed, messages, **mcp("mcp-json"))
    assert message.stop_reason == "pause_turn", message
    assert kinds_of(message) == ["mcp_tool_use", "mcp_tool_result", "mcp_tool_use"], message
    pending = message.content[-1]
    messages.append(assistant(message))
    script(call("mcp__mcp-json__add", a=3, b=3), say("6."))
    after = ask("short", streamed, messages, **mcp("mcp-json"))
    assert kinds_of(after) == ["mcp_tool_result", "mcp_tool_use", "mcp_tool_result", "text"], after
    assert after.content[0].tool_use_id == pending.id, (pending, after)
    assert results(after) == [(False, "4"), (False, "6")], after
    assert after.stop_reason == "end_turn", after
    assert told(asked()[-1]) == ["2", "4", "6"], told(asked()[-1])
    check_next(after, "Sure?", "short", streamed, messages, **mcp("mcp-json"))


@check
def a_tool_that_outlasts_the_time_of_the_answer_is_told_so(streamed):
    notebook("DELETE")
    messages = [user("Wait.")]
    script(call("mcp__notebook__wait", seconds=4))
    message = ask("short", streamed, messages, **mcp("notebook"))
    ((is_error, words),) = results(message)
    assert is_error and "in time" in words, message
    assert (message.stop_reason, len(asked())) == ("pause_turn", 1), message
    messages.append(assistant(message))
    script(say("It took too long."))
    after = ask("short", streamed, messages, **mcp("notebook"))
    assert told(asked()[0]) == [f"Error: {words}"], asked()
    assert [one["name"] for one in notebook()["calls"]] == ["wait"], notebook()
    check_next(after, "Sure?", "short", streamed, messages, **mcp("notebook"))


@check
def a_model_that_only_calls_is_paused_and_continued(streamed):
    look = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
    request = mcp("mcp-json")
    request["tools"] = [*request["tools"], look]
    messages = [user("Add up.")]
    # With a tool of the client the model may still call in its last turn, and this one does.
    script(*[call("mcp__mcp-json__add", a=n, b=0) for n in range(3)])
    message = ask("short", streamed, messages, **request)
    assert (message.stop_reason, len(asked())) == ("pause_turn", 3), message
    assert results(message) == [(False, "0"), (False, "1")], message
    assert kinds_of(message)[-1] == "mcp_tool_result", message
    messages.append(assistant(message))
    known = asked()[-1]["messages"]
    script(say("One."))
    after = ask("short", streamed, messages, **request)
    assert (after.stop_reason, text_of(after)) == ("end_turn", "One."), after
    assert asked()[0]["messages"] == known, asked()
    check_next(after, "Sure?", "short", streamed, messages, **request)


@check
def the_tool_loop_of_the_sdk_goes_on_after_a_pause(streamed):
    @beta_tool
    def look() -> str:
        """Looks."""
        return "a tree"

    request = mcp("mcp-json")
    request["tools"] = [look, *request["tools"]]
    script(
        call("mcp__mcp-json__add", a=1, b=1), call("mcp__mcp-json__add", _late_ms=1800, a=2, b=2),
        call("look"), say("A tree."),
    )
    runner = client("short").beta.messages.tool_runner(
        model="demo", max_tokens=2000, messages=[user("Add, then look.")], stream=streamed, **request
    )
    answers = [answer.get_final_message() if streamed else answer for answer in runner]
    assert [(answer.stop_reason, kinds_of(answer)) for answer in answers] == [
        ("pause_turn", ["mcp_tool_use", "mcp_tool_result", "mcp_tool_use"]),
        ("tool_use", ["mcp_tool_result", "tool_use"]),
        ("end_turn", ["text"]),
    ], answers
    assert told(asked()[-1]) == ["2", "4", "a tree"], asked()[-1]


class Doomed:
    """A notebook in a process of its own, which ends when a model tells it to."""

    def __enter__(self):
        port = URLS["doomed"].split(":")[2].split("/")[0]
        script = Path(__file__).with_name("notebook.py")
        self.process = subprocess.Popen([sys.executable, "-B", str(script), port])
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                fetch(URLS["doomed"].replace("/mcp", "/state"))
                return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the notebook does not answer")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@check
def a_server_that_dies_between_two_calls_is_an_error_and_the_answer_goes_on(streamed):
    messages = [user("Work.")]
    with Doomed() as doomed:
        script(
            call("mcp__doomed__leave"),
            call("mcp__doomed__get_state", _late_ms=1000),
            call("mcp__mcp-json__add", a=1, b=2),
            say("It is gone."),
        )
        message = ask("on", streamed, messages, **mcp("doomed", "mcp-json"))
        assert doomed.process.wait(PATIENCE_S) == 1
    first, second, third = results(message)
    assert first == (False, "bye"), message
    assert second[0] and "doomed" in second[1], second
    assert third == (False, "3"), third
    assert (message.stop_reason, text_of(message)) == ("end_turn", "It is gone."), message
    assert told(asked()[-1])[1] == f"Error: {second[1]}", told(asked()[-1])


@check
def a_server_that_dies_in_a_call_is_an_error_and_its_call_is_not_repeated(streamed):
    messages = [user("Work.")]
    with Doomed() as doomed:
        script(call("mcp__doomed__leave", before=True), say("It is gone."))
        message = ask("on", streamed, messages, **mcp("doomed"))
        assert doomed.process.wait(PATIENCE_S) == 1
    ((is_error, words),) = results(message)
    assert is_error and "doomed" in words, message
    assert text_of(message) == "It is gone.", message
    words = refused(streamed, 502, "on", messages, **mcp("doomed"))
    assert 'server "doomed" did not give its tools' in words, words


@check
def nothing_more_is_asked_when_the_client_leaves_while_a_tool_runs(streamed):
    notebook("DELETE")
    script(
        call("mcp__notebook__wait", seconds=2), call("mcp__notebook__create_cell", source="1"), say("Done.")
    )
    leave(streamed, lambda event: event.type == "content_block_stop", 1)
    time.sleep(3)
    assert [one["name"] for one in notebook()["calls"]] == ["wait"], notebook()
    assert len(asked()) == 1, asked()


@check
def nothing_more_is_asked_when_the_client_leaves_while_the_model_writes(streamed):
    notebook("DELETE")
    slowly = "demo:slow 200\ndemo:say one two three four five six seven eight nine ten"
    slowly = slowly if streamed else "demo:late 2000"
    script(
        call("mcp__notebook__get_state"),
        slowly + "\n" + call("mcp__notebook__create_cell", source="1"),
        say("Done."),
    )
    leave(streamed, lambda event: event.type == "content_block_start" and event.content_block.type == "text", 1)
    time.sleep(3)
    assert [one["name"] for one in notebook()["calls"]] == ["get_state"], notebook()
    assert [record["ended"] for record in records()] == ["complete", "client_gone"], [
        record["ended"] for record in records()
    ]


def leave(streamed, is_enough, patience_s):
    """Asks, and closes the connection: a stream after an event, a whole answer after some time."""
    request = {"model": "demo", "max_tokens": 2000, "messages": [user("Work.")], **mcp("notebook")}
    if not streamed:
        try:
            client("on", timeout=patience_s).beta.messages.create(**request)
        except anthropic.APITimeoutError:
            return
        raise AssertionError("the answer came too early")
    with client("on").beta.messages.stream(**request) as stream:
        for event in stream:
            if is_enough(event):
                return
    raise AssertionError("the stream ended too early")
