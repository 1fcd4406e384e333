"""pydantic-ai in front of Creole. See `../harness.py`."""
import asyncio
import os
import sys
from importlib.metadata import version as installed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

MODEL = AnthropicModel("demo", provider=AnthropicProvider(api_key="dummy", base_url=BASE))


class Place(BaseModel):
    city: str
    temperature: int


def weather_agent():
    asked = []
    agent = Agent(MODEL, system_prompt="Be brief.", retries=2)

    @agent.tool_plain
    def get_weather(city: str, days: int) -> str:
        """The weather of a city."""
        asked.append((city, days))
        return f"sunny in {city}"

    return agent, asked


@check
def an_agent_calls_its_tools_and_answers():
    agent, asked = weather_agent()
    script(*WEATHER_STEPS)
    assert agent.run_sync("weather").output == "It is sunny."
    looked(asked)


@check
def a_streamed_agent_calls_its_tools_and_answers():
    agent, asked = weather_agent()
    script(*WEATHER_STEPS)
    texts = []

    async def stream():
        async with agent.iter("weather") as steps:
            async for node in steps:
                if Agent.is_model_request_node(node):
                    async with node.stream(steps.ctx) as events:
                        async for event in events:
                            texts.append(type(event).__name__)
            return steps.result.output

    assert asyncio.run(stream()) == "It is sunny."
    assert "PartDeltaEvent" in texts, texts
    assert all(body["stream"] for body in sent())
    looked(asked)


@check
def arguments_that_do_not_fit_are_asked_for_again():
    agent, asked = weather_agent()
    script(
        step(call("get_weather", city="Paris", days="soon")),
        step(call("get_weather", city="Paris", days=2)),
        step(say("Mended.")),
    )
    assert agent.run_sync("weather").output == "Mended."
    assert asked == [("Paris", 2)], asked


@check
def an_output_type_is_filled():
    script(step(call("final_result", city="Paris", temperature=21)))
    place = Agent(MODEL, output_type=Place).run_sync("where?").output
    assert place == Place(city="Paris", temperature=21), place
    assert not refused()


@check
def a_broken_stream_is_no_success():
    agent, _ = weather_agent()
    script(step(say("This is cut in the middle."), "demo:unfinished", times=0))

    async def stream():
        async with agent.run_stream("hello") as answer:
            return [text async for text in answer.stream_text(delta=True)]

    try:
        got = asyncio.run(stream())
    except Exception as error:
        assert "ended" in str(error) or "error" in type(error).__name__.lower(), error
    else:
        raise AssertionError(f"a broken stream looked like success: {got}")


if __name__ == "__main__":
    version("pydantic-ai", installed("pydantic-ai-slim"))
    main()
