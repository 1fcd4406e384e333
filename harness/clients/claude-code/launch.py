"""`creole launch claude` with nothing else said, and a real Claude Code: finds a scripted Ollama at its usual port.

launch.py CREOLE CLAUDE

Runs in a network of its own (`unshare`), where that port is free.
"""
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CREOLE, CLAUDE = (os.path.abspath(path) for path in sys.argv[1:3])
MODEL = "qwen3-coder:30b"


class Ollama(BaseHTTPRequestHandler):
    """What Ollama answers: its list, what is loaded, and chats, which the demo model answers."""

    demo = ""
    asked = []

    def do_GET(self):
        known = {
            "/v1/models": {"data": [{"id": MODEL, "object": "model", "owned_by": "library"}]},
            "/api/ps": {"models": [{"name": MODEL, "context_length": 65536}]},
        }
        self.answer(200 if self.path in known else 404, json.dumps(known.get(self.path, {})).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Ollama.asked.append(json.loads(body))
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

        def launch(tool, prompt, **environment):
            return subprocess.run(
                [CREOLE, "launch", "claude", "--", "--allowedTools", tool, "-p", prompt],
                cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
                env={"HOME": home, "PATH": os.path.dirname(CLAUDE) + ":" + os.environ["PATH"],
                     "OPENAI_API_KEY": "sk-canary", **environment},
            )

        ran = launch("Bash", f"demo:tool Bash demo:input {command}")
        # The tool is in the first request then, and need not be found by another search.
        searched = launch("WebSearch", "demo:search context window", ENABLE_TOOL_SEARCH="false")
        shown = "\n".join(f"{it.returncode}\n{it.stdout}\n{it.stderr}" for it in (ran, searched))
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
        "no_key_of_a_vendor_is_told": "sk-canary" not in shown,
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
    os.execvp("unshare", ["unshare", "-rn", sys.executable, os.path.abspath(__file__), CREOLE, CLAUDE])
