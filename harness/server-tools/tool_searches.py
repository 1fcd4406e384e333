"""Checks of the search for tools: 200 deferred tools, of which the model sees what it finds."""
from place import ask, asked, assistant, call, check_next, functions, kinds_of, say, script, text_of, told, user

checks = []


def check(function):
    checks.append(function)
    return function


def tool(number):
    subject = "weather" if number == 117 else f"subject{number}"
    return {
        "name": f"read_{subject}_{number}",
        "description": f"Reads the {subject} of a place",
        "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}},
        "defer_loading": True,
    }


TOOLS = [tool(number) for number in range(200)]
FOUND = "read_weather_117"


def search(name):
    return {"type": f"{name}_20251119", "name": name}


def conversation(streamed, name, arguments):
    request = {"tools": [search(name), *TOOLS], "plain": True}
    messages = [user("How is the weather in Oslo?")]
    script(call(name, **arguments), call(FOUND, place="Oslo"))
    message = ask("on", streamed, messages, **request)
    assert kinds_of(message) == ["server_tool_use", "tool_search_tool_result", "tool_use"], message
    use, result, mine = message.content
    assert (use.name, use.input) == (name, arguments), use
    assert result.tool_use_id == use.id, message
    found = [reference.tool_name for reference in result.content.tool_references]
    assert found == [FOUND], found
    assert (mine.name, mine.input, message.stop_reason) == (FOUND, {"place": "Oslo"}, "tool_use"), message
    first, second = asked()
    assert functions(first) == [name], functions(first)
    assert functions(second) == [name, FOUND], functions(second)
    assert told(second) == [f"Tool loaded: {FOUND}"], told(second)
    known = second["messages"]
    messages += [
        assistant(message),
        user([{"type": "tool_result", "tool_use_id": mine.id, "content": "sunny"}]),
    ]
    script(say("It is sunny."))
    after = ask("on", streamed, messages, **request)
    assert (text_of(after), after.stop_reason) == ("It is sunny.", "end_turn"), after
    (third,) = asked()
    assert functions(third) == [name, FOUND], functions(third)
    assert third["messages"][: len(known)] == known, third
    assert told(third)[-1] == "sunny", third
    check_next(after, "Sure?", "on", streamed, messages, **request)


@check
def a_tool_that_a_pattern_finds_among_200_is_called_by_the_client(streamed):
    conversation(streamed, "tool_search_tool_regex", {"pattern": "(?i)WEATHER"})


@check
def a_tool_that_words_find_among_200_is_called_by_the_client(streamed):
    conversation(streamed, "tool_search_tool_bm25", {"query": "weather of a city", "limit": 1})


@check
def a_pattern_that_is_none_is_an_error_and_the_model_tries_again(streamed):
    name = "tool_search_tool_regex"
    script(call(name, pattern="("), call(name, pattern="^nothing$"), call(name, pattern="read_weather"), say("Here."))
    messages = [user("Find.")]
    request = {"tools": [search(name), *TOOLS], "plain": True}
    message = ask("on", streamed, messages, **request)
    first, second, third = [one.content for one in message.content if one.type == "tool_search_tool_result"]
    assert (first.type, first.error_code) == ("tool_search_tool_result_error", "invalid_tool_input"), first
    assert second.tool_references == [], second
    assert [one.tool_name for one in third.tool_references] == [FOUND], third
    assert told(asked()[-1])[1] == "No tool matches.", told(asked()[-1])
    check_next(message, "Sure?", "on", streamed, messages, **request)
