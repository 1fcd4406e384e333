"""What the real Claude Code says to bad arguments, without and with mending (`tool_arguments`).

arguments.py CREOLE CLAUDE

Each row is a call of its own; all of them are made in a few turns, once through a gateway that passes arguments and
once through one that mends them. It prints the table, and fails where a word of it is not so.
"""
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request

from argument_rows import RAN, chosen, edits, rows

HERE = os.path.dirname(os.path.abspath(__file__))
CREOLE, CLAUDE = (os.path.abspath(path) for path in sys.argv[1:3])
MODEL = "qwen3-coder"
# The client runs at most so many calls of one turn at once; more turns would only take longer.
CALLS_IN_A_TURN = 30
# Files that are edited, one for each row.
EDITED = "abcdef"
BOOKS = ("book.ipynb", "emptied.ipynb")


def http(method, url, body=None):
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode(), method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def started(command, before, after):
    """A program, and the address that its output has between two texts."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in child.stdout:
        if before in line:
            return child, line.split(before)[1].split(after)[0].strip()
    raise RuntimeError(f"{command} gave no address")


def call(tool, arguments):
    return f"demo:tool {tool}\ndemo:input {json.dumps(arguments)}"


def turns_of(table):
    return [table[at:at + CALLS_IN_A_TURN] for at in range(0, len(table), CALLS_IN_A_TURN)]


def of_host(request):
    """What the program that started Claude Code says to a question of its."""
    given = request["input"]
    if request["tool_name"] == "AskUserQuestion":
        given = {**given, "answers": {it["question"]: "B" for it in given["questions"]}}
    return {"behavior": "allow", "updatedInput": given}


def converse(options, home, work, base):
    """One session that allows everything. Gives its events, and what it wrote beside."""
    client = subprocess.Popen(
        [CLAUDE, "-p", "--model", MODEL, "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
         "--max-turns", "12", "--permission-prompt-tool", "stdio", "--settings", '{"skipWebFetchPreflight": true}',
         *options],
        cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={"HOME": home, "PATH": os.environ["PATH"], "TERM": "dumb", "ANTHROPIC_BASE_URL": base,
             "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
             "DISABLE_AUTOUPDATER": "1", "ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"},
    )
    late = threading.Timer(300, client.kill)
    late.start()

    def tell(message):
        client.stdin.write(json.dumps(message) + "\n")
        client.stdin.flush()

    events, beside = [], ""
    try:
        tell({"type": "user", "message": {"role": "user", "content": "Go."}})
        for line in client.stdout:
            if not line.startswith("{"):
                beside += line
                continue
            event = json.loads(line)
            events.append(event)
            if event["type"] == "control_request":
                answer = of_host(event["request"])
                answer = {"subtype": "success", "request_id": event["request_id"], "response": answer}
                tell({"type": "control_response", "response": answer})
            elif event["type"] == "result":
                client.stdin.close()
    finally:
        late.cancel()
        client.kill()
        client.wait()
    return events, beside


def prepared(home):
    """A folder with the files of the table."""
    work = os.path.join(home, "project")
    os.makedirs(work)
    for name in ["lines.txt"] + [f"edit-{letter}.txt" for letter in EDITED]:
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            file.write("one\ntwo\nthree\n")
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "x = 0", "outputs": [], "execution_count": None}
    for name in BOOKS:
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            json.dump({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, file)
    return work


def results(base, model, work, home, before, turns, options):
    """Makes all calls. Gives what the client said to each of `turns`, which come after those of `before`."""
    words = ["\n".join(call(*it) for it in before)] if before else []
    words += ["\n".join(call(row.tool, row.arguments) for row in turn) for turn in turns]
    steps = [{"when": "", "times": 1, "words": step} for step in words]
    # Only a sub-agent's own conversation begins with these words, and only a search has these.
    steps.insert(0, {"when": ':"SUBTASK', "times": 0, "words": "demo:say I am a sub-agent."})
    steps.insert(0, {"when": "Perform a web search", "times": 0, "words": "demo:say I found nothing."})
    steps.append({"when": "", "times": 0, "words": "demo:say Done."})
    http("DELETE", model + "/demo/script")
    http("POST", model + "/demo/script", steps)
    events, beside = converse(options, home, work, base)
    made, said_of = [], {}
    for event in events:
        if event["type"] not in ("assistant", "user") or event.get("parent_tool_use_id"):
            continue
        content = event["message"]["content"]
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                made.append(block["id"])
            elif block["type"] == "tool_result":
                said_of[block["tool_use_id"]] = said(block)
    made = made[len(before):]
    expected = sum(len(turn) for turn in turns)
    if len(made) != expected:
        sys.exit(f"{len(made)} calls of {expected}: {json.dumps(events)[-3000:]} {beside[-3000:]}")
    return [said_of.get(it, "no result") for it in made]


def ask(base, model, policy):
    """Makes all calls behind one gateway. Gives the rows with what the client said, and what became of files."""
    servers = {"mcpServers": {"odd": {"command": sys.executable, "args": [os.path.join(HERE, "mcp_server.py")]}}}
    with tempfile.TemporaryDirectory() as home:
        work = prepared(home)
        table, edited = rows(work), edits(work)
        before = [("Read", {"file_path": row.arguments["file_path"]}) for row in edited]
        before += [("Read", {"file_path": os.path.join(work, name)}) for name in BOOKS]
        found = results(base, model, work, home, before, [*turns_of(table), edited],
                        ["--mcp-config", json.dumps(servers)])
        empty = os.path.join(work, "empty.txt")
        kept = {
            "an_empty_file_is_written": os.path.exists(empty) and os.path.getsize(empty) == 0,
            "an_empty_text_takes_the_place_of_another": text_of(os.path.join(work, "edit-c.txt")) == "one\nthree\n",
            "an_empty_cell_is_written": json.loads(text_of(os.path.join(work, BOOKS[1])))["cells"][0]["source"] == "",
        }
    with tempfile.TemporaryDirectory() as home:
        work = prepared(home)
        others = chosen(work)
        tools = ",".join(dict.fromkeys(["Read", *(row.tool for row in others)]))
        found += results(base, model, work, home, [], turns_of(others), ["--tools", tools])
    all_rows = table + edited + others
    for row, words in zip(all_rows, found):
        row.said[policy] = words
    return all_rows, kept


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def said(block):
    content = block["content"]
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    return ("error: " if block.get("is_error") else "") + content


def is_as_told(said_words, expected):
    return not said_words.startswith("error: ") if expected == RAN else expected in said_words


def shown(text):
    text = text.replace("<tool_use_error>", "").replace("</tool_use_error>", "")
    return " ".join(text.split())[:78]


def main():
    demo, model = started(
        [CREOLE, "demo", "--listen", "127.0.0.1:0", "--model-listen", "127.0.0.1:0"], "the demo model at ", "/v1",
    )
    children, found, kept = [demo], {}, {}
    try:
        for policy in ("pass", "mend"):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
                upstreams = {"demo": {"url": model + "/v1"}}
                json.dump({"tool_arguments": policy, "log": "error", "upstreams": upstreams}, config)
                config.flush()
                gateway, base = started(
                    [CREOLE, "serve", "--config", config.name, "--listen", "127.0.0.1:0", "--no-check"],
                    "listening on ", " ",
                )
                children.append(gateway)
            found[policy], kept[policy] = ask(base, model, policy)
    finally:
        for child in children:
            child.kill()
    version = subprocess.run([CLAUDE, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    print(f"version {version}")
    failed = 0
    for without, mended in zip(found["pass"], found["mend"]):
        good = is_as_told(without.said["pass"], without.expected["pass"])
        good &= is_as_told(mended.said["mend"], mended.expected["mend"])
        failed += not good
        print("ok    " if good else "FAILED", without.name())
        print("         without:", shown(without.said["pass"]))
        print("         with:   ", shown(mended.said["mend"]))
    for name in kept["mend"]:
        good = kept["pass"][name] and kept["mend"][name]
        failed += not good
        print("ok    " if good else "FAILED", name)
    total = len(found["pass"]) + len(kept["mend"])
    print(f"{total - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
