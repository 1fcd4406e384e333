"""A real Claude Code in auto mode, with a judge of its tool calls and without one.

auto_mode.py CREOLE CLAUDE

Starts the demo model and gateways in front of it. A command that begins with `python3` is one that Claude Code does not
run unasked.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from harness import call, check, say, script, step  # noqa: E402

CREOLE, CLAUDE = (os.path.abspath(path) for path in sys.argv[1:3])
ROOM = tempfile.TemporaryDirectory()
# With one of these Claude Code asks no model by itself.
ALL_OFF = ("DISABLE_TELEMETRY", "DO_NOT_TRACK", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_GROWTHBOOK",
           "CLAUDE_CODE_DISABLE_FEATURE_FLAGS")
OFF = {ALL_OFF[0]: "1"}

# The model that Claude Code asks by itself, where no variable names another one.
CLASSIFIER = "claude-sonnet-5"
# Words that only one kind of request has.
OF_CLASSIFIER = '"</block>"'
OF_SEVERITY = "<severity>"


class Judge(BaseHTTPRequestHandler):
    """A model that judges, on a server of its own: the ids of calls cannot be known before it is asked."""

    # What it says of each call, or all that it says.
    entry, text, status = None, None, 200

    def do_POST(self):  # noqa: N802
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        calls = asked["messages"][-1]["content"].split("<calls>")[1]
        ids = re.findall(r'^{"id":"(\w+)"', calls, re.MULTILINE)
        said = self.text or json.dumps({"verdicts": [{"id": it, **(self.entry or {})} for it in ids]})
        body = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}).encode()
        self.send_response(self.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def judged_by(**answers):
    """The configuration in which a judge answers so."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answers", (Judge,), answers))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {
        "upstreams": {"demo": {"url": harness.DEMO + "/v1"},
                      "guard": {"url": f"http://127.0.0.1:{server.server_port}/v1", "key": "none"}},
        "models": {"*": {"upstream": "demo"}},
        "safeguards": {"model": "guard", "upstream": "guard", "timeout_ms": 5000},
    }


def verdict(outcome):
    return judged_by(entry={"explanation": "It is a test.", "rule": "", "verdict": outcome})


class Gateway:
    """A gateway in front of the demo model."""

    def __init__(self, config):
        self.log = os.path.join(ROOM.name, f"{len(os.listdir(ROOM.name))}.log")
        with open(self.log, "w", encoding="utf-8") as log, open(self.log + ".json", "w", encoding="utf-8") as file:
            json.dump(config, file)
            file.flush()
            self.process = subprocess.Popen(
                [CREOLE, "serve", "--config", file.name, "--listen", "127.0.0.1:0", "--no-check",
                 *([] if "upstreams" in config else ["--upstream", harness.DEMO + "/v1"])],
                stdout=subprocess.PIPE, stderr=log, text=True)
        self.base = self.process.stdout.readline().split()[-1]

    def lines(self):
        """What it logged of requests of the conversation."""
        with open(self.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.startswith("{")]
        return [line for line in lines if line.get("path", "").startswith("/v1/messages")]


class Run:
    """One session with one command of the model's."""

    def __init__(self, name, config, steps=(), options=(), **environment):
        home = os.path.join(ROOM.name, name)
        work = os.path.join(home, "project")
        os.makedirs(work)
        self.made = os.path.join(home, "made.txt")
        command = f"python3 -c \"open('{self.made}', 'w').write('{name}')\""
        script(*steps, step(call("Bash", command=command, description="Make a file")), step(say("Done."), times=0))
        gateway = Gateway(config)
        try:
            done = harness.run(
                [CLAUDE, "-p", "Make the file.", "--model", "demo", "--output-format", "stream-json", "--verbose",
                 "--max-turns", "6", "--permission-mode", "auto", *options],
                home, work,
                ANTHROPIC_BASE_URL=gateway.base, ANTHROPIC_API_KEY="dummy", DISABLE_AUTOUPDATER="1",
                DISABLE_ERROR_REPORTING="1", CLAUDE_CODE_MAX_RETRIES="1", **environment)
        finally:
            gateway.process.terminate()
            gateway.process.wait()
        self.shown = done.stdout + done.stderr
        self.ran = os.path.exists(self.made)
        self.logged = gateway.lines()
        assert self.statuses() <= {200, 404}, self.logged

    def verdicts(self):
        """What came of asking the judge, answer by answer."""
        return [line["judge"]["result"] for line in self.logged if "judge" in line]

    def asks_itself(self, model=CLASSIFIER):
        """Claude Code asked this model whether a command is safe."""
        return any(line["model"] == model for line in self.logged)

    def statuses(self):
        return {line["status"] for line in self.logged}

    def sends_safeguards(self):
        return any("dropped:safeguards" in line.get("warnings", "") or "judge" in line for line in self.logged)

    def is_told_of_the_gateway(self):
        """Claude Code shows a notice that the gateway does not check."""
        return "your requests go through 127.0.0.1" in self.shown

    def show(self):
        return f"ran: {self.ran}\n{self.shown[-6000:]}\n{self.logged}"


