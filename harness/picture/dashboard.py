"""Draws `docs/page/dashboard.svg`: the queries of `envoy/deploy/grafana.json`, answered by a real Prometheus that watched a
real gateway under load. It is not a picture of Grafana itself.

    dashboard.py CREOLE PROMETHEUS [SECONDS]

CREOLE is the gateway's program, with its demo model; PROMETHEUS is `prometheus` of Debian. SECONDS (40) is how long it
watches.
"""

import html
import json
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]
INTERVAL = "10s"
COLOURS = ["#5eead4", "#fbbf24", "#f87171", "#818cf8", "#a3e635", "#f472b6", "#38bdf8", "#c4b5fd"]
WIDTH, HEIGHT, GAP = 470, 176, 14

PROMPTS = [
    ("Hello, how are you?", 10),
    ("demo:slow 20 demo:say one two three four five six seven eight nine ten", 8),
    ("demo:late 120 demo:big 900", 5),
    ('demo:tool look demo:input {"x": "y"}', 6),
    ("demo:no-usage demo:say hello", 2),
    ("demo:error 503", 1),
    ("demo:unfinished", 1),
]


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(url):
    return urllib.request.urlopen(url, timeout=10).read()


def wait_for(url):
    for _ in range(200):
        try:
            return get(url)
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def ask(url, chance, number):
    prompt = chance.choices([words for words, _ in PROMPTS], [weight for _, weight in PROMPTS])[0]
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "a.txt"}
    messages = [{"role": "user", "content": prompt}]
    if number % 3 == 0:
        results = [result] if number % 4 else []
        later = {"role": "user", "content": [*results, {"type": "text", "text": prompt}]}
        messages = [{"role": "user", "content": "look"}, {"role": "assistant", "content": [call]}, later]
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}}
    body = {"model": "demo", "max_tokens": 400, "stream": True, "messages": messages, "tools": [tool]}
    if number % 11 == 0:
        body["top_k"] = 4
    headers = {"content-type": "application/json", "x-api-key": "demo", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError:
        pass  # as asked for


def load(url, until, seed):
    chance, number = random.Random(seed), 0
    while time.time() < until:
        number += 1
        ask(url, chance, number)
        time.sleep(chance.uniform(0.02, 0.2))


def series(prometheus, expression, begin, end):
    expression = expression.replace("$__rate_interval", INTERVAL).replace("$upstream", ".*")
    query = urllib.parse.urlencode({"query": expression, "start": begin, "end": end, "step": 1})
    for found in json.loads(get(f"{prometheus}/api/v1/query_range?{query}"))["data"]["result"]:
        points = [(float(at), float(value)) for at, value in found["values"] if value not in ("NaN", "+Inf")]
        if points:
            yield found["metric"], points


def legend(form, labels):
    for name, value in labels.items():
        form = form.replace("{{" + name + "}}", value)
    return form


def number(value, unit):
    if unit == "percentunit":
        return f"{value * 100:.0f} %"
    for limit, sign in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}{sign}"
    tail = {"ms": " ms", "µs": " µs", "reqps": "/s", "Bps": " B/s"}.get(unit, "")
    return f"{value:.3g}{tail}"


def panel(given, prometheus, begin, end, x, y):
    lines = []
    for target in given["targets"]:
        for labels, points in series(prometheus, target["expr"], begin, end):
            lines.append((legend(target.get("legendFormat", ""), labels), points))
    lines.sort(key=lambda line: -max(value for _, value in line[1]))
    lines = lines[: len(COLOURS)]
    unit = given["fieldConfig"]["defaults"].get("unit", "")
    most = max((value for _, points in lines for _, value in points), default=0) or 1
    yield f'<g transform="translate({x} {y})"><rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#171d24" stroke="#28313b"/>'
    yield f'<text x="12" y="20" fill="#e4e9ef" font-weight="600">{html.escape(given["title"])}</text>'
    most_shown = f"up to {number(most, unit)}" if lines else "nothing in this load"
    yield f'<text x="{WIDTH - 12}" y="20" text-anchor="end">{most_shown}</text>'
    top, low = 32, HEIGHT - 32
    for share in (0, 0.5, 1):
        at = top + (low - top) * share
        yield f'<path d="M12 {at:.0f}H{WIDTH - 12}" stroke="#28313b"/>'
    place = 12
    for (name, points), colour in zip(lines, COLOURS):
        line = " ".join(
            f"{12 + (at - begin) / (end - begin) * (WIDTH - 24):.0f},{low - value / most * (low - top):.0f}" for at, value in points
        )
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        if place + 12 + 6.2 * len(name) < WIDTH:
            yield f'<rect x="{place}" y="{HEIGHT - 19}" width="8" height="3" fill="{colour}"/>'
            yield f'<text x="{place + 12}" y="{HEIGHT - 13}">{html.escape(name)}</text>'
            place += 24 + 6.2 * len(name)
    yield "</g>"


def drawn(prometheus, begin, end):
    panels = json.loads((ROOT / "envoy/deploy/grafana.json").read_text())["panels"]
    width, height = 2 * WIDTH + 3 * GAP, GAP + -(-len(panels) // 2) * (HEIGHT + GAP)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    yield "<title>The panels of the dashboard, drawn from its own queries</title>"
    yield "<!-- Made by harness/picture/dashboard.py; do not edit. -->"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#0f1419"/>'
    yield '<g font-family="system-ui, Segoe UI, Roboto, sans-serif" font-size="11.5" fill="#8d99a8">'
    for at, given in enumerate(panels):
        yield from panel(given, prometheus, begin, end, GAP + at % 2 * (WIDTH + GAP), GAP + at // 2 * (HEIGHT + GAP))
    yield "</g>\n</svg>\n"


def main(creole, prometheus, seconds="40"):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="creole-dashboard-"))
    listen, watched = f"127.0.0.1:{port()}", f"127.0.0.1:{port()}"
    scrape = {"job_name": "creole", "static_configs": [{"targets": [listen]}]}
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    own = [prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={watched}"]
    children = [subprocess.Popen([creole, "demo", "--listen", listen], **quiet), subprocess.Popen(own, **quiet)]
    try:
        wait_for(f"http://{listen}/metrics")
        wait_for(f"http://{watched}/-/ready")
        begin = time.time()
        until = begin + float(seconds)
        clients = [threading.Thread(target=load, args=(f"http://{listen}", until, seed)) for seed in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        page = ROOT / "docs/page/dashboard.svg"
        page.write_text("\n".join(drawn(f"http://{watched}", begin + 8, until)))
        print(page)
    finally:
        for child in children:
            child.terminate()
            child.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
