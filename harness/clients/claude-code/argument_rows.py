"""The table of `arguments.py`: tool, argument, bad value, and what Claude Code says without and with mending.

`ok` stands for a result that is no error; other words must be in the result. Where both are the same, nothing may be
mended, or nothing needs to be.
"""
import json
import os

REFUSED = "is expected as"
RAN = "ok"
# Members whose values are words of a list.
ENUMS = ("output_mode", "status")
# What tools say that ran, as far as they can here.
FETCHED = "ENOTFOUND"
SEARCHED = "search"
ANSWERED = "Which one?"


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
    """Tools of every session."""
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
        Row("Read", read, "pages", "all", "Invalid pages", "Invalid pages"),
        Row("Read", read, "pages", "1-5", "1\tone", "1\tone"),
        Row("Read", read, "offset", -1, "1\tone", "1\tone"),
        Row("Read", read, "limit", 0, "1\tone", "1\tone"),
        Row("Read", read, "limit", -1, "1\tone", "1\tone"),
        Row("Read", read, "allow_large", "", REFUSED, "1\tone"),
        Row("Read", read, "allow_large", None, REFUSED, "1\tone"),
        Row("Read", read, "file_path", None, REFUSED, REFUSED),
        Row("Read", read, "colour", None, "unexpected parameter", "1\tone"),
        Row("Read", read, "colour", "", "unexpected parameter", "1\tone"),
        Row("Read", read, "colour", "red", "unexpected parameter", "unexpected parameter"),
        Row("Bash", bash, "timeout", "", REFUSED, "ran-it"),
        Row("Bash", bash, "timeout", None, REFUSED, "ran-it"),
        Row("Bash", slow, "timeout", -1, "timed out", "ran-it"),
        Row("Bash", bash, "timeout", "5000", "ran-it", "ran-it"),
        Row("Bash", bash, "timeout", 0, "ran-it", "ran-it"),
        Row("Bash", bash, "timeout", huge, "ran-it", "ran-it"),
        Row("Bash", bash, "timeout", "soon", REFUSED, REFUSED),
        Row("Bash", bash, "run_in_background", "no", REFUSED, REFUSED),
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
        Row("NotebookEdit", book, "cell_type", None, "invalid_value", "x = 1"),
        Row("NotebookEdit", book, "cell_type", "python", "invalid_value", "invalid_value"),
        Row("NotebookEdit", {**book, "notebook_path": path("emptied.ipynb")}, "new_source", "", RAN, RAN),
        Row("NotebookEdit", book, "new_source", None, REFUSED, REFUSED),
        Row("Agent", agent, "model", "", "invalid_value", RAN),
        Row("Agent", agent, "model", "inherit", "invalid_value", RAN),
        Row("Agent", agent, "model", None, "invalid_value", RAN),
        Row("Agent", agent, "subagent_type", "", "not found", RAN),
        Row("Agent", agent, "subagent_type", None, REFUSED, RAN),
        Row("Agent", agent, "effort", "", "invalid_value", RAN),
        Row("Agent", agent, "effort", None, "invalid_value", RAN),
        Row("Agent", agent, "effort", "extreme", "invalid_value", "invalid_value"),
        Row("Agent", agent, "description", None, REFUSED, REFUSED),
        # Another name of `Agent`, which the client knows and its requests do not have.
        Row("Task", agent, "model", "", "invalid_value", "invalid_value"),
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
        edit("edit-f.txt", "old_string", None, REFUSED, REFUSED),
    ]

def chosen(work):
    """Tools that there are where somebody can be asked, or where there is no Bash."""
    grep = {"pattern": "two", "path": work}
    glob = {"pattern": "*.txt"}
    fetch = {"url": "https://creole.invalid/", "prompt": "What is it?"}
    search = {"query": "creole"}
    task = {"subject": "Sweep", "description": "Sweep the floor"}
    again = {"taskId": "1"}
    option, other = {"label": "A", "description": "The first"}, {"label": "B", "description": "The second"}
    question = {"question": "Which one?", "header": "One", "multiSelect": False,
                "options": [option, other]}
    found, huge = "lines.txt", 25999999999999999

    def optional(tool, good, members, values, mended):
        return [Row(tool, good, member, value, "invalid_value" if member in ENUMS else REFUSED, mended)
                for member in members for value in values]

    def asked(**more):
        return [{**question, **more}]

    return [
        *optional("Grep", grep, ["output_mode", "-n", "-i", "-C", "multiline"], ["", None], found),
        *optional("Grep", grep, ["head_limit", "offset"], ["", None], found),
        *optional("Grep", grep, ["path", "glob", "type"], [None], found),
        Row("Grep", {"pattern": "two"}, "path", "", found, found),
        Row("Grep", grep, "glob", "", found, found),
        Row("Grep", grep, "head_limit", 0, found, found),
        Row("Grep", grep, "output_mode", "files", "invalid_value", "invalid_value"),
        Row("Grep", grep, "pattern", None, REFUSED, REFUSED),
        *optional("Glob", glob, ["path"], [None], found),
        Row("Glob", glob, "path", "", found, found),
        Row("Glob", glob, "path", "undefined", "error", "error"),
        *optional("WebFetch", fetch, ["offset"], ["", None], FETCHED),
        Row("WebFetch", fetch, "offset", huge, "too_big", FETCHED),
        Row("WebFetch", fetch, "offset", -1, "too_small", FETCHED),
        Row("WebFetch", fetch, "offset", 0, FETCHED, FETCHED),
        Row("WebFetch", fetch, "prompt", None, REFUSED, REFUSED),
        *optional("WebSearch", search, ["allowed_domains", "blocked_domains"], ["", None], SEARCHED),
        Row("WebSearch", search, "allowed_domains", [], SEARCHED, SEARCHED),
        Row("WebSearch", search, "query", "c", "too_small", "too_small"),
        *[Row("TaskCreate", task, member, value, "Sweep", "Sweep")
          for member in ("activeForm", "metadata") for value in ("", None)],
        Row("TaskCreate", task, "subject", None, REFUSED, REFUSED),
        *optional("TaskUpdate", again, ["status", "owner", "addBlocks"], [None], "Updated"),
        *optional("TaskUpdate", again, ["status", "addBlocks"], [""], "Updated"),
        *optional("AskUserQuestion", {"questions": asked()}, ["answers", "annotations"], ["", None], ANSWERED),
        *optional("AskUserQuestion", {"questions": asked()}, ["metadata"], ["", None], ANSWERED),
        Row("AskUserQuestion", {}, "questions", asked(multiSelect=""), REFUSED, ANSWERED),
        Row("AskUserQuestion", {}, "questions", asked(multiSelect=None), REFUSED, ANSWERED),
        Row("AskUserQuestion", {}, "questions", asked(options=[{**option, "preview": None}, other]), REFUSED, ANSWERED),
        Row("AskUserQuestion", {}, "questions", asked(options=[option]), "too_small", "too_small"),
        Row("AskUserQuestion", {}, "questions", "", REFUSED, REFUSED),
        *optional("ExitPlanMode", {}, ["allowedPrompts"], ["", None], "plan mode"),
    ]
