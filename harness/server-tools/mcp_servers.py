"""Checks of MCP servers: those of npm and PyPI, in each transport, with the SDK's `beta` namespace."""
import threading
import time
import urllib.request

from place import (
    FIRST_BETA, LISTINGS, TOOLSETS, URLS, ask, asked, assistant, call, calls, check_next, fetch, functions, kinds_of,
    mcp, refused, say, script, served, text_of, told, toolset, user,
)

checks = []
# Servers of the plan, each with the type of its answers to calls and whether it has sessions.
VARIANTS = {
    "mcp-json": ("application/json", False),
    "mcp-events": ("text/event-stream", False),
    "mcp-json-session": ("application/json", True),
    "mcp-events-session": ("text/event-stream", True),
    "fastmcp-json": ("application/json", False),
    "fastmcp-events-session": ("text/event-stream", True),
}


def check(function):
    checks.append(function)
    return function


def pair(message, at=0):
    """Returns a call of an MCP server and its result, which stand next to each other."""
    use, result = message.content[at : at + 2]
    assert (use.type, result.type) == ("mcp_tool_use", "mcp_tool_result"), message
    assert result.tool_use_id == use.id, message
    return use, result


def texts(result):
    return [part.text for part in result.content]


@check
def a_tool_of_server_everything_is_called_and_the_conversation_goes_on(streamed):
    messages = [user("What is 20 + 22?")]
    script(call("mcp__everything__get-sum", _say="I add.", a=20, b=22), say("It is 42."))
    message = ask("on", streamed, messages, **mcp("everything"))
    assert kinds_of(message) == ["text", "mcp_tool_use", "mcp_tool_result", "text"], message
    use, result = pair(message, 1)
    assert (use.name, use.server_name, use.input) == ("get-sum", "everything", {"a": 20, "b": 22})
    assert not result.is_error and "42" in texts(result)[0], result
    assert (message.stop_reason, text_of(message)) == ("end_turn", "I add.It is 42."), message
    first, second = asked()
    assert "mcp__everything__echo" in functions(first), functions(first)
    assert first["tools"] == second["tools"]
    assert told(second) == texts(result), second
    check_next(message, "Sure?", "on", streamed, messages, **mcp("everything"))


@check
def each_server_of_python_is_called_in_its_own_transport(streamed):
    for name, (kind, has_session) in VARIANTS.items():
        messages = [user(f"Add with {name}.")]
        script(call(f"mcp__{name}__add", a=1, b=2), say("3"))
        message = ask("on", streamed, messages, **mcp(name))
        use, result = pair(message)
        assert (use.name, use.server_name, use.input) == ("add", name, {"a": 1, "b": 2}), message
        assert (texts(result), result.is_error) == (["3"], False), (name, result)
        seen = fetch(URLS[name].replace("/mcp", "/seen"))
        made = [one for one in seen if one["method"] == "tools/call"][-1]
        assert (made["type"], bool(made["session"])) == (kind, has_session), (name, made)
        check_next(message, "Sure?", "on", streamed, messages, **mcp(name))


@check
def a_server_of_the_old_transport_is_refused_in_words(streamed):
    for name in ("everything-sse", "mcp-sse", "fastmcp-sse"):
        words = refused(streamed, 400, "on", [user("Hi")], **mcp(name))
        assert f'server "{name}" did not give its tools' in words, words
        assert "HTTP+SSE" in words, words


@check
def a_server_that_redirects_is_refused_with_what_to_do(streamed):
    request = {
        "betas": [TOOLSETS], "tools": [toolset("mine")],
        "mcp_servers": [served("mine", "mcp:redirecting")],
    }
    words = refused(streamed, 400, "on", [user("Hi")], **request)
    assert "HTTP status 307, and redirections are not followed" in words, words


@check
def the_first_beta_needs_no_toolset_and_chooses_by_its_configuration(streamed):
    messages = [user("Echo.")]
    allowed = {"enabled": True, "allowed_tools": ["echo"]}
    request = {
        "betas": [FIRST_BETA], "mcp_servers": [served("everything", tool_configuration=allowed)],
    }
    script(call("mcp__everything__echo", message="hello"), say("Done."))
    message = ask("on", streamed, messages, **request)
    _, result = pair(message)
    assert texts(result) == ["Echo: hello"], result
    assert functions(asked()[0]) == ["mcp__everything__echo"], functions(asked()[0])
    check_next(message, "Sure?", "on", streamed, messages, **request)
    request["betas"] = [TOOLSETS]
    words = refused(streamed, 400, "on", messages, **request)
    assert "needs exactly one mcp_toolset" in words, words


