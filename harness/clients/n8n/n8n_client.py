"""n8n as a server, with agents as tools of an agent. See `../harness.py`.

Each loop case runs twice: against `naive.py`, a translator without Creole's measures, where n8n loops
until its own limit or loses its agents' work, and against Creole, where the chain ends.
"""
import json
import os
import re
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import *  # noqa: E402,F403

import naive
import workflows

FINAL = "FINAL: the post is ready."
# What an orchestrator and three agents need: 4 + 2 + 1 + 1.
IDEAL = 8


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Server:
    """n8n with the workflows, started once."""

    def __init__(self):
        self.naive = naive.serve(DEMO)
        self.home = folder("server")
        self.port = free_port()
        self.env = {
            "PATH": os.environ["PATH"], "HOME": self.home, "N8N_USER_FOLDER": self.home,
            "N8N_ENCRYPTION_KEY": "only-for-this-test", "DB_TYPE": "sqlite",
            "N8N_PORT": str(self.port), "N8N_LISTEN_ADDRESS": "127.0.0.1",
            "N8N_RUNNERS_BROKER_PORT": str(free_port()), "N8N_DIAGNOSTICS_ENABLED": "false",
            "N8N_VERSION_NOTIFICATIONS_ENABLED": "false", "N8N_TEMPLATES_ENABLED": "false",
            "N8N_PERSONALIZATION_ENABLED": "false", "N8N_COMMUNITY_PACKAGES_ENABLED": "false",
            "N8N_HIRING_BANNER_ENABLED": "false",
        }
        made = [
            workflows.workflow("flat"),
            workflows.workflow("nested", nested=True),
            workflows.workflow("streamed", stream=True),
            workflows.workflow("mixed", orchestrator="openai"),
            workflows.workflow("naive", account="naive"),
            workflows.workflow("naive-streamed", account="naive", stream=True),
        ]
        files = {"credentials": workflows.credentials(BASE, self.naive), "workflow": made}
        for name, content in files.items():
            path = os.path.join(self.home, name + ".json")
            with open(path, "w") as file:
                json.dump(content, file)
            self.command(f"import:{name}", f"--input={path}")
        for workflow in made:
            self.command("publish:workflow", f"--id={workflow['id']}")
        self.log = open(os.path.join(self.home, "n8n.log"), "w")
        self.process = subprocess.Popen(
            self.program("start"), env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, start_new_session=True,
        )
        until = time.monotonic() + 240
        for workflow in made:
            # Only a path that a workflow has is said to want another method.
            while "POST request?" not in self.asked(workflow["name"]):
                assert self.process.poll() is None and time.monotonic() < until, "n8n does not start"
                time.sleep(0.5)

    def asked(self, name):
        try:
            return http("GET", self.url(name))[1]
        except OSError:
            return ""

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/webhook/{name}"

    def program(self, *arguments):
        return ["node", os.path.join(FOLDER, "node_modules/n8n/bin/n8n"), *arguments]

    def command(self, *arguments):
        done = subprocess.run(self.program(*arguments), env=self.env, cwd=self.home, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def run(self, name):
        """Calls a workflow; gives its status, its answer and the requests that reached the model."""
        status, text = http("POST", self.url(name), {}, {"content-type": "application/json"}, 120)
        return status, text, sent()

    def stop(self):
        # A Node from PyPI is a program that starts Node: ending it alone would leave n8n behind.
        for how, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, how)
                self.process.wait(seconds)
                time.sleep(1)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def prompt(text):
    return {"Prompt__User_Message_": text}


def reply(when, name=None, text=None, arguments=None, more=""):
    """The model's answer to every request that has `when` in it: a call of `name`, or a text."""
    return step(say(text) if name is None else call(name, arguments), more, when=when, times=0)


def agents():
    """What the three agents answer, whatever the Orchestrator does. What only the history of one of
    them holds comes before what its system prompt holds."""
    return [
        reply("FACT about", text="RESEARCH RESULT: latency is 5ms"),
        reply("You are the RESEARCHER", "lookup", arguments={"input": "edge computing"}),
        reply("You are the STRATEGIST", text="STRATEGY RESULT: focus on latency"),
        reply("You are the WRITER", text="WRITTEN POST: edge computing is fast."),
    ]


def chain(more="", calls=call, final=None):
    """A model that looks at the history and takes the next step of the chain."""
    def turn(when, name, text):
        made = calls(name, prompt(text))
        made = made if isinstance(made, list) else [step(made, more)]
        return [{**one, "when": when, "times": 0} for one in made]

    return agents() + [
        {**(final or step(say(FINAL))), "when": "WRITTEN POST", "times": 0},
        *turn("STRATEGY RESULT", "Writing_Agent", "Write the post"),
        *turn("RESEARCH RESULT", "Strategy_Agent", "Make a strategy: latency is 5ms"),
        *turn("", "Research_Agent", "Find facts about edge computing"),
    ]


