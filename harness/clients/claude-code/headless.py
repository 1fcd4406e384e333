"""A real Claude Code without a terminal, for the scripts of this folder that use `../harness.py`."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

# In every request of the main conversation, in none of its sub-agents'.
MODEL = "demo"


def program():
    found = glob.glob(os.path.join(FOLDER, "node_modules/@anthropic-ai/claude-code-*/claude"))
    assert found, "the package has no binary for this machine"
    return found[0]


class Run:
    """One run of the program in a folder of its own."""

    def __init__(self, name, files=()):
        self.home = folder(name)
        self.work = os.path.join(self.home, "project")
        os.makedirs(self.work)
        for path, content in dict(files).items():
            with open(os.path.join(self.work, path), "wb") as file:
                file.write(content)

    def path(self, name):
        return os.path.join(self.work, name)

    def ask(self, prompt, *arguments, tools=("Bash", "Read", "Write"), turns=8, **environment):
        done = run(
            [program(), "-p", prompt, "--model", MODEL, "--output-format", "stream-json", "--verbose",
             "--max-turns", str(turns), "--allowedTools", *tools, *arguments],
            self.home, self.work,
            ANTHROPIC_BASE_URL=BASE, ANTHROPIC_API_KEY="dummy",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_TELEMETRY="1",
            DISABLE_AUTOUPDATER="1", DISABLE_ERROR_REPORTING="1", CLAUDE_CODE_MAX_RETRIES="1",
            **environment,
        )
        self.events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        last = self.events[-1] if self.events else {}
        assert last.get("type") == "result", f"exit {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        self.answer, self.failed = last.get("result"), last["is_error"]
        return self

    def blocks(self, kind):
        """The content blocks of one type that passed, in order."""
        return [
            block for event in self.events if event["type"] in ("assistant", "user")
            for block in event["message"]["content"] if isinstance(block, dict) and block["type"] == kind
        ]


def turns():
    """The requests of the conversation, without those that the program makes beside it."""
    return [body for body in sent() if body.get("tools")]
