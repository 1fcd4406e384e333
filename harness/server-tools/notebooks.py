"""The notebook loop: a model that looks at a notebook, writes a cell, runs it, and looks again.

With the server tools, all of it happens in one answer. Without them, nothing happens at all.
"""
from pathlib import Path

from place import (
    PLAN, URLS, ask, asked, call, check_next, fetch, functions, kinds_of, mcp, refused, say, script, text_of, told,
    transcript, user,
)

checks = []
PAGE = Path(__file__).parents[2] / "docs/server-tools.md"
QUESTION = "Print the sum of 1 to 10 in my notebook."
TURNS = (
    call("mcp__notebook__get_state"),
    call("mcp__notebook__create_cell", source="print(sum(range(11)))"),
    call("mcp__notebook__run_cell", index=0),
    call("mcp__notebook__get_state"),
    say("Cell 0 prints 55."),
)


def check(function):
    checks.append(function)
    return function


def check_without(function):
    """Adds a check of a gateway without server tools, if there is one."""
    return check(function) if "off" in PLAN["gateways"] else function


def state(method="GET"):
    return fetch(URLS["notebook"].replace("/mcp", "/state"), method)


def in_page(text):
    """The page must show what happened here."""
    assert text in PAGE.read_text(encoding="utf-8"), f"{PAGE.name} lacks:\n{text}"


@check
def the_notebook_loop_runs_all_calls_in_order_and_changes_the_notebook(streamed):
    state("DELETE")
    messages = [user(QUESTION)]
    script(*TURNS)
    message = ask("on", streamed, messages, **mcp("notebook"))
    print(transcript(message), flush=True)
    assert kinds_of(message) == ["mcp_tool_use", "mcp_tool_result"] * 4 + ["text"], message
    uses, results = message.content[0:8:2], message.content[1:8:2]
    assert [use.id for use in uses] == [result.tool_use_id for result in results], message
    assert {use.server_name for use in uses} == {"notebook"}, uses
    after = state()
    assert [one["name"] for one in after["calls"]] == ["get_state", "create_cell", "run_cell", "get_state"]
    assert after["cells"] == [{"source": "print(sum(range(11)))", "output": "55"}], after
    assert [result.is_error for result in results] == [False] * 4, results
    assert results[2].content[0].text == "55" and '"55"' in results[3].content[0].text, results
    assert (message.stop_reason, text_of(message)) == ("end_turn", "Cell 0 prints 55."), message
    turns = asked()
    assert len(turns) == 5 and len(told(turns[-1])) == 4, turns
    in_page(transcript(message))
    check_next(message, "Sure?", "on", streamed, messages, **mcp("notebook"))


@check_without
def without_server_tools_the_notebook_loop_is_refused_and_nothing_is_called(streamed):
    state("DELETE")
    words = refused(streamed, 400, "off", [user(QUESTION)], **mcp("notebook"))
    print(f"400 {words}", flush=True)
    assert state()["calls"] == [], state()
    in_page(f"400 {words}")


@check_without
def without_server_tools_a_search_is_left_out_and_the_model_answers_alone(streamed):
    fetch(URLS["search"] + "/seen", "DELETE")
    look = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
    script(say("I do not know."))
    message = ask(
        "off", streamed, [user("What is alpha?")], plain=True,
        tools=[{"type": "web_search_20250305", "name": "web_search"}, look],
    )
    assert functions(asked()[0]) == ["look"], asked()
    assert kinds_of(message) == ["text"], message
    assert fetch(URLS["search"] + "/seen") == []