@check
def with_the_newest_beta_a_list_comes_and_is_not_asked_for_again(streamed):
    def lists():
        seen = fetch(URLS["mcp-json"].replace("/mcp", "/seen"))
        return len([one for one in seen if one["method"] == "tools/list"])

    messages = [user("Add.")]
    request = {**mcp("mcp-json"), "betas": [LISTINGS]}
    script(call("mcp__mcp-json__add", a=1, b=2), say("3"))
    message = ask("on", streamed, messages, **request)
    assert kinds_of(message) == ["mcp_tool_listing", "mcp_tool_use", "mcp_tool_result", "text"], message
    listing = message.content[0]
    assert listing.mcp_server_name == "mcp-json", listing
    assert "add" in [tool.name for tool in listing.tools], listing
    before = lists()
    check_next(message, "Sure?", "on", streamed, messages, **request)
    assert lists() == before, (lists(), before)


@check
def a_toolset_chooses_and_a_server_may_be_named_by_its_name(streamed):
    script(say("Hi."))
    chosen = toolset(
        "mine", default_config={"enabled": False}, configs={"add": {"enabled": True}, "none": {"enabled": True}}
    )
    ask(
        "on", streamed, [user("Hi")], betas=[TOOLSETS], tools=[chosen],
        mcp_servers=[served("mine", "mcp:mcp-json")],
    )
    assert functions(asked()[0]) == ["mcp__mine__add"], functions(asked()[0])


@check
def calls_of_two_servers_in_one_turn_have_their_own_results_in_order(streamed):
    messages = [user("Add twice.")]
    script(
        calls(("mcp__mcp-json__add", {"a": 1, "b": 1}), ("mcp__fastmcp-json__add", {"a": 2, "b": 2})),
        say("2 and 4."),
    )
    message = ask("on", streamed, messages, **mcp("mcp-json", "fastmcp-json"))
    uses = [block for block in message.content if block.type == "mcp_tool_use"]
    results = [block for block in message.content if block.type == "mcp_tool_result"]
    assert [use.server_name for use in uses] == ["mcp-json", "fastmcp-json"], uses
    assert [use.id for use in uses] == [result.tool_use_id for result in results], message
    assert [texts(result) for result in results] == [["2"], ["4"]], results
    check_next(message, "Sure?", "on", streamed, messages, **mcp("mcp-json", "fastmcp-json"))


