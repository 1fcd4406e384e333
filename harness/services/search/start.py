"""Starts a SearXNG that searches the Markdown files of a folder, and asks nothing of the internet.

    start.py FOLDER DOCUMENTS HOST:PORT

FOLDER gets the settings of SearXNG. Its only engine asks a small server in this process, which ranks
the sections of DOCUMENTS by the words of the query.
"""

import json
import os
import re
import runpy
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

# A reserved name, so that no result leads to a real site.
SITE = "https://docs.creole.invalid"
RESULTS_MAX = 8
CONTENT_MAX = 600


def sections(folder):
    """Yields each section of the documents: its address, its title and its text."""
    for file in sorted(Path(folder).glob("*.md")):
        page, title, lines = file.stem, file.stem, []
        in_code = False
        for line in [*file.read_text(encoding="utf-8").splitlines(), "# "]:
            in_code ^= line.startswith("```")
            heading = None if in_code else re.match(r"#+ (.*)", line)
            if not heading:
                lines.append(line)
                continue
            text = " ".join(" ".join(lines).split())
            if text:
                anchor = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
                yield {"url": f"{SITE}/{page}#{anchor}", "title": f"{page}: {title}", "content": text}
            title, lines = heading[1], []


def ranked(query, known):
    """Returns the sections that have most of the query's words, the best first."""
    words = set(re.findall(r"\w+", query.lower()))
    scored = []
    for section in known:
        title, text = section["title"].lower(), section["content"].lower()
        score = sum((word in text) + 3 * (word in title) for word in words)
        if score:
            scored.append((-score, len(text), section))
    scored.sort(key=lambda found: found[:2])
    return [{**found[2], "content": found[2]["content"][:CONTENT_MAX]} for found in scored[:RESULTS_MAX]]


def serve(documents):
    """Serves `/?q=WORDS` on a free port of this machine, and returns the port."""
    known = list(sections(documents))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            query = parse_qs(urlsplit(self.path).query).get("q", [""])[0]
            # A test reads the queries in the log. One write keeps the lines of two threads apart.
            os.write(1, f"searched for: {query}\n".encode())
            body = json.dumps({"results": ranked(query, known)}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def settings(engine_port, address):
    """Returns the settings of SearXNG. JSON is also YAML."""
    host, port = address.rsplit(":", 1)
    engine = {
        "name": "documents", "engine": "json_engine", "shortcut": "docs", "categories": ["general"],
        "search_url": f"http://127.0.0.1:{engine_port}/?q={{query}}", "enable_http": True,
        "results_query": "results", "url_query": "url", "title_query": "title",
        "content_query": "content", "disabled": False,
    }
    return {
        "use_default_settings": {"engines": {"keep_only": []}},
        "search": {"formats": ["html", "json"]},
        "server": {
            "port": int(port), "bind_address": host, "secret_key": secrets.token_hex(16), "limiter": False,
        },
        "engines": [engine],
        # The usual plugins would load lists from the internet.
        "plugins": {},
    }


def main():
    folder, documents, address = sys.argv[1:]
    file = Path(folder) / "settings.yml"
    file.write_text(json.dumps(settings(serve(documents), address)), encoding="utf-8")
    os.environ["SEARXNG_SETTINGS_PATH"] = str(file)
    sys.argv = sys.argv[:1]
    runpy.run_module("searx.webapp", run_name="__main__")


if __name__ == "__main__":
    main()
