"""Requests and answers of few bytes that could cost many: arrays of the smallest things."""
from rig import MIB, Watch, answers, ask, message, post
from upstream import filled

# The most memory that a body may take for each of its bytes; and what allocators and threads keep beside it.
TIMES = 8
SLACK = 12 * MIB

START = b'{"model":"do:text","max_tokens":5,"messages":[{"role":"user","content":"x"}],'
CALLED = (
    b'{"model":"do:text","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":'
    b'[{"type":"tool_use","id":"a","name":"a","input":{"a":['
)
RESULT = b']}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}'


def messages(element):
    return b'{"model":"do:text","max_tokens":5,"messages":[', element, b"]}"


def blocks(element):
    return b'{"model":"do:text","max_tokens":5,"messages":[{"role":"user","content":[', element, b"]}]}"


def member(name, element):
    return START + b'"' + name + b'":[', element, b"]}"


REQUESTS = {
    "tools": member(b"tools", b"{}"),
    "tools_with_a_name": member(b"tools", b'{"name":"a"}'),
    "tools_with_a_schema": member(b"tools", b'{"name":"a","input_schema":{}}'),
    "messages": messages(b"{}"),
    "messages_of_nothing": messages(b'{"role":"user","content":""}'),
    "blocks": blocks(b"{}"),
    "blocks_of_text": blocks(b'{"type":"text","text":""}'),
    "blocks_of_results": blocks(b'{"type":"tool_result","tool_use_id":"a"}'),
    "system": member(b"system", b'{"type":"text","text":""}'),
    "stop_sequences": member(b"stop_sequences", b'"a"'),
    "unknown_member": member(b"zzz", b"{}"),
    "input_of_a_call": (CALLED, b"{}", RESULT),
    "enumeration": (
        START + b'"tools":[{"name":"a","input_schema":{"type":"object","properties":{"a":{"enum":[', b"1", b"]}}}}]}"
    ),
}
# Answers by the behaviours of the upstream, whole and as one event of a stream.
ANSWERS = [
    (name, stream)
    for name in ("choices", "choices_of_words", "calls", "reasoning", "members") for stream in (False, True)
]


def costs(host, body, path="/v1/messages"):
    """Sends a bomb. The answer, the peak of the host's memory beyond what it had, and what is allowed."""
    host.forget_peak()
    before = host.memory()
    got = ask(host.port, post(body, path=path), timeout=60)
    return got, host.peak() - before


def request_bombs(host, size, path="/v1/messages"):
    """Every kind of request is answered or refused, within its memory."""
    wrong, worst = [], 0
    for name, parts in REQUESTS.items():
        body = filled(*parts, size)
        got, grown = costs(host, body, path)
        worst = max(worst, grown / len(body))
        if got is None or got.status >= 500 and got.status != 529:
            wrong.append(f"{name}: {got}")
        if grown > TIMES * len(body) + SLACK:
            wrong.append(f"{name}: {grown / len(body):.0f} bytes of memory for each of {len(body)}")
    assert not wrong, "; ".join(wrong)
    answers(host.port)
    return f"at most {worst:.1f} times the body"


def answer_bombs(host, size, models=None):
    """Every kind of answer is passed on or refused, within its memory."""
    wrong, worst = [], 0
    for name, stream in models or ANSWERS:
        got, grown = costs(host, message(f"do:{name}:{size}", stream))
        worst = max(worst, grown / size)
        if got is None:
            wrong.append(f"{name}, stream {stream}: no answer")
        elif len(got.body) > 2 * size + MIB:
            wrong.append(f"{name}, stream {stream}: {len(got.body)} bytes to the client for {size}")
        if grown > TIMES * size + SLACK:
            wrong.append(f"{name}, stream {stream}: {grown / size:.0f} bytes of memory for each of {size}")
    assert not wrong, "; ".join(wrong)
    answers(host.port)
    return f"at most {worst:.1f} times the answer"


def many(text, count):
    """A list with `text % number` for every number."""
    return b",".join([text % number for number in range(count)])


def long_requests(size):
    """Requests that take long to translate, for their bytes."""
    tools = b'{"name":"t%d","input_schema":{"type":"object"}}'
    calls = b'{"type":"tool_use","id":"t%d","name":"a","input":{}}'
    turns = (
        b'{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"a","input":{}}]},'
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","is_error":true}]}'
    )
    schema = b'"tools":[{"name":"a","input_schema":{"type":"object"}}]'
    pairs = b",".join([turns % (number, number) for number in range(min(49_990, size // 160))])
    user = b'{"role":"user","content":"x"}'
    return {
        "tools": START + b'"tools":[' + many(tools, size // 52) + b"]}",
        "calls": (
            b'{"model":"do:text","max_tokens":5,"messages":[' + user + b',{"role":"assistant","content":['
            + many(calls, size // 60) + b"]}," + user + b"]," + schema + b"}"
        ),
        "turns": b'{"model":"do:text","max_tokens":5,"messages":[' + user + b"," + pairs + b"]," + schema + b"}",
        "members": START[:-1] + b"," + many(b'"k%d":1', size // 12) + b"}",
        "text": message(text="x" * size),
    }


def pauses(host, upstream, bodies, streams=3):
    """How long others' streams stand still while each of the requests is translated."""
    said = []
    for name, body in bodies.items():
        with Watch(host, upstream, streams, 2.5) as watch:
            got = ask(host.port, post(body), timeout=60)
            said.append(f"{name}: {got.status if got else None}, {watch.end()}")
    return "; ".join(said)
