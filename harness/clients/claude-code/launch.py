"""`creole launch` with nothing else said, and real clients: finds a scripted Ollama at its usual port.

launch.py CREOLE CLAUDE [NAME=FOLDER …]

Runs in a network of its own (`unshare`), where that port is free.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CREOLE, CLAUDE = (os.path.abspath(path) for path in sys.argv[1:3])
OTHERS = dict(argument.split("=", 1) for argument in sys.argv[3:])
MODEL = "qwen3-coder:30b"


# How the other clients run one command: pattern of the program in the folder of packages, arguments before the prompt,
# the tool, and its input.
SHELL = {"command": "echo hello > hello.txt; cat hello.txt", "description": "Say hello"}
COMMANDS = {
    "opencode": ("opencode-*-*/bin/opencode", ["run"], "bash", SHELL),
    "pi": (".bin/pi", ["-p"], "bash", {"command": SHELL["command"]}),
    "qwen-code": (".bin/qwen", ["--yolo", "-p"], "run_shell_command", {**SHELL, "is_background": False}),
}


class Ollama(BaseHTTPRequestHandler):
    """What Ollama answers: its list, what is loaded, and chats, which the demo model answers."""

    demo = ""
    asked = []
    # Statuses of the next answers to prompts.
    failures = []

    def do_GET(self):
        known = {
            "/v1/models": {"data": [{"id": MODEL, "object": "model", "owned_by": "library"}]},
            "/api/ps": {"models": [{"name": MODEL, "context_length": 65536}]},
        }
        self.answer(200 if self.path in known else 404, json.dumps(known.get(self.path, {})).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Ollama.asked.append(json.loads(body))
        if Ollama.failures and Ollama.asked[-1]:
            return self.answer(Ollama.failures.pop(), b'{"error": {"message": "busy"}}')
        ran = subprocess.run(
            ["curl", "-s", "-H", "content-type: application/json", "--data-binary", "@-", Ollama.demo + self.path],
            input=body, stdout=subprocess.PIPE, check=True,
        )
        kind = "text/event-stream" if Ollama.asked[-1].get("stream") else "application/json"
        self.answer(200, ran.stdout, kind)

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    demo = subprocess.Popen([CREOLE, "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    for line in demo.stdout:
        if "the demo model at " in line:
            Ollama.demo = line.split("the demo model at ")[1].split("/v1.")[0]
            break
    server = ThreadingHTTPServer(("127.0.0.1", 11434), Ollama)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        # Variables in the user's settings win over the environment.
        os.makedirs(os.path.join(home, ".claude"))
        with open(os.path.join(home, ".claude", "settings.json"), "w", encoding="utf-8") as file:
            json.dump({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_MODEL": "other"}}, file)
        work = os.path.join(home, "project")
        os.makedirs(work)
        command = '{"command": "echo hello > hello.txt; cat hello.txt", "description": "Say hello"}'

        def run(client, program, arguments, folder=work, given="", **environment):
            return subprocess.run(
                [CREOLE, "launch", client, "--", *arguments],
                cwd=folder, input=given, capture_output=True, text=True, timeout=240, check=False,
                env={"HOME": home, "PATH": os.path.dirname(program) + ":" + os.environ["PATH"],
                     "OPENAI_API_KEY": "sk-canary", **environment},
            )

        def launch(tool, prompt, *arguments, **environment):
            return run("claude", CLAUDE, [*arguments, "--allowedTools", tool, "-p", prompt], **environment)

        def launch_other(client, packages):
            pattern, arguments, tool, values = COMMANDS[client]
            prompt = f"demo:tool {tool} demo:input {json.dumps(values)}"
            # Of the programs of opencode, the one without a suffix wants what every machine has.
            program = min(glob.glob(os.path.join(packages, "node_modules", pattern)), key=len)
            folder = os.path.join(home, client)
            os.makedirs(folder)
            # opencode puts quotes around an argument, but not around its input.
            arguments, given = (arguments, prompt) if client == "opencode" else ([*arguments, prompt], "")
            ran = run(client, program, arguments, folder, given, PI_OFFLINE="1", OPENCODE_DISABLE_MODELS_FETCH="1",
                      OPENCODE_DISABLE_AUTOUPDATE="1")
            return ran, os.path.exists(os.path.join(folder, "hello.txt"))

        ran = launch("Bash", f"demo:tool Bash demo:input {command}")
        # The command that is printed goes on with the session.
        again = ran.stderr.split("to go on with this session: ")[1].splitlines()[0]
        asked = len(Ollama.asked)
        resumed = launch("Bash", "demo:say Resumed.", again.split(" -- ")[1])
        history = json.dumps([body.get("messages") for body in Ollama.asked[asked:]])
        # The tool is in the first request then, and need not be found by another search.
        searched = launch("WebSearch", "demo:search context window", ENABLE_TOOL_SEARCH="false")
        failing = Ollama.failures = [503]
        retried = launch("Bash", "demo:say Retried.")
        others = {client: launch_other(client, os.path.abspath(packages)) for client, packages in OTHERS.items()}
        runs = [ran, searched, resumed, retried, *(it for it, _ in others.values())]
        shown = "\n".join(f"{it.returncode}\n{it.stdout}\n{it.stderr}" for it in runs)
        with open(os.path.join(home, ".local/state/creole/launch.log"), encoding="utf-8") as file:
            log = file.read()
        made = os.path.exists(os.path.join(work, "hello.txt"))
    demo.kill()
    checks = {
        "it_answers_through_creole": ran.returncode == 0 and "Bash answered: hello" in ran.stdout,
        "its_tool_ran": made,
        "it_says_what_it_took": f"model {MODEL}: the only one" in ran.stderr,
        # An empty request shows whether the server wants a key.
        "each_request_asks_for_the_model": {body.get("model") for body in Ollama.asked if body} == {MODEL},
        "a_search_without_a_service_is_not_offered":
            "WebSearch is switched off, because no search service is named: --search URL" in searched.stderr
            and not any("WebSearch" in json.dumps(body.get("tools", [])) for body in Ollama.asked),
        "the_printed_command_goes_on_with_the_session":
            again.endswith(" launch claude -- --continue") and "Resumed." in resumed.stdout
            and "hello.txt" in history,
        "a_failure_that_is_retried_is_told":
            "Retried." in retried.stdout and "creole: 529 upstream_refused" in retried.stderr and not failing,
        "the_log_says_what_happened":
            log.count(" launches claude behind ") == 4 and "1 tool call" in log and "529" in log
            and "demo:" not in log,
        **{f"{client}_answers_through_creole_and_runs_its_tool": ran.returncode == 0 and made and
           "answered:" in ran.stdout for client, (ran, made) in others.items()},
        "no_key_of_a_vendor_is_told": "sk-canary" not in shown + log,
    }
    for name, good in checks.items():
        print("ok" if good else "FAILED", name)
    failed = sum(not good for good in checks.values())
    if failed:
        print(shown)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if os.environ.get("CREOLE_OWN_NETWORK"):
    main()
else:
    os.environ["CREOLE_OWN_NETWORK"] = "1"
    os.execvp("unshare", ["unshare", "-rn", sys.executable, os.path.abspath(__file__), *sys.argv[1:]])