def whole(name, arguments):
    """A call as one JSON answer, whatever its name, in each protocol that hosts speak with the demo model."""
    said = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": f"call_{name}", "type": "function", "function": said}]
    item = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "status": "completed", **said}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "demo",
                "output": [item], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
    return [
        completion({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"),
        unchecked("/v1/responses", response),
    ]


def completion(message, finish):
    return unchecked("/v1/chat/completions", {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "demo",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })


def unchecked(path, body):
    """An answer as it is, to a request that the demo model does not check."""
    return {"path": path, "headers": [["content-type", "application/json"]], "pieces": [{"data": json.dumps(body)}]}


def ends(name, *steps, unique=True):
    script(*steps)
    status, text, bodies = SERVER.run(name)
    assert status == 200 and FINAL in text, (status, text[:500], len(bodies))
    assert len(bodies) == IDEAL, f"{len(bodies)} requests instead of {IDEAL}"
    assert not refused()
    for body in bodies:
        paired(body, unique)
    return bodies


def loops(name, *steps, requests):
    script(*steps)
    status, text, bodies = SERVER.run(name)
    assert FINAL not in text and len(bodies) == requests, (status, text[:500], len(bodies))


@check
def the_flat_chain_ends_in_eight_requests():
    ends("flat", *chain())


@check
def the_nested_chain_ends_in_eight_requests():
    ends(
        "nested",
        # Inside out: who already has an answer from below says its own.
        reply("RESEARCH RESULT", text=FINAL),
        reply("STRATEGY RESULT", text="RESEARCH RESULT: latency is 5ms"),
        reply("WRITTEN POST", text="STRATEGY RESULT: focus on latency"),
        reply("You are the WRITER", text="WRITTEN POST: edge computing is fast."),
        reply("You are the STRATEGIST", "Writing_Agent", arguments=prompt("Write the post")),
        reply("FACT about", "Strategy_Agent", arguments=prompt("Make a strategy")),
        reply("You are the RESEARCHER", "lookup", arguments={"input": "edge computing"}),
        reply("", "Research_Agent", arguments=prompt("Find facts")),
    )


@check
def the_streamed_chain_ends_in_eight_requests():
    bodies = ends("streamed", *chain())
    assert all(body["stream"] for body in bodies)


@check
def the_calls_of_a_model_that_thinks_keep_their_inputs():
    # n8n writes a turn with a thinking block anew, each call with `{}`.
    for name in ("flat", "streamed"):
        messages = [it for body in ends(name, *chain("demo:reason")) for it in body["messages"]]
        made = [call for message in messages for call in message.get("tool_calls", [])]
        assert made and all(json.loads(it["function"]["arguments"]) for it in made), made
        assert any(message.get("reasoning_content") for message in messages)


@check
def an_openai_node_orchestrates_anthropic_nodes_through_the_same_listener():
    # Unchecked, since n8n's own OpenAI node sends `"content": []` along with tool calls.
    final = completion({"role": "assistant", "content": FINAL}, "stop")
    bodies = ends("mixed", *chain(calls=whole, final=final))
    empty = [message for body in bodies for message in body["messages"] if message["content"] == []]
    assert empty, "the OpenAI node's requests pass as they are"


@check
def one_id_for_every_call_loops_without_creole():
    loops("naive", *chain("demo:id call_same"), requests=21)


@check
def one_id_for_every_call_ends_with_creole():
    ends("flat", *chain("demo:id call_same"), unique=False)


@check
def empty_ids_loop_without_creole():
    loops("naive", *chain("demo:id"), requests=21)


@check
def empty_ids_end_with_creole():
    ends("flat", *chain("demo:id"))


@check
def an_unknown_name_loops_without_creole():
    loops("naive", *chain(calls=unknown), requests=10)


def unknown(_, arguments):
    return whole("Publishing_Agent", arguments)


@check
def an_unknown_name_ends_at_once_with_creole():
    script(*chain(calls=unknown))
    status, text, bodies = SERVER.run("flat")
    # `invalid_tool_call: hold`: an error that n8n shows, instead of the same request again and again.
    assert status == 500 and len(bodies) == 1, (status, text[:500], len(bodies))


def with_spaces(name, arguments):
    return whole(name.replace("_", " "), arguments)


@check
def a_name_with_a_space_loops_without_creole():
    loops("naive", *chain(calls=with_spaces), requests=10)


@check
def a_name_with_a_space_ends_with_creole():
    ends("flat", *chain(calls=with_spaces))


@check
def input_that_is_whole_at_the_start_is_lost_without_creole():
    loops("naive-streamed", *chain(), requests=10)
    ran = [body for body in sent() if "ORCHESTRATOR" not in json.dumps(body["messages"][0])]
    assert not ran, len(ran)


@check
def input_that_is_whole_at_the_start_arrives_with_creole():
    # `pieces` so large that all of a call comes at once.
    ends("streamed", *chain("demo:pieces 100000"))


if __name__ == "__main__":
    version("n8n", node_package("n8n"))
    SERVER = Server()
    try:
        main()
    finally:
        SERVER.stop()
