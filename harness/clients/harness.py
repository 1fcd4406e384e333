"""What the scripts in this folder share: the demo model's script and records, a program run headless,
checks that are counted. Standard library only.

A script is started with three arguments:

    BASE_URL    the host that is tested
    DEMO_URL    the demo model behind it
    FOLDER      what was installed for this client, and room for its files

It prints `version NAME VERSION` once, a line `ok NAME` or `FAIL NAME` for each check, and last
`N passed, N failed`; `cargo xtask clients` reads these lines.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

from as_chat import as_chat

BASE, DEMO, FOLDER = (sys.argv[1:4] + ["", "", ""])[:3]
checks = []


def check(function):
    """Registers a check; its name is a claim."""
    checks.append(function)
    return function


def http(method, url, body=None, headers=(), timeout=30):
    """The status and the text of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


# The words of docs/quick-start.md.

def say(text):
    return f"demo:say {text}"


def call(name, arguments=None, **more):
    """A tool call; arguments are an object, or text as it is."""
    arguments = more if arguments is None else arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return f"demo:tool {name}\ndemo:input {text}"


def step(*words, when="", times=1):
    """One answer of the demo model: to the next request, whose body has `when` in it."""
    return {"when": when, "times": times, "words": "\n".join(words)}


def script(*steps):
    """What the demo model answers from now on, and a clean record."""
    forget()
    status, text = http("POST", DEMO + "/demo/script", [
        step if isinstance(step, dict) else globals()["step"](step) for step in steps
    ])
    assert status == 200, text


def forget():
    http("DELETE", DEMO + "/demo/script")
    http("DELETE", DEMO + "/demo/requests")


def records():
    """What arrived at the demo model, oldest first; `body` read as JSON."""
    found = json.loads(http("GET", DEMO + "/demo/requests")[1])["requests"]
    for record in found:
        record["body"] = json.loads(record["body"]) if record["body"] else None
    return found


def sent():
    """The bodies that the demo model answered; those of Responses by `as_chat`."""
    ends = ("/chat/completions", "/responses")
    return [as_chat(record["body"]) for record in records() if record["path"].endswith(ends)]


def refused():
    """What the demo model found wrong with requests: a translation that it refuses is a bug."""
    return [record for record in records() if record["status"] == 400]


def results(body):
    """The texts of the tool results in a request, in order."""
    found = []
    for message in body["messages"]:
        if message["role"] == "tool":
            content = message["content"]
            if not isinstance(content, str):
                content = "\n".join(part.get("text", "") for part in content)
            found.append(content)
    return found


def paired(body, unique=True):
    """Every tool call has its result right after it, every result its call, and no id comes twice: a
    model that repeats its ids (`unique=False`) gets them back as it made them."""
    waiting, seen = [], set()
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, message["tool_call_id"]
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"no result for {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        assert not unique or not seen.intersection(waiting), f"ids come twice: {waiting}"
        seen.update(waiting)
    assert not waiting, f"no result for {waiting}"


# A short run of an agent whose only tool is `get_weather(city, days)`.

WEATHER_STEPS = (
    step(say("Let me look."), call("get_weather", city='Paris ✓ "q"', days=2)),
    step(call("get_weather", city="Rome", days=1), call("get_weather", city="Oslo", days=3)),
    step(say("It is sunny.")),
)


def looked(asked):
    """The tool ran with the inputs of WEATHER_STEPS, and its results went back with the calls."""
    assert sorted(asked) == [("Oslo", 3), ('Paris ✓ "q"', 2), ("Rome", 1)], asked
    bodies = sent()
    assert len(bodies) == 3 and not refused(), len(bodies)
    paired(bodies[-1])
    assert len(results(bodies[-1])) == 3


def folder(name):
    """An empty folder for one run."""
    path = os.path.join(FOLDER, "runs", name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def run(command, home, work, timeout=120, **environment):
    """Runs a program with nothing of the caller's environment but the path."""
    clean = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb", "TMPDIR": tempfile.gettempdir()}
    clean.update(environment)
    return subprocess.run(
        command, cwd=work, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=timeout, text=True, errors="replace",
    )


def version(name, text):
    print(f"version {name} {text}", flush=True)


def node_package(name):
    """The version of an npm package that is installed."""
    with open(os.path.join(FOLDER, "node_modules", name, "package.json")) as file:
        return json.load(file)["version"]


def main():
    """Runs the checks, those alone whose name has one of the words in CREOLE_ONLY."""
    failed = 0
    only = os.environ.get("CREOLE_ONLY", "").split()
    for word in only:
        if not any(word in run.__name__ for run in checks):
            sys.exit(f"no check has {word} in its name; there are: {' '.join(run.__name__ for run in checks)}")
    chosen = [run for run in checks if not only or any(word in run.__name__ for word in only)]
    for run in chosen:
        forget()
        start = time.monotonic()
        try:
            run()
            print(f"ok {run.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {run.__name__}", flush=True)
            traceback.print_exc(file=sys.stdout)
    # The next client finds a demo model without a script.
    forget()
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
