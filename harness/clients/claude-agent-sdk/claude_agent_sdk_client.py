"""The Claude Agent SDK for Python, with a tool of its own in the same process, in front of Creole.
See `../harness.py`.
"""
import asyncio
import os
import sys
from importlib.metadata import version as installed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

asked = []


@tool("get_weather", "The weather of a city", {"city": str})
async def get_weather(arguments):
    asked.append(arguments["city"])
    return {"content": [{"type": "text", "text": "sunny in " + arguments["city"]}]}


async def ask(prompt, home):
    options = ClaudeAgentOptions(
        model="demo", mcp_servers={"weather": create_sdk_mcp_server("weather", "1.0.0", [get_weather])},
        allowed_tools=["mcp__weather__get_weather"], max_turns=5, system_prompt="Be brief.",
        setting_sources=[], cwd=home,
        env={"HOME": home, "ANTHROPIC_BASE_URL": BASE, "ANTHROPIC_API_KEY": "dummy",
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"},
    )
    found = [message async for message in query(prompt=prompt, options=options)]
    assert isinstance(found[-1], ResultMessage), found[-1]
    return found[-1]


@check
def a_tool_in_the_same_process_is_called():
    asked.clear()
    script(
        step(say("Let me look."), call("mcp__weather__get_weather", city="Paris ✓")),
        step(call("mcp__weather__get_weather", city="Rome"), call("mcp__weather__get_weather", city="Oslo")),
        step(say("It is sunny.")),
    )
    result = asyncio.run(ask("weather?", folder("tool")))
    assert result.result == "It is sunny." and not result.is_error, result
    assert sorted(asked) == ["Oslo", "Paris ✓", "Rome"], asked
    bodies = [body for body in sent() if body.get("tools")]
    assert len(bodies) == 3 and not refused(), len(bodies)
    paired(bodies[-1])
    assert "sunny in Paris ✓" in results(bodies[-1])[0], results(bodies[-1])


if __name__ == "__main__":
    version("Claude Agent SDK", installed("claude-agent-sdk"))
    main()
