"""The official Python SDK against a host in front of a real server that has the tiny model.

    checks.py HOST BASE SERVER DESCRIPTION PID PROTOCOL

HOST is its name, BASE its address, SERVER the server's, DESCRIPTION the server's `server.json`, PID the process that
started it, PROTOCOL what the host speaks with the server. The model was taught its answers (README.md), so a check compares whole texts, inputs and counts.
Each check runs with whole answers and with streams. A check that `lacks` of the description names, or names with
`(whole)` or `(streamed)` behind it, must fail: a server that has learnt to do it is told.

Prints a line `ok NAME` or `FAIL NAME` for each check, and last `N passed, N failed`.
"""
import json
import sys
import time
import traceback

from anthropic import Anthropic, BadRequestError

from answers import CODE, COUNT, EMOJI, FILE, GREETING, NEXT_STEP, WEATHER, WRITE_FILE
from occupied import Occupied

HOST, BASE, SERVER, DESCRIPTION, PID, PROTOCOL = sys.argv[1:7]
with open(DESCRIPTION, encoding="utf-8") as file:
    TOLD = json.load(file)
# `responses` has the members that are different over Responses.
TOLD.update(TOLD.get(PROTOCOL, {}))
LACKS = TOLD.get("lacks", {})
# What cannot be judged of this server, and why.
SKIPS = TOLD.get("skips", {})
MODEL = "tiny"
# The server is told not to end this one's answers by itself.
ENDLESS = "endless"
# More than a server generates within these times.
ENDLESS_TOKENS = 4000
# So soon a server that nobody waits for has to be idle.
IDLE_S = 1.0
# So soon an answer whose text is complete has to end.
CUT_S = 3.0

# Envoy does not ask again where a server closes a connection that was kept; the SDK does, unless told otherwise.
client = Anthropic(base_url=BASE, api_key="local", max_retries=2 if HOST == "envoy" else 0, timeout=60)
occupied = Occupied(SERVER, TOLD["occupied"], int(PID))
checks = []


def check(function):
    """Registers a check, once with whole answers and once with streams."""
    for stream in (False, True):
        checks.append((function.__name__ + ("_streamed" if stream else ""), function, stream))
    return function


def alone(function):
    """Registers a check that is about one kind of answer."""
    checks.append((function.__name__, lambda _: function(), False))
    return function


def user(content):
    return {"role": "user", "content": content}


def ask(stream, messages, **more):
    # Newer releases of the SDK have no parameter for the temperature; the API has.
    greedy = {"extra_body": {"temperature": 0}}
    thinking = {"type": "disabled"}
    arguments = {
        "model": MODEL, "max_tokens": 1000, "messages": messages, "thinking": thinking, **greedy, **more,
    }
    if isinstance(messages, str):
        arguments["messages"] = [user(messages)]
    if not stream:
        return client.messages.create(**arguments)
    with client.messages.stream(**arguments) as events:
        return events.get_final_message()


def parts(message):
    """The content: texts and thoughts as they are, calls as name and input."""
    found = []
    for block in message.content:
        if block.type == "tool_use":
            found.append((block.name, block.input))
        else:
            found.append(getattr(block, block.type))
    return found


def said(message, *expected, reason="end_turn"):
    assert parts(message) == list(expected), f"{parts(message)}\n  instead of {list(expected)}"
    assert message.stop_reason == reason, message.stop_reason


def results(message, *contents):
    calls = [block for block in message.content if block.type == "tool_use"]
    assert len(calls) == len(contents), calls
    return user([
        {"type": "tool_result", "tool_use_id": call.id, "content": content}
        for call, content in zip(calls, contents)
    ])


def answered(message):
    return {"role": "assistant", "content": message.content}


@check
def a_greeting_is_the_one_that_was_taught(stream):
    said(ask(stream, "Say hello."), GREETING)


@check
def words_come_back_as_they_were_sent(stream):
    said(ask(stream, "Repeat: marquin marfotashi", system="Be brief."), "marquin marfotashi")


@check
def emoji_scripts_and_joined_characters_arrive_whole(stream):
    said(ask(stream, "Show emoji."), EMOJI)


@check
def code_with_marks_and_quotes_arrives_as_it_is(stream):
    said(ask(stream, "Show code."), CODE)


@check
def a_conversation_goes_on(stream):
    said(ask(stream, [
        user("Say hello."), {"role": "assistant", "content": GREETING}, user("Repeat: tabadu"),
    ]), "tabadu")


def run_steps(stream, count):
    messages, ids = [user(f"Run {count} steps.")], set()
    for step in range(1, count + 1):
        message = ask(stream, messages, tools=[NEXT_STEP])
        said(message, ("next_step", {"step": step}), reason="tool_use")
        ids.add(message.content[0].id)
        messages += [answered(message), results(message, f"step {step} done")]
    said(ask(stream, messages, tools=[NEXT_STEP]), f"All {count} steps are done.")
    assert len(ids) == count, ids


@check
def a_loop_of_twelve_turns_counts_to_its_end(stream):
    run_steps(stream, 12)


