"""Claude Code in front of Creole: real turns with its own tools, the model's side from a script.

See `../harness.py` for how this is started and what it prints. With `CREOLE_TRANSCRIPT=FILE`, the first
check also writes down what the program did.
"""
import base64
import json
import os

from headless import *  # noqa: F403

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
@check
def bash_write_and_read_take_a_turn_each():
    it = Run("basics")
    script(
        step(say("I look around."), call("Bash", command="echo from-bash", description="Echo")),
        step(call("Write", file_path=it.path("note.txt"), content="first line\nzweite Zeile: ä ✓\n")),
        step(call("Read", file_path=it.path("note.txt"))),
        step(say("The note is written.")),
    )
    it.ask("Write a note.")
    assert (it.answer, it.failed) == ("The note is written.", False), it.answer
    with open(it.path("note.txt"), encoding="utf-8") as file:
        assert file.read() == "first line\nzweite Zeile: ä ✓\n"
    bodies = turns()
    assert len(bodies) == 4, [len(body["messages"]) for body in bodies]
    assert not refused()
    for body in bodies:
        paired(body)
    found = results(bodies[-1])
    assert len(found) == 3 and "from-bash" in found[0] and "zweite Zeile: ä ✓" in found[2], found
    transcript(it)


@check
def a_tool_is_searched_loaded_and_called():
    it = Run("search")
    script(
        step(call("ToolSearch", query="select:NotebookEdit", max_results=1)),
        step(call("NotebookEdit", notebook_path=it.path("none.ipynb"), new_source="x", cell_id="a")),
        step(say("Searched.")),
    )
    it.ask("Find a tool.", tools=("Bash", "NotebookEdit"))
    assert it.answer == "Searched.", it.answer
    bodies = turns()
    assert len(bodies) == 3 and not refused(), len(bodies)
    names = [[tool["function"]["name"] for tool in body["tools"]] for body in bodies]
    assert "NotebookEdit" not in names[0] and "NotebookEdit" in names[1], names
    assert "NotebookEdit" in results(bodies[1])[0], results(bodies[1])
    assert len(results(bodies[2])) == 2, results(bodies[2])


@check
def parallel_calls_that_succeed_and_fail_are_answered_together():
    it = Run("parallel")
    script(
        step(say("All at once."), call("Bash", command="echo good; exit 0", description="Good"),
             call("Bash", command="echo bad >&2; exit 3", description="Bad"),
             call("Read", file_path=it.path("missing.txt")), call("NoSuchTool", x=1)),
        step(say("Done with errors.")),
    )
    it.ask("Do several things.")
    assert it.answer == "Done with errors.", it.answer
    bodies = turns()
    assert len(bodies) == 2 and not refused(), len(bodies)
    paired(bodies[1])
    calls = [message for message in bodies[1]["messages"] if message.get("tool_calls")]
    order = [call["function"]["name"] for call in calls[0]["tool_calls"]]
    found = results(bodies[1])
    assert len(calls) == 1 and len(found) == len(order) == 4, (order, found)
    together = "\n".join(found)
    for wanted in ("good", "bad", "does not exist", "No such tool available"):
        assert wanted in together, found


@check
def an_image_that_is_read_reaches_the_model_as_an_image():
    it = Run("image", {"pixel.png": base64.b64decode(PIXEL)})
    script(step(call("Read", file_path=it.path("pixel.png"))), step(say("One pixel.")))
    it.ask("What is in pixel.png?")
    assert it.answer == "One pixel.", it.answer
    last = turns()[-1]
    assert not refused()
    parts = [
        part for message in last["messages"] if isinstance(message["content"], list)
        for part in message["content"]
    ]
    images = [part for part in parts if part["type"] == "image_url"]
    assert len(images) == 1 and images[0]["image_url"]["url"].startswith("data:image/"), parts


@check
def a_sub_agent_works_and_reports():
    it = Run("agent")
    script(
        # Only the sub-agent's own conversation begins with these words.
        step(call("Bash", command="echo sub-agent-was-here > report.txt", description="Report"),
             when=':"SUBTASK'),
        step(call("Agent", description="Small task", prompt="SUBTASK: write the report",
                  subagent_type="general-purpose")),
        step(say("The report is done."), times=0),
    )
    it.ask("Delegate it.", tools=("Bash", "Agent"))
    assert not it.failed and it.answer == "The report is done.", it.answer
    assert not refused()
    assert os.path.exists(it.path("report.txt")), it.blocks("tool_result")


@check
def a_context_overflow_makes_it_compact():
    it = Run("compact")
    script(
        step(call("Bash", command="echo one", description="Echo")),
        step("demo:error context"),
        step(say("<analysis>Short.</analysis><summary>1. Primary request: one was echoed.</summary>")),
        step(say("Finished after compacting."), times=0),
    )
    it.ask("Go on until it is full.")
    assert it.answer == "Finished after compacting.", it.answer
    kinds = [event.get("subtype") for event in it.events if event["type"] == "system"]
    assert "compact_boundary" in kinds, kinds
    bodies = sent()
    assert len(bodies) == 4, len(bodies)
    # The summary stands for the turns before it, whose calls are gone with their results.
    last = json.dumps(bodies[-1]["messages"])
    assert "one was echoed" in last and not any("tool_calls" in m for m in bodies[-1]["messages"])


@check
def a_broken_stream_falls_back_to_a_whole_answer():
    it = Run("fallback")
    script(
        step(say("This is cut in the middle of the stream."), "demo:unfinished"),
        step(say("Whole.")),
    )
    it.ask("Say something.")
    assert it.answer == "Whole.", it.answer
    asked = [body.get("stream", False) for body in sent()]
    assert asked == [True, False], asked


def transcript(it):
    """Writes what happened as a person would tell it."""
    path = os.environ.get("CREOLE_TRANSCRIPT")
    if not path:
        return
    lines = []
    for event in it.events:
        if event["type"] not in ("assistant", "user"):
            continue
        for block in event["message"]["content"]:
            if block["type"] == "text":
                lines.append(f"model   {block['text']}")
            elif block["type"] == "tool_use":
                lines.append(f"model   calls {block['name']} {json.dumps(block['input'], ensure_ascii=False)}")
            elif block["type"] == "tool_result":
                text = block["content"]
                text = text if isinstance(text, str) else " ".join(b.get("text", b["type"]) for b in text)
                lines.extend("tool    " + line for line in text.splitlines()[:6])
    lines.append(f"result  {it.answer}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).replace(it.work, "PROJECT") + "\n")


if __name__ == "__main__":
    version("Claude Code", node_package("@anthropic-ai/claude-code"))
    main()
