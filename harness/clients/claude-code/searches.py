"""Web searches of a real Claude Code on one host, which asks a real SearXNG.

    searches.py BASE_URL DEMO_URL FOLDER HOST LOG

LOG is what SearXNG writes, with each query in a line of its own. Claude Code makes a request of its own for each
`WebSearch`, whose answer the host begins with the results; the demo model writes the text behind them.
"""
import json
import sys

from headless import *  # noqa: F403

HOST, LOG = sys.argv[4:6]
SITE = "https://docs.creole.invalid/"
# Only the request of one search begins with these words.
OF_SEARCH = ':"Perform a web search for the query: '
# Without it the tool has to be found by another search first.
OFFERED = {"ENABLE_TOOL_SEARCH": "false"}


def searched(query):
    """How often SearXNG searched for exactly this."""
    with open(LOG, encoding="utf-8", errors="replace") as file:
        return sum(line.rstrip("\n") == f"searched for: {query}" for line in file)


def of_this_run(words):
    """A query that no other check or host has."""
    return f"{words} {HOST} {os.getpid()}"


class Asked(Run):
    """One session in which `WebSearch` is allowed, and what its tool showed."""

    def __init__(self, name, prompt, **environment):
        super().__init__(name)
        self.ask(prompt, tools=("WebSearch",), **environment)
        assert not self.failed and not refused(), (self.answer, refused())
        self.shown = [event["tool_use_result"] for event in self.events
                      if event["type"] == "user" and "searchCount" in (event.get("tool_use_result") or {})]
        self.told = [block["content"] for block in self.blocks("tool_result")]
        # What the session costs, as the program counts it.
        self.counted = sum(used["webSearchRequests"] for used in self.events[-1]["modelUsage"].values())

    def links(self, at=0):
        """The addresses that one call found, over all its searches."""
        results = self.shown[at]["results"]
        return [page["url"] for found in results if isinstance(found, dict) for page in found["content"]]


@check
def a_search_is_counted_and_shows_its_links():
    query = of_this_run("context window")
    it = Asked("links", f"demo:search {query}", **OFFERED)
    assert [shown["searchCount"] for shown in it.shown] == [1] and it.counted == 1, (it.counted, it.told)
    links = it.links()
    assert links and all(link.startswith(SITE) for link in links), it.shown
    assert it.told[0].startswith(f'Web search results for query: "{query}"\n\nLinks: ['), it.told
    assert links[0] in it.told[0] and it.answer.startswith("WebSearch answered: "), (it.told, it.answer)
    assert searched(query) == 1
    # The request of the search reaches the model with its results: no model had to search.
    side = [body for body in sent() if OF_SEARCH in json.dumps(body, separators=(",", ":"))]
    assert len(side) == 1 and links[0] in results(side[0])[0], side


@check
def a_tool_that_is_found_first_searches_as_well():
    query = of_this_run("model map")
    script(
        step(say("It is on a page."), when=OF_SEARCH),
        step(call("ToolSearch", query="select:WebSearch", max_results=1)),
        step(call("WebSearch", query=query)),
        step(say("I searched.")),
    )
    it = Asked("found", "Search the web.")
    assert it.answer == "I searched." and it.counted == 1, (it.counted, it.told)
    assert [shown["searchCount"] for shown in it.shown] == [1] and it.links(), it.shown
    assert "It is on a page." in it.told[-1] and searched(query) == 1, it.told


@check
def a_model_that_searches_again_in_one_request_has_its_searches_counted():
    first, second, third = (of_this_run(words) for words in ("tool calls", "thinking budget", "prompt cache"))
    script(
        step(say("More."), call("web_search", query=second), call("web_search", query=third), when=OF_SEARCH),
        step(say("All three."), when=OF_SEARCH),
        step(call("WebSearch", query=first)),
        step(say("I searched.")),
    )
    it = Asked("again", "Search the web.", **OFFERED)
    assert it.answer == "I searched." and it.counted == 3, (it.counted, it.told)
    assert [shown["searchCount"] for shown in it.shown] == [3] and it.links(), it.shown
    assert "All three." in it.told[0], it.told
    assert [searched(query) for query in (first, second, third)] == [1, 1, 1]


@check
def several_searches_of_one_turn_have_a_result_each():
    queries = [of_this_run(words) for words in ("server tools", "cluster")]
    script(
        step(say("Here."), when=OF_SEARCH, times=2),
        step(*(call("WebSearch", query=query) for query in queries)),
        step(say("I searched.")),
    )
    it = Asked("several", "Search the web.", **OFFERED)
    assert it.answer == "I searched." and it.counted == 2, (it.counted, it.told)
    assert [shown["searchCount"] for shown in it.shown] == [1, 1], it.shown
    assert {shown["query"] for shown in it.shown} == set(queries), it.shown
    assert it.links(0) and it.links(1), it.shown
    assert [searched(query) for query in queries] == [1, 1], queries


@check
def domains_reach_the_search_and_others_are_left_out():
    own, other = of_this_run("gateway"), of_this_run("worker")
    script(
        step(say("Here."), when=OF_SEARCH, times=2),
        step(call("WebSearch", query=own, allowed_domains=["docs.creole.invalid"]),
             call("WebSearch", query=other, blocked_domains=["docs.creole.invalid"])),
        step(say("I searched.")),
    )
    it = Asked("domains", "Search the web.", **OFFERED)
    found = {shown["query"]: it.links(at) for at, shown in enumerate(it.shown)}
    assert found[own] and not found[other], it.shown
    assert searched(f"{own} (site:docs.creole.invalid)") == 1
    assert searched(f"{other} -site:docs.creole.invalid") == 1


if __name__ == "__main__":
    version("Claude Code", node_package("@anthropic-ai/claude-code"))
    main()