@check
def a_harmless_command_runs_without_a_notice():
    for name, environment in (("harmless", {}), ("harmless-off", OFF)):
        it = Run(name, verdict("not_flagged"), **environment)
        assert it.ran and not it.is_told_of_the_gateway(), it.show()
        assert it.verdicts() == ["judged", "not_needed"] and not it.asks_itself(), it.show()


@check
def a_flagged_command_is_blocked_with_its_reason():
    for name, environment in (("flagged", {}), ("flagged-off", OFF)):
        it = Run(name, verdict("flagged"), **environment)
        assert not it.ran and "It is a test." in it.shown, it.show()
        assert it.verdicts()[0] == "judged" and not it.asks_itself(), it.show()


@check
def a_judge_that_is_down_or_unclear_lets_nothing_run_unasked():
    for name, judge, result in (
        ("down", judged_by(status=500), "error"), ("unclear", judged_by(text="It looks fine to me."), "incomplete"),
    ):
        it = Run(name, judge, **OFF)
        assert not it.ran and it.verdicts()[0] == result and not it.asks_itself(), it.show()


@check
def without_a_judge_claude_code_asks_a_model_and_names_the_gateway():
    for answer, ran in (("<block>no", True), ("<block>yes", False)):
        it = Run(f"own-{ran}", {}, [step(say(answer), when=OF_CLASSIFIER, times=0)])
        assert it.ran == ran and it.asks_itself() and it.is_told_of_the_gateway(), it.show()
        assert it.sends_safeguards() and it.statuses() == {200}, it.show()


@check
def without_a_judge_the_model_that_it_asks_is_the_one_of_two_variables():
    for variable in ("ANTHROPIC_DEFAULT_SONNET_MODEL", "CLAUDE_CODE_AUTO_MODE_MODEL"):
        it = Run(variable, {}, [step(say("<block>no"), when=OF_CLASSIFIER, times=0)], **{variable: "small"})
        assert it.ran and it.asks_itself("small") and not it.asks_itself(), it.show()


@check
def without_a_judge_and_its_own_model_claude_code_asks_the_main_model():
    missing = step("demo:error 404", when=f'"{CLASSIFIER}"', times=0)
    it = Run("not-found", {}, [missing, step(say("<block>no"), when=OF_CLASSIFIER, times=0)])
    assert it.ran and it.asks_itself() and it.statuses() == {200, 404}, it.show()


@check
def without_a_judge_and_telemetry_nothing_runs():
    for variable in ALL_OFF:
        it = Run(variable, {}, [step(say("<block>no"), when=OF_CLASSIFIER, times=0)], **{variable: "1"})
        assert not it.ran and not it.asks_itself() and it.sends_safeguards(), it.show()


@check
def with_its_server_check_switched_off_claude_code_never_asks_the_gateway():
    it = Run("local", {}, [step(say("<severity>0</severity>"), when=OF_SEVERITY, times=0)],
             CLAUDE_CODE_AUTO_MODE_SERVER="0", **OFF)
    assert it.ran and it.asks_itself() and not it.sends_safeguards(), it.show()


@check
def with_auto_mode_disabled_there_is_none():
    settings = json.dumps({"permissions": {"disableAutoMode": "disable"}})
    it = Run("disabled", {}, [step(say("<block>no"), when=OF_CLASSIFIER, times=0)], ("--settings", settings))
    assert not it.ran and not it.asks_itself() and not it.sends_safeguards(), it.show()
    assert '"permissionMode":"default"' in it.shown, it.show()


def main():
    demo = subprocess.Popen([CREOLE, "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    try:
        for line in demo.stdout:
            if "the demo model at " in line:
                harness.DEMO = line.split("the demo model at ")[1].split("/v1.")[0]
                break
        harness.main()
    finally:
        demo.kill()
        ROOM.cleanup()


if __name__ == "__main__":
    harness.version("Claude Code", subprocess.check_output([CLAUDE, "--version"], text=True).split()[0])
    main()
