"""opencode in front of Creole. See `../harness.py`."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403


def program():
    found = sorted(glob.glob(os.path.join(FOLDER, "node_modules/opencode-linux-*/bin/opencode"))
                   + glob.glob(os.path.join(FOLDER, "node_modules/opencode-darwin-*/bin/opencode")))
    assert found, "the package has no binary for this machine"
    # The one without a suffix wants what every machine has.
    return min(found, key=len)


@check
def bash_write_and_read_take_a_turn_each():
    home = folder("basics")
    work = os.path.join(home, "project")
    settings = os.path.join(home, ".config", "opencode")
    os.makedirs(work)
    os.makedirs(settings)
    limits = {"context": 200000, "output": 8192}
    config = {
        "autoupdate": False, "share": "disabled", "model": "anthropic/demo", "small_model": "anthropic/demo",
        "provider": {"anthropic": {
            "options": {"baseURL": BASE + "/v1", "apiKey": "dummy"},
            "models": {"demo": {"name": "demo", "limit": limits}}}},
        "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny", "external_directory": "allow"},
    }
    with open(os.path.join(settings, "opencode.json"), "w") as file:
        json.dump(config, file)
    note = os.path.join(work, "note.txt")
    # Its title is asked for beside the conversation, without tools.
    script(
        step(say("A note"), when="title generator"),
        step(say("I look around."), call("bash", command="echo from-bash", description="Echo"), when='"name":"bash"'),
        step(call("write", filePath=note, content="zweite Zeile: ä ✓\n"), when='"name":"bash"'),
        step(call("read", filePath=note), when='"name":"bash"'),
        step(say("The note is written."), when='"name":"bash"'),
    )
    done = run([program(), "run", "--format", "json", "Write a note."], home, work, 240,
               OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")
    assert "The note is written." in done.stdout, (done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    with open(note, encoding="utf-8") as file:
        assert file.read() == "zweite Zeile: ä ✓\n"
    bodies = [body for body in sent() if body.get("tools")]
    assert len(bodies) == 4 and not refused(), len(bodies)
    paired(bodies[-1])
    found = results(bodies[-1])
    assert "from-bash" in found[0] and "zweite Zeile: ä ✓" in found[2], found


if __name__ == "__main__":
    version("opencode", node_package("opencode-ai"))
    main()
