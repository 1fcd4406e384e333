"""pi, a small coding agent, in front of Creole. See `../harness.py`."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403


def ask(name, prompt):
    home = folder(name)
    work = os.path.join(home, "project")
    settings = os.path.join(home, ".pi", "agent")
    os.makedirs(work)
    os.makedirs(settings)
    model = {"id": "demo", "name": "demo", "reasoning": False, "input": ["text"],
             "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
             "contextWindow": 200000, "maxTokens": 8192}
    provider = {"baseUrl": BASE, "apiKey": "dummy", "api": "anthropic-messages", "models": [model]}
    with open(os.path.join(settings, "models.json"), "w") as file:
        json.dump({"providers": {"creole": provider}}, file)
    done = run(
        [os.path.join(FOLDER, "node_modules/.bin/pi"), "-p", "--provider", "creole", "--model", "demo", prompt],
        home, work, PI_OFFLINE="1",
    )
    return done, work


@check
def bash_write_and_read_take_a_turn_each():
    script(
        step(say("I look around."), call("bash", command="echo from-bash")),
        step(call("write", path="note.txt", content="zweite Zeile: ä ✓\n")),
        step(call("read", path="note.txt")),
        step(say("The note is written.")),
    )
    done, work = ask("basics", "Write a note.")
    assert done.returncode == 0 and done.stdout.strip() == "The note is written.", done
    with open(os.path.join(work, "note.txt"), encoding="utf-8") as file:
        assert file.read() == "zweite Zeile: ä ✓\n"
    bodies = sent()
    assert len(bodies) == 4 and not refused(), len(bodies)
    paired(bodies[-1])
    found = results(bodies[-1])
    assert "from-bash" in found[0] and "zweite Zeile: ä ✓" in found[2], found


@check
def parallel_calls_are_answered_together():
    script(
        step(call("bash", command="echo one"), call("bash", command="echo two; exit 3")),
        step(say("Both ran.")),
    )
    done, _ = ask("parallel", "Run two commands.")
    assert done.stdout.strip() == "Both ran.", done
    bodies = sent()
    assert len(bodies) == 2 and not refused(), len(bodies)
    paired(bodies[-1])
    found = results(bodies[-1])
    assert len(found) == 2 and "one" in found[0] and "two" in found[1], found


@check
def an_error_of_the_upstream_is_shown():
    script(step("demo:error 400", times=0))
    done, _ = ask("error", "Hello.")
    assert "asked to refuse" in done.stdout + done.stderr, done


if __name__ == "__main__":
    version("pi", node_package("@mariozechner/pi-coding-agent"))
    main()