@check
def a_short_loop_beside_other_tools_ends_too(stream):
    messages = [user("Run 2 steps.")]
    for step in (1, 2):
        message = ask(stream, messages, tools=[WEATHER, NEXT_STEP, WRITE_FILE])
        said(message, ("next_step", {"step": step}), reason="tool_use")
        messages += [answered(message), results(message, f"step {step} done")]
    said(ask(stream, messages, tools=[WEATHER, NEXT_STEP, WRITE_FILE]), "All 2 steps are done.")


@check
def parallel_calls_have_ids_of_their_own_and_their_results_go_back_in_order(stream):
    messages = [user("What is the weather in Paris, Oslo and Lima?")]
    message = ask(stream, messages, tools=[WEATHER])
    cities = [("get_weather", {"city": city}) for city in ("Paris", "Oslo", "Lima")]
    said(message, *cities, reason="tool_use")
    assert len({block.id for block in message.content}) == 3, message.content
    messages += [answered(message), results(message, "snow", "fog", "hot")]
    said(ask(stream, messages, tools=[WEATHER]), "It is snow, fog and hot.")


@check
def text_before_a_call_is_a_block_of_its_own(stream):
    message = ask(stream, "Please look up the weather in Rome and Cairo?", tools=[WEATHER])
    calls = [("get_weather", {"city": city}) for city in ("Rome", "Cairo")]
    text, *rest = parts(message)
    assert text.rstrip("\n") == "Let me look." and rest == calls, parts(message)
    assert message.stop_reason == "tool_use", message.stop_reason


@check
def a_file_with_quotes_escapes_and_emoji_arrives_byte_for_byte(stream):
    message = ask(stream, "Write /tmp/mardune.md", tools=[WRITE_FILE])
    said(message, ("write_file", {"path": "/tmp/mardune.md", "content": FILE}), reason="tool_use")


THINKING = {"type": "enabled", "budget_tokens": 1024}


@check
def a_thought_is_a_block_before_the_answer(stream):
    message = ask(stream, "Repeat: fobarine kodubava", max_tokens=2000, thinking=THINKING)
    assert [block.type for block in message.content] == ["thinking", "text"], message.content
    assert message.content[0].thinking.strip("\n") == "Repeat fobarine kodubava", message.content
    assert message.content[0].signature, message.content
    assert message.content[1].text == "fobarine kodubava", message.content


@check
def a_thought_before_a_call_goes_back_with_its_result(stream):
    asked = {"tools": [WEATHER], "thinking": THINKING, "max_tokens": 2000}
    messages = [user("What is the weather in Vienna?")]
    message = ask(stream, messages, **asked)
    thought, call = parts(message)
    assert thought.strip("\n") == "I need the weather of Vienna.", thought
    assert call == ("get_weather", {"city": "Vienna"}) and message.stop_reason == "tool_use", message
    messages += [answered(message), results(message, "windy")]
    message = ask(stream, messages, **asked)
    thought, text = parts(message)
    assert (thought.strip("\n"), text) == ("I have it.", "It is windy."), message


@check
def nothing_is_thought_where_it_was_not_asked_for(stream):
    message = ask(stream, "Show code.")
    said(message, CODE)
    assert message.usage.output_tokens < 40, message.usage


@check
def a_stop_sequence_cuts_the_text_before_it(stream):
    message = ask(stream, "Count.", stop_sequences=[", 13"])
    assert parts(message) == [COUNT[:COUNT.index(", 13")]], message.content


@check
def a_stop_sequence_is_told(stream):
    message = ask(stream, "Count.", stop_sequences=[", 13"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", ", 13"), message


@check
def more_stop_sequences_than_some_servers_take_all_count(stream):
    message = ask(stream, "Count.", stop_sequences=["zz", "yy", "xx", "ww", "vv", ", 21"])
    assert parts(message) == [COUNT[:COUNT.index(", 21")]], message.content


@check
def an_answer_goes_on_where_the_prefill_ends(stream):
    message = ask(stream, [user("Count."), {"role": "assistant", "content": "1, 2, 3,"}])
    text = parts(message)[0]
    assert text.lstrip(" ") == COUNT.removeprefix("1, 2, 3,").lstrip(" "), message.content


@check
def a_length_cuts_the_text_and_is_counted(stream):
    message = ask(stream, "Count.", max_tokens=20)
    text = parts(message)[0]
    assert COUNT.startswith(text) and len(text) > 10, text
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 20), message


@check
def a_length_that_cuts_a_call_is_told_and_shows_no_marks_of_it(stream):
    message = ask(stream, "Write /tmp/mardune.md", tools=[WRITE_FILE], max_tokens=40)
    assert message.stop_reason == "max_tokens", message
    shown = "".join(block.text for block in message.content if block.type == "text")
    assert "tool_call" not in shown and "arguments" not in shown, message.content


if "window" in TOLD:
    @check
    def a_prompt_beyond_the_window_is_told_in_words_that_clients_know(stream):
        try:
            ask(stream, "Repeat:" + " 1" * TOLD["window"])
        except BadRequestError as refused:
            error = refused.body["error"]
            assert error["type"] == "invalid_request_error", error
            assert "prompt is too long" in error["message"], error
        else:
            raise AssertionError("answered")


SHAPES = {
    "plain": {"messages": [user("Repeat: tabadu")]},
    "with a system prompt": {"messages": [user("Say hello.")], "system": "You are helpful."},
    "with tools": {"messages": [user("Run 3 steps.")], "tools": [NEXT_STEP, WRITE_FILE]},
    "with a history of calls": {
        "messages": [
            user("What is the weather in Paris and Rome?"),
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {"city": "Rome"}}]},
            user([
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "fog"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "hot \U0001F642"}]),
        ],
        "tools": [WEATHER],
    },
    "with thinking": {"messages": [user("Say hello.")], "thinking": THINKING},
    "with a prefill": {"messages": [user("Count."), {"role": "assistant", "content": "1, 2, 3,"}]},
}


