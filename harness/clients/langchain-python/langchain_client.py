"""LangChain for Python in front of Creole. See `../harness.py`."""
import os
import sys
import warnings
from importlib.metadata import version as installed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

warnings.simplefilter("ignore")
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from pydantic import BaseModel

asked = []


@tool
def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    asked.append((city, days))
    return f"sunny in {city}"


class Place(BaseModel):
    """A place."""

    city: str
    temperature: int


def model(**more):
    return ChatAnthropic(model="demo", base_url=BASE, api_key="dummy", max_retries=0, **more)


@check
def an_agent_calls_its_tools_and_answers():
    asked.clear()
    script(*WEATHER_STEPS)
    agent = create_agent(model(), [get_weather], system_prompt="Be brief.")
    messages = agent.invoke({"messages": [("user", "weather")]})["messages"]
    assert messages[-1].text == "It is sunny.", messages
    looked(asked)


@check
def a_streamed_agent_calls_its_tools_and_answers():
    asked.clear()
    script(*WEATHER_STEPS)
    agent = create_agent(model(streaming=True), [get_weather])
    text = ""
    for piece, _ in agent.stream({"messages": [("user", "weather")]}, stream_mode="messages"):
        if type(piece).__name__ == "AIMessageChunk":
            text += piece.text
    assert text == "Let me look.It is sunny.", text
    assert all(body["stream"] for body in sent())
    looked(asked)


@check
def an_agent_is_the_tool_of_another():
    asked.clear()
    script(
        step(call("get_weather", city="Paris"), when="You are the RESEARCHER"),
        step(say("RESEARCH: sunny."), when="You are the RESEARCHER"),
        step(call("research", question="weather?")),
        step(say("FINAL: sunny.")),
    )

    @tool
    def research(question: str) -> str:
        """Ask the researcher."""
        agent = create_agent(model(), [get_weather], system_prompt="You are the RESEARCHER.")
        return agent.invoke({"messages": [("user", question)]})["messages"][-1].text

    agent = create_agent(model(), [research], system_prompt="You are the ORCHESTRATOR.")
    messages = agent.invoke({"messages": [("user", "go")]})["messages"]
    assert messages[-1].text == "FINAL: sunny.", messages
    assert len(sent()) == 4 and asked == [("Paris", 1)], (len(sent()), asked)


@check
def structured_output_comes_by_tool_and_by_schema():
    script(step(call("Place", city="Paris", temperature=21)))
    assert model().with_structured_output(Place).invoke("where?") == Place(city="Paris", temperature=21)
    script(step(say('{"city": "Rome", "temperature": 25}')))
    place = model().with_structured_output(Place, method="json_schema").invoke("where?")
    assert place == Place(city="Rome", temperature=25), place
    assert sent()[-1]["response_format"]["type"] == "json_schema"


@check
def thinking_goes_out_and_back():
    script(
        step("demo:reason", call("get_weather", city="Paris")),
        step(say("Thought and done.")),
    )
    thinker = model(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4000)
    messages = create_agent(thinker, [get_weather]).invoke({"messages": [("user", "weather")]})["messages"]
    assert messages[-1].text == "Thought and done.", messages
    assert messages[1].content[0]["type"] == "thinking", messages[1]
    back = [message for message in sent()[-1]["messages"] if message["role"] == "assistant"]
    assert back[0].get("reasoning_content"), back


@check
def a_broken_stream_is_no_success():
    script(step(say("This is cut in the middle."), "demo:unfinished", times=0))
    try:
        got = [piece.text for piece in model().stream("hello")]
    except Exception as error:
        assert "ended" in str(error), error
    else:
        raise AssertionError(f"a broken stream looked like success: {got}")


if __name__ == "__main__":
    version("LangChain, Python", f"{installed('langchain')} (langchain-anthropic {installed('langchain-anthropic')})")
    main()
