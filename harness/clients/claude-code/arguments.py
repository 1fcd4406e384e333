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
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
CREOLE, CLAUDE = (os.path.abspath(path) for path in sys.argv[1:3])
MODEL = "qwen3-coder"
# The client runs at most so many calls of one turn at once; more turns would only take longer.
CALLS_IN_A_TURN = 30

REFUSED = "is expected as"
RAN = "ok"


class Row:
    """A tool, arguments that it takes, one that is bad, and what the client says: without, with."""

    def __init__(self, tool, good, member, value, without, mended):
        self.tool, self.member, self.value = tool, member, value
        self.arguments = {**good, member: value}
        self.expected = {"pass": without, "mend": mended}
        self.said = {}

    def name(self):
        return f"{self.tool.split('__')[-1]}.{self.member} {json.dumps(self.value)}"


def rows(work):
    """The table. `ok` stands for a result that is no error; other words must be in the result."""
    def path(name):
        return os.path.join(work, name)

    read = {"file_path": path("lines.txt")}
    bash = {"command": "echo ran-it", "description": "Echo"}
    slow = {"command": "sleep 2; echo ran-it", "description": "Echo late"}
    agent = {"description": "Small task", "prompt": "SUBTASK", "subagent_type": "general-purpose"}
    book = {"notebook_path": path("book.ipynb"), "new_source": "x = 1", "cell_id": "a"}
    huge = 25999999999999999
    table = []
    for member in ("offset", "limit"):
        for value in ("", " ", None, huge):
            words = "too_big" if value == huge else REFUSED
            table.append(Row("Read", read, member, value, words, "1\tone"))
    table += [
        Row("Read", read, "offset", 0, "0\tone", "1\tone"),
        Row("Read", read, "offset", "2", "2\ttwo", "2\ttwo"),
        Row("Read", read, "limit", "2", "2\ttwo", "2\ttwo"),
        Row("Read", read, "limit", 2.5, REFUSED, REFUSED),
        Row("Read", read, "limit", "all", REFUSED, REFUSED),
        Row("Read", read, "pages", "", "1\tone", "1\tone"),
        Row("Read", read, "pages", None, REFUSED, "1\tone"),
        Row("Read", read, "file_path", None, REFUSED, REFUSED),
        Row("Read", read, "colour", None, "unexpected parameter", "1\tone"),
        Row("Read", read, "colour", "", "unexpected parameter", "1\tone"),
        Row("Read", read, "colour", "red", "unexpected parameter", "unexpected parameter"),
        Row("Bash", bash, "timeout", "", REFUSED, "ran-it"),
        Row("Bash", bash, "timeout", None, REFUSED, "ran-it"),
        Row("Bash", slow, "timeout", -1, "timed out", "ran-it"),
        Row("Bash", bash, "timeout", "5000", "ran-it", "ran-it"),
        Row("Bash", bash, "timeout", 0, "ran-it", "ran-it"),
        Row("Bash", bash, "run_in_background", "", REFUSED, "ran-it"),
        Row("Bash", bash, "run_in_background", None, REFUSED, "ran-it"),
        Row("Bash", bash, "run_in_background", "false", "ran-it", "ran-it"),
        Row("Bash", bash, "dangerouslyDisableSandbox", "", REFUSED, "ran-it"),
        Row("Bash", bash, "dangerouslyDisableSandbox", None, REFUSED, "ran-it"),
        Row("Bash", bash, "description", "", "ran-it", "ran-it"),
        Row("Bash", bash, "description", None, REFUSED, "ran-it"),
        Row("Bash", bash, "command", None, REFUSED, REFUSED),
        Row("Write", {"file_path": path("empty.txt")}, "content", "", RAN, RAN),
        Row("Write", {"file_path": path("null.txt")}, "content", None, REFUSED, REFUSED),
        Row("NotebookEdit", book, "edit_mode", "", "invalid_value", "x = 1"),
        Row("NotebookEdit", book, "edit_mode", None, "invalid_value", "x = 1"),
        Row("NotebookEdit", book, "cell_type", "", "invalid_value", "x = 1"),
        Row("Agent", agent, "model", "", "invalid_value", RAN),
        Row("Agent", agent, "model", "inherit", "invalid_value", RAN),
        Row("Agent", agent, "model", None, "invalid_value", RAN),
        Row("Agent", agent, "subagent_type", "", "not found", RAN),
        Row("Agent", agent, "isolation", "", "invalid_value", RAN),
        Row("Agent", agent, "run_in_background", "", REFUSED, RAN),
    ]
    query = {"query": "q"}

    def got(**more):
        return "got " + json.dumps({**query, **more}, sort_keys=True)

    # JavaScript does not hold it exactly.
    rounded = got(size=26000000000000000)
    table.append(Row("mcp__odd__search", query, "size", huge, rounded, rounded))
    for member, value in (
        ("size", ""), ("size", None), ("page", 0), ("exact", ""), ("exact", None), ("order", ""),
        ("order", None), ("tags", ""), ("tags", None), ("since", ""), ("since", None), ("note", None),
    ):
        table.append(Row("mcp__odd__search", query, member, value, got(**{member: value}), got()))
    nested = {"from": "", "name": ""}
    table.append(Row("mcp__odd__search", query, "filter", nested, got(filter=nested), got(filter={"name": ""})))
    # These are as the model meant them, for all that can be known.
    for member, value in (
        ("note", ""), ("cursor", None), ("cursor", ""), ("order", "down"), ("filter", None), ("tags", []), ("more", ""),
        ("size", 0),
    ):
        table.append(Row("mcp__odd__search", query, member, value, got(**{member: value}), got(**{member: value})))
    table.append(Row("mcp__odd__search", {}, "query", "", 'got {"query": ""}', 'got {"query": ""}'))
    for value in (None, ""):
        odd = "got " + json.dumps({"id": value, "name": "n"}, sort_keys=True)
        table.append(Row("mcp__odd__odd", {"name": "n"}, "id", value, odd, odd))
    return table