def prompt_tokens(usage):
    """All tokens of a prompt: read, read from a cache, and written into one."""
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return usage.input_tokens + cached


def counted(name):
    shape = {"thinking": {"type": "disabled"}, **SHAPES[name]}
    told = client.messages.count_tokens(model=MODEL, **shape).input_tokens
    used = prompt_tokens(ask(False, **{"max_tokens": 1100, **shape}).usage)
    assert told == used, f"{told} told for {used}"


for shape in SHAPES:
    def run(shape=shape):
        counted(shape)
    run.__name__ = f"tokens_are_counted_exactly_{shape.replace(' ', '_')}"
    alone(run)


@check
def whole_and_streamed_answers_are_counted_alike(stream):
    usage = ask(stream, "Show emoji.").usage
    other = ask(not stream, "Show emoji.").usage
    assert prompt_tokens(usage) == prompt_tokens(other), (usage, other)
    assert usage.output_tokens == other.output_tokens > 10, (usage, other)


def becomes_idle():
    occupied.until(False, IDLE_S)


@alone
def a_client_that_leaves_a_stream_frees_the_server():
    with client.messages.stream(model=ENDLESS, max_tokens=ENDLESS_TOKENS, messages=[user("Count.")]) as events:
        for event in events:
            if event.type == "content_block_delta":
                break
        occupied.until(True, 2)
    becomes_idle()


@alone
def a_stop_sequence_that_the_server_does_not_know_frees_the_server_too():
    # The upstream of this model gets no `stop`: the text is cut on its way.
    asked = {"model": ENDLESS, "max_tokens": ENDLESS_TOKENS, "stop_sequences": [", 13"]}
    begun = time.monotonic()
    with client.messages.stream(messages=[user("Count.")], extra_body={"temperature": 0}, **asked) as events:
        for event in events:
            if event.type == "message_stop":
                break
        took = time.monotonic() - begun
        text, stopped = COUNT[:COUNT.index(", 13")], events.current_message_snapshot
        # In Envoy, nobody but the upstream can end a stream without breaking it: docs/dev/hosts.md.
        if HOST == "envoy":
            try:
                events.until_done()
            except Exception:
                # A stream that its upstream does not end is reset after half a minute.
                assert time.monotonic() - begun > 25, "the stream broke before its time"
    assert took < CUT_S, f"the client waited {took:.2f} s for the end"
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", ", 13"), stopped
    assert stopped.content[-1].text == text, stopped
    becomes_idle()


# The last check: a server that goes on computes for a while.
@alone
def a_client_that_leaves_a_whole_answer_frees_the_server():
    impatient = client.with_options(timeout=0.4)
    try:
        impatient.messages.create(model=ENDLESS, max_tokens=ENDLESS_TOKENS, messages=[user("Count.")])
    except Exception as raised:
        assert "Timeout" in type(raised).__name__, repr(raised)
        becomes_idle()
    else:
        raise AssertionError("the answer came too soon to leave it")


def outcome(name, function, stream):
    """Whether it is as it should be, and what is said of it."""
    base, kind = name.removesuffix("_streamed"), "streamed" if stream else "whole"
    lacks = LACKS.get(base, LACKS.get(f"{base} ({kind})"))
    try:
        function(stream)
    except Exception:
        said = traceback.format_exc(limit=-1, chain=False)
        return (True, f"ok {name} (fails, since the server lacks it: {lacks})") if lacks else (
            False, f"FAIL {name}\n{said}")
    return (False, f"FAIL {name}\n  it passes: take it from `lacks`") if lacks else (True, f"ok {name}")


def main():
    passed = failed = lacking = 0
    for name, function, stream in checks:
        if name in SKIPS:
            print(f"skip {name}: {SKIPS[name]}")
            continue
        good, line = outcome(name, function, stream)
        print(line, flush=True)
        lacking += "the server lacks it" in line
        passed, failed = passed + good, failed + (not good)
    known = {name.removesuffix("_streamed") for name, _, _ in checks}
    for name in (name for name in [*LACKS, *SKIPS] if name.split(" (")[0] not in known):
        failed += 1
        print(f"FAIL {name}\n  `lacks` or `skips` names a check that is not there")
    print(f"{TOLD['name']}: {passed - lacking} of {len(checks)} checks hold, {lacking} cannot")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
