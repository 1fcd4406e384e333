"""cline, the command line, in front of Creole. See `../harness.py`."""
import glob
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403


def program():
    return os.path.join(FOLDER, "node_modules/.bin/cline")


def settle(home):
    """Its settings: the base URL is read from this file alone."""
    settings = os.path.join(home, ".cline", "data", "settings")
    os.makedirs(settings)
    account = {"provider": "anthropic", "apiKey": "dummy", "model": "claude-sonnet-4-5", "baseUrl": BASE + "/v1"}
    providers = {"anthropic": {"settings": account, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}
    with open(os.path.join(settings, "providers.json"), "w") as file:
        json.dump({"version": 1, "lastUsedProvider": "anthropic", "modes": {}, "providers": providers}, file)


def end_daemon(home):
    """It leaves a server behind, which has this run's folder as its home."""
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                own = f"HOME={home}\0".encode() in file.read() + b"\0"
        except OSError:
            continue
        if own:
            os.kill(int(path.split("/")[2]), signal.SIGTERM)


@check
def a_command_runs_and_its_output_goes_back():
    home = folder("basics")
    work = os.path.join(home, "project")
    os.makedirs(work)
    settle(home)
    script(
        step(say("I look around."), call("run_commands", commands=["echo from-bash > note.txt; cat note.txt"])),
        step(say("The note is written."), times=0),
    )
    try:
        done = run([program(), "--json", "-P", "anthropic", "-m", "claude-sonnet-4-5", "Write a note."],
                   home, work, 180)
    finally:
        end_daemon(home)
    bodies = [body for body in sent() if body.get("tools")]
    # Over Responses the server has tools of its own, which are no functions.
    functions = [tool for body in bodies[:1] for tool in body["tools"] if tool["type"] == "function"]
    names = [tool["function"]["name"] for tool in functions]
    assert "The note is written." in done.stdout, (done.returncode, names, done.stdout[-1500:], done.stderr[-1500:])
    assert not refused() and len(bodies) == 2, len(bodies)
    paired(bodies[-1])
    assert "from-bash" in results(bodies[-1])[0], (names, results(bodies[-1]))


if __name__ == "__main__":
    version("cline", node_package("cline"))
    main()