@check
def the_thoughts_of_each_turn_stay_with_their_call(streamed):
    messages = [user("Add twice.")]
    request = {**mcp("mcp-json"), "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
    thinking = "\ndemo:reason"
    script(
        call("mcp__mcp-json__add", a=1, b=1) + thinking, call("mcp__mcp-json__add", a=2, b=2) + thinking,
        say("2 and 4.") + thinking,
    )
    message = ask("on", streamed, messages, **request)
    turn = ["thinking", "mcp_tool_use", "mcp_tool_result"]
    assert kinds_of(message) == [*turn, *turn, "thinking", "text"], message
    assert all(block.signature for block in message.content if block.type == "thinking"), message
    said = [one for one in asked()[-1]["messages"] if one["role"] == "assistant"]
    assert len(said) == 2 and all(one["reasoning_content"] for one in said), said
    check_next(message, "Sure?", "on", streamed, messages, **request)


@check
def a_tool_that_fails_or_is_not_there_or_gives_an_image_does_not_end_the_answer(streamed):
    for name in ("mcp-json", "mcp-events-session", "fastmcp-json", "fastmcp-events-session"):
        messages = [user("Fail.")]
        script(
            call(f"mcp__{name}__fail", reason="no paper"),
            call(f"mcp__{name}__add", a="x", b=None),
            say("It failed."),
        )
        message = ask("on", streamed, messages, **mcp(name))
        (_, first), (_, second) = pair(message), pair(message, 2)
        assert first.is_error and second.is_error, (name, message)
        assert "fail" in texts(first)[0], (name, first)
        sent = told(asked()[-1])
        assert sent == [f"Error: {texts(first)[0]}", f"Error: {texts(second)[0]}"], sent
        assert (message.stop_reason, text_of(message)) == ("end_turn", "It failed."), message
        check_next(message, "Sure?", "on", streamed, messages, **mcp(name))
    messages = [user("Show.")]
    script(call("mcp__everything__get-tiny-image"), say("Small."))
    message = ask("on", streamed, messages, **mcp("everything"))
    _, result = pair(message)
    assert not result.is_error and any("left out" in text for text in texts(result)), result
    assert all(len(text) < 1000 for text in texts(result)), result


@check
def a_token_of_the_request_reaches_its_own_server_alone(streamed):
    fetch(URLS["notebook"].replace("/mcp", "/state"), "DELETE")
    script(call("mcp__notebook__get_state"), say("Empty."))
    request = mcp("notebook", "mcp-json")
    request["mcp_servers"] = [served("notebook", authorization_token="tok-1"), served("mcp-json")]
    ask("on", streamed, [user("Look.")], **request)
    tokens = fetch(URLS["notebook"].replace("/mcp", "/state"))["tokens"]
    assert tokens and set(tokens) == {"Bearer tok-1"}, tokens
    assert "tok-1" not in str(asked())
    seen = fetch(URLS["mcp-json"].replace("/mcp", "/seen"))
    assert not any(one["token"] for one in seen), seen


@check
def a_session_that_ends_between_two_calls_is_opened_anew(streamed):
    for name in ("mcp-json-session", "mcp-events-session", "fastmcp-events-session"):
        url = URLS[name]
        before = len(fetch(url.replace("/mcp", "/seen")))

        def seen(method):
            return [one for one in fetch(url.replace("/mcp", "/seen"))[before:] if one["method"] == method]

        def end_session():
            until = time.monotonic() + 20
            while not seen("tools/call") and time.monotonic() < until:
                time.sleep(0.05)
            ended = {"mcp-session-id": seen("tools/call")[0]["session"]}
            urllib.request.urlopen(urllib.request.Request(url, headers=ended, method="DELETE")).close()

        ending = threading.Thread(target=end_session)
        ending.start()
        script(
            call(f"mcp__{name}__add", a=1, b=2), call(f"mcp__{name}__add", _late_ms=1500, a=3, b=4), say("7.")
        )
        message = ask("on", streamed, [user("Add.")], **mcp(name))
        ending.join()
        assert [texts(pair(message, at)[1]) for at in (0, 2)] == [["3"], ["7"]], (name, message)
        made = seen("tools/call")
        assert [one["status"] for one in made] == [200, 404, 200], (name, made)
        assert made[0]["session"] == made[1]["session"] != made[2]["session"], (name, made)


@check
def a_tool_that_needs_more_than_a_call_is_not_offered(streamed):
    script(say("Hi."))
    ask("on", streamed, [user("Hi")], **mcp("everything"))
    offered = functions(asked()[0])
    # The server runs this tool only as a task, which no model can ask for.
    assert "mcp__everything__simulate-research-query" not in offered, offered
    assert "mcp__everything__trigger-long-running-operation" in offered, offered


@check
def a_server_that_the_operator_does_not_name_is_refused_and_not_asked(streamed):
    before = len(fetch(URLS["search"] + "/seen"))
    request = {
        "betas": [TOOLSETS], "tools": [toolset("other")],
        "mcp_servers": [served("other", URLS["search"] + "/find")],
    }
    words = refused(streamed, 400, "on", [user("Hi")], **request)
    assert "mcp_servers[0].url" in words and "not among those" in words, words
    assert len(fetch(URLS["search"] + "/seen")) == before


@check
def an_mcp_tool_and_a_tool_of_the_client_in_one_turn_are_both_run(streamed):
    look = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
    messages = [user("Look and add.")]
    request = mcp("mcp-json")
    request["tools"] = [look, *request["tools"]]
    script(calls(("look", {}), ("mcp__mcp-json__add", {"a": 3, "b": 4})))
    message = ask("on", streamed, messages, **request)
    assert kinds_of(message) == ["tool_use", "mcp_tool_use"], message
    assert message.stop_reason == "tool_use", message
    mine, theirs = message.content
    messages += [
        assistant(message),
        user([{"type": "tool_result", "tool_use_id": mine.id, "content": "a tree"}]),
    ]
    script(say("A tree and 7."))
    after = ask("on", streamed, messages, **request)
    assert kinds_of(after) == ["mcp_tool_result", "text"], after
    assert (after.content[0].tool_use_id, texts(after.content[0])) == (theirs.id, ["7"]), after
    assert told(asked()[-1]) == ["a tree", "7"], asked()
    check_next(after, "Sure?", "on", streamed, messages, **request)
