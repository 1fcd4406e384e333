"""What an operator sees of a host: logs, metrics, traces.

    observe.py HOST ADDRESS UPSTREAM_PORT LOG METRICS_URL DASHBOARD

Sends one request of every kind, with a canary in every field of it and in everything that the upstream
says, and reads what came of it: one line of the log for each, nothing of the contents in any, metrics
that add up (read with the official parsers of Prometheus), and a dashboard that asks for nothing that
is not there. METRICS_URL is `-` where a host has none.
"""

import json
import pathlib
import re
import sys
import time
import urllib.request

from client import Checks, Got, send, until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
from upstream import Upstream

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {
    "authorization": "Bearer sk-canary-bearer",
    "cookie": "canary-cookie",
    "anthropic-version": "2023-06-01",
    "user-agent": "canary-agent",
    "x-other": "canary-header",
    "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
}
TOOL = {
    "name": "look",
    "description": "canary-description",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string", "description": "canary-schema"}}},
}


def messages(word, stream, **more):
    """A request with something of everything."""
    history = [
        {"role": "user", "content": [
            {"type": "text", "text": f"canary-prompt do:{word} "},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Y2FuYXJ5"}},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "canary-thinking", "signature": "canary-signature"},
            {"type": "tool_use", "id": "toolu_abc", "name": "look", "input": {"at": "canary-input"}},
            {"type": "tool_use", "id": "call_foreign", "name": "look", "input": {"at": "canary-input"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_abc", "content": "canary-result"},
            {"type": "tool_result", "tool_use_id": "call_foreign", "content": "canary-result"},
            {"type": "text", "text": f"canary-prompt do:{word} "},
        ]},
    ]
    body = {
        "model": "claude-test", "max_tokens": 64, "stream": stream, "messages": history,
        "system": [{"type": "text", "text": "canary-system", "cache_control": {"type": "ephemeral"}}],
        "tools": [TOOL], "metadata": {"user_id": "canary-user"}, "stop_sequences": ["canary-stop"],
        "top_k": 3, "unknown": "canary-unknown", **more,
    }
    return json.dumps(body)


# What is sent, and what is expected: (name, path, body, status, outcome, cause, error type).
OK = (200, "answered", "end_turn", None)
CASES = [
    ("whole", messages("text", False), OK),
    ("stream", messages("text", True), OK),
    ("tool", messages("tool", True), (200, "answered", "tool_use", None)),
    ("thinking", messages("think", True, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000), OK),
    ("not json", '{"model": canary-broken', (400, "failed_client", "request_refused", "invalid_request_error")),
    ("wrong type", messages("text", False, max_tokens="canary-type"), (400, "failed_client", "request_refused", "invalid_request_error")),
    ("wrong block", json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": {"canary": "canary-nested"}}]}]}), (400, "failed_client", "request_refused", "invalid_request_error")),
    ("upstream 400", messages("400", True), (400, "failed_client", "upstream_refused", "invalid_request_error")),
    ("upstream 401", messages("401", True), (401, "failed_client", "upstream_refused", "authentication_error")),
    ("upstream 429", messages("429", True), (429, "failed_upstream", "upstream_refused", "rate_limit_error")),
    ("upstream 503", messages("503", False), (529, "failed_upstream", "upstream_refused", "overloaded_error")),
    ("html", messages("html", False), (500, "failed_upstream", "upstream_refused", "api_error")),
    ("garbage", messages("garbage", False), (502, "failed_upstream", None, "api_error")),
    ("error in the stream", messages("mid", True), (200, "failed_upstream", None, "api_error")),
    ("invalid chunk", messages("invalid", True), (200, "failed_upstream", None, "api_error")),
    ("unfinished", messages("unfinished", True), (200, "failed_upstream", "upstream_broke_off", "api_error")),
    ("reset", messages("reset", True), (200, "failed_upstream", None, "api_error")),
    ("refused", messages("refuse", True), (502, "failed_upstream", "unreachable", "api_error")),
]


class Host:
    def __init__(self, name, address, log, metrics):
        self.name, self.address, self.log, self.metrics_url = name, address, log, metrics

    def send(self, body, path="/v1/messages?canary=canary-query", **more):
        return send(self.address, path, body, HEADERS, **more)

    def text(self):
        return self.log.read_text("utf-8", "replace")

    def lines(self):
        """The lines of the log about exchanges. Envoy writes a prefix before each."""
        found = []
        for line in self.text().splitlines():
            start = line.find('{"')
            if start >= 0 and '"request_id":' in line:
                found.append(json.loads(line[start:]))
        return found

    def line(self, request_id):
        return until(f"the line of {request_id}", lambda: [one for one in self.lines() if one["request_id"] == request_id])

    def exposition(self):
        asked = urllib.request.Request(self.metrics_url, headers={"accept": "application/openmetrics-text"})
        with urllib.request.urlopen(asked) as response:
            return response.read().decode()

    def families(self):
        parse = prometheus if self.name == "envoy" else openmetrics
        return [family for family in parse(self.exposition()) if family.name.startswith("creole")]

    def samples(self):
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families() for sample in family.samples
        }


def total(samples, name, **labels):
    """The sum of what has these labels."""
    wanted = set(labels.items())
    return sum(value for (known, given), value in samples.items() if known == name and wanted <= set(given))


def exchanges(host, upstream, check):
    """Every case: what the client gets, what the log says. Gives how many there were of each outcome."""
    outcomes = {}
    for name, body, (status, outcome, cause, kind) in CASES:
        before = len(upstream.seen)
        got: Got = host.send(body)
        check(f"{name}: status", got.status == status, f"{got.status} {got.text[:300]}")
        # Envoy tells a filter nothing of an upstream that dies between two pieces.
        breaks = name == "reset" and host.name == "envoy"
        check(f"{name}: error", got.error() == (None if breaks else kind), got.text[-300:])
        check(f"{name}: breaks", got.complete != breaks, got.text[-300:])
        check(f"{name}: whole or in error", got.ended() == (kind is None), got.text[-300:])
        request_id = got.headers.get("request-id", "")
        check(f"{name}: request-id", request_id.startswith("req_"), str(got.headers))
        lines = host.line(request_id)
        check(f"{name}: one line", len(lines) == 1, str(lines))
        line = lines[0]
        check(f"{name}: outcome", line["outcome"] == outcome, str(line))
        check(f"{name}: cause", cause is None or line["cause"] == cause, str(line))
        level = "warn" if outcome == "failed_upstream" else "info"
        check(f"{name}: level", line["level"] == level, str(line))
        check(f"{name}: trace", line.get("trace_id") == TRACE, str(line))
        for path, headers, sent in upstream.seen[before:]:
            headers = {key.lower(): value for key, value in headers.items()}
            check(f"{name}: traceparent", TRACE in headers.get("traceparent", ""), str(headers))
            # What is not for the upstream does not get there; the client's key does, once.
            check(f"{name}: headers", not any(word in str(headers) for word in ("canary-cookie", "canary-agent", "canary-header")), str(headers))
            check(f"{name}: key", headers.get("authorization") == "Bearer sk-canary-key" and "x-api-key" not in headers, str(headers))
            check(f"{name}: path", path == "/v1/chat/completions", path)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def no_canary(host, name, check):
    """Nothing of any contents is in the log."""
    # A path is a name, not contents; everything else of ours begins with the same word.
    text = host.text().replace("/v1/messages/canary-batches", "")
    found = [line for line in text.splitlines() if "canary" in line.lower() or "Y2FuYXJ5" in line]
    check(name + "no canary in the log", not found, "\n".join(found[:5]))


def contents(host, check):
    """More that must leave no trace of contents: what is refused, counted, passed on and given up."""
    host.send(messages("text", False), "/v1/messages/count_tokens?key=canary-query")
    host.send(None, "/v1/models?key=canary-query", method="GET")
    host.send('{"input": "canary-embedding do:400 "}', "/v1/embeddings?key=canary-query")
    host.send(messages("text", False), "/v1/messages/canary-batches")
    got = host.send(messages("slow", True), read_bytes=60)
    lines = host.line(got.headers["request-id"])
    check("a client that leaves is one line", len(lines) == 1, str(lines))
    check("a client that leaves", lines[0]["outcome"] == "abandoned" and lines[0]["cause"] == "client_gone", str(lines))
    time.sleep(0.5)
    no_canary(host, "", check)
    shapes = [line["shape"] for line in host.lines() if line.get("shape", {}).get("messages") == 3]
    check("debug logs shapes", bool(shapes), "no line has a shape")
    check("shapes are right", all(one["tool_results"] == 2 and one["tool_ids_decoded"] == 1 and one["tool_ids_foreign"] == 1 for one in shapes), str(shapes[:2]))


def metrics(host, outcomes, check):
    samples = host.samples()
    for outcome, count in outcomes.items():
        # Without the probes of whoever started the host.
        upstream = {"upstream": "default"} if outcome == "answered" else {}
        found = total(samples, "creole_requests_total", outcome=outcome, **upstream)
        # An unknown path is refused, too. Gateway and Envoy ask the upstream for its list of models.
        more = {"failed_client": 1, "answered": int(host.name in ("gateway", "envoy"))}.get(outcome, 0)
        check(f"metrics: {outcome}", found == count + more, f"{found}, not {count + more}")
    check("metrics: abandoned", total(samples, "creole_requests_total", outcome="abandoned") == 1, "")
    check("metrics: 529", total(samples, "creole_requests_total", status="529", upstream="default") == 1, "")
    for cause, count in (("tool_use", 1), ("upstream_broke_off", 1), ("client_gone", 1), ("unreachable", 1)):
        found = total(samples, "creole_ends_total", cause=cause)
        check(f"metrics: {cause}", found >= count, str(found))
    # Four answers were whole: 100 tokens each, 30 of them cached; 20 out, 5 of them thinking.
    for kind, tokens in (("input", 280), ("cache_read", 120), ("output", 80), ("thinking", 20)):
        found = total(samples, "creole_tokens_total", kind=kind, model="claude-test", upstream="default")
        check(f"metrics: tokens {kind}", found == tokens, f"{found}, not {tokens}")
    check("metrics: tool calls", total(samples, "creole_tool_calls_total") == 1, "")
    for name in ("creole_warnings_total", "creole_chunks_total", "creole_tool_results_total"):
        check(f"metrics: {name}", total(samples, name) > 0, "")
    for kind in ("decoded", "foreign"):
        check(f"metrics: ids {kind}", total(samples, "creole_tool_ids_total", kind=kind) > 0, "")
    for direction in ("from_client", "to_upstream", "from_upstream", "to_client"):
        check(f"metrics: bytes {direction}", total(samples, "creole_bytes_total", direction=direction) > 0, "")
    text = host.exposition()
    check("no canary in the metrics", "canary" not in text, "")


def server_tools(host, upstream, check):
    """A search for tools, which every host runs by itself: two rounds of one answer, counted and without contents."""
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    found = {**TOOL, "name": "canary-upstream-query", "defer_loading": True}
    before = len(upstream.seen)
    got = host.send(messages("search", True, tools=[TOOL, search, found]))
    check("server tools: two rounds", len(upstream.seen) == before + 2, str(len(upstream.seen) - before))
    check("server tools: whole", got.status == 200 and got.ended() and "tool_search_tool_result" in got.text, got.text[-500:])
    line = host.line(got.headers["request-id"])[0]
    check("server tools: log", line["server_tools"]["turns"] == 2, str(line))
    no_canary(host, "server tools: ", check)
    if host.metrics_url != "-":
        calls = until("the call", lambda: total(host.samples(), "creole_server_tool_calls_total", tool="tool_search", result="ok"))
        turns = total(host.samples(), "creole_server_tool_turns_total")
        check("metrics: server tools", (calls, turns) == (1, 2), f"{calls} {turns}")
        check("server tools: no canary in the metrics", "canary" not in host.exposition(), "")


def histograms(host, check):
    """Envoy shows distributions after its next flush, every five seconds."""
    for name in ("creole_request_duration_milliseconds", "creole_upstream_head_milliseconds", "creole_first_token_milliseconds", "creole_translation_microseconds"):
        count = until(name, lambda: total(host.samples(), name + "_count", upstream="default"))
        infinite = total(host.samples(), name + "_bucket", le="+Inf")
        check(f"histogram {name}", count > 0 and infinite == count, f"{count} {infinite}")


def dashboard(host, path, check):
    """Every metric and every label that the dashboard names is in the exposition."""
    board = json.loads(pathlib.Path(path).read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    expressions += [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    check("dashboard: has expressions", len(expressions) > 8, str(len(expressions)))
    labels = {}
    for (name, given), _ in host.samples().items():
        labels.setdefault(name, set()).update(key for key, _ in given)
    unseen = {"guard"}
    # Only the gateway has gauges.
    of_this_host = [one for one in expressions if host.name == "gateway" or "creole_gateway_" not in one]
    for expression in of_this_host:
        names = re.findall(r"creole_[a-z_]+", expression)
        check("dashboard: names a metric", bool(names), expression)
        for name in names:
            check(f"dashboard: {name}", name in labels or name == "creole_guards_total", f"{name} is not in the exposition")
        asked = set(re.findall(r"([a-z_]+)\s*(?:=~|!=|=)\s*\"", expression))
        asked |= {word.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for word in group.split(",")}
        for label in asked - unseen:
            check(f"dashboard: label {label}", any(label in labels.get(name, ()) for name in names), expression)


def main(host_name, address, upstream_port, log, metrics_url, board):
    check = Checks()
    upstream = Upstream(int(upstream_port))
    host = Host(host_name, address, pathlib.Path(log), metrics_url)
    outcomes = exchanges(host, upstream, check)
    contents(host, check)
    if metrics_url != "-":
        metrics(host, outcomes, check)
    server_tools(host, upstream, check)
    if metrics_url != "-":
        histograms(host, check)
        dashboard(host, board, check)
    return check.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