def edits(work):
    """What edits files, in an order of its own: each file is read first."""
    def edit(name, member, value, without, mended):
        good = {"file_path": os.path.join(work, name), "old_string": "two\n", "new_string": "2\n"}
        return Row("Edit", good, member, value, without, mended)

    return [
        edit("edit-a.txt", "replace_all", "", REFUSED, "updated"),
        edit("edit-b.txt", "replace_all", None, REFUSED, "updated"),
        edit("edit-c.txt", "new_string", "", "updated", "updated"),
        edit("edit-d.txt", "new_string", None, REFUSED, REFUSED),
        edit("edit-e.txt", "replace_all", "false", "updated", "updated"),
    ]


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


def ask(base, model, policy):
    """Makes all calls behind one gateway. Gives the rows with what the client said."""
    with tempfile.TemporaryDirectory() as home:
        work = os.path.join(home, "project")
        os.makedirs(work)
        for name in ["lines.txt"] + [f"edit-{letter}.txt" for letter in "abcde"]:
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write("one\ntwo\nthree\n")
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "x = 0", "outputs": [], "execution_count": None}
        with open(os.path.join(work, "book.ipynb"), "w", encoding="utf-8") as file:
            json.dump({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, file)
        servers = {"mcpServers": {"odd": {"command": sys.executable, "args": [os.path.join(HERE, "mcp_server.py")]}}}
        table, edited = rows(work), edits(work)
        before = [("Read", {"file_path": row.arguments["file_path"]}) for row in edited]
        before.append(("Read", {"file_path": os.path.join(work, "book.ipynb")}))
        turns = [[(row.tool, row.arguments) for row in turn] for turn in [*turns_of(table), edited]]
        words = ["\n".join(call(*it) for it in turn) for turn in [before, *turns]]
        steps = [{"when": "", "times": 1, "words": step} for step in words]
        # Only a sub-agent's own conversation begins with these words.
        steps.insert(0, {"when": ':"SUBTASK', "times": 0, "words": "demo:say I am a sub-agent."})
        steps.append({"when": "", "times": 0, "words": "demo:say Done."})
        http("DELETE", model + "/demo/script")
        http("POST", model + "/demo/script", steps)
        ran = subprocess.run(
            [CLAUDE, "-p", "Go.", "--model", MODEL, "--output-format", "stream-json", "--verbose", "--max-turns", "12",
             "--mcp-config", json.dumps(servers), "--allowedTools", "Bash", "Read", "Write", "Edit", "NotebookEdit",
             "Agent", "mcp__odd__search", "mcp__odd__odd"],
            cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
            env={"HOME": home, "PATH": os.environ["PATH"], "TERM": "dumb", "ANTHROPIC_BASE_URL": base,
                 "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                 "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "ENABLE_TOOL_SEARCH": "false"},
        )
        events = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        made, results = [], {}
        for event in events:
            if event["type"] not in ("assistant", "user") or event.get("parent_tool_use_id"):
                continue
            content = event["message"]["content"]
            for block in content if isinstance(content, list) else []:
                if block["type"] == "tool_use":
                    made.append(block["id"])
                elif block["type"] == "tool_result":
                    results[block["tool_use_id"]] = said(block)
        empty = os.path.join(work, "empty.txt")
        kept = {
            "an_empty_file_is_written": os.path.exists(empty) and os.path.getsize(empty) == 0,
            "an_empty_text_takes_the_place_of_another": text_of(os.path.join(work, "edit-c.txt")) == "one\nthree\n",
        }
    all_rows = table + edited
    made = made[len(before):]
    if len(made) != len(all_rows):
        sys.exit(f"{len(made)} calls of {len(all_rows)}: {ran.stdout[-3000:]} {ran.stderr[-3000:]}")
    for row, identifier in zip(all_rows, made):
        row.said[policy] = results.get(identifier, "no result")
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
                json.dump({"tool_arguments": policy, "log": "error", "upstreams": {"demo": {"url": model + "/v1"}}}, config)
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
