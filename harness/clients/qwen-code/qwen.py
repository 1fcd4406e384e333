"""Qwen Code in front of Creole. See `../harness.py`."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403


@check
def shell_write_and_read_take_a_turn_each():
    home = folder("basics")
    work = os.path.join(home, "project")
    os.makedirs(work)
    note = os.path.join(work, "note.txt")
    script(
        step(say("I look around."),
             call("run_shell_command", command="echo from-shell", description="Echo", is_background=False)),
        step(call("write_file", file_path=note, content="zweite Zeile: ä ✓\n")),
        step(call("read_file", file_path=note)),
        step(say("The note is written.")),
    )
    done = run([os.path.join(FOLDER, "node_modules/.bin/qwen"), "--auth-type", "anthropic", "--yolo", "-p", "Write a note."],
               home, work, 120, ANTHROPIC_BASE_URL=BASE, ANTHROPIC_API_KEY="dummy", ANTHROPIC_MODEL="demo")
    assert "The note is written." in done.stdout, (done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    with open(note, encoding="utf-8") as file:
        assert file.read() == "zweite Zeile: ä ✓\n"
    bodies = [body for body in sent() if body.get("tools")]
    assert len(bodies) == 4 and not refused(), len(bodies)
    paired(bodies[-1])
    found = results(bodies[-1])
    assert "from-shell" in found[0] and "zweite Zeile: ä ✓" in found[2], found


if __name__ == "__main__":
    version("qwen-code", node_package("@qwen-code/qwen-code"))
    main()
