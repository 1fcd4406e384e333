"""Records a session in a terminal as `docs/session.svg`: the gateway, a real Claude Code and the log, in front of the
demo model.

    session.py BINARIES CLAUDE

BINARIES is the folder of `creole` and `creole-demo` (`target/debug`), CLAUDE the program of Claude Code. The commands run
as they are shown; of Claude Code's answer, standard output is shown. Ports 8787 and 9000 have to be free.
"""

import html
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

SERVE = "creole serve --upstream http://127.0.0.1:9000"
CLAUDE = r"""ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_AUTH_TOKEN=demo ANTHROPIC_MODEL=demo \
  claude --allowedTools Bash -p 'demo:tool Bash demo:input {"command": "echo hello | tee hello.txt"}'"""
LOG = r"""jq -c 'select(.model) | {cause, input_tokens, output_tokens, tool_calls, duration_ms}' creole.log"""

COLUMNS, WIDTH, HEIGHT, EDGE = 112, 8.1, 20, 16


def answers(url):
    for _ in range(100):
        try:
            return urllib.request.urlopen(url, timeout=1).status
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{url} does not answer")


def recorded(binaries, claude):
    """The lines of the session: commands begin with `$ `."""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "bin").mkdir()
    (folder / "bin/claude").symlink_to(claude)
    paths = f"{binaries}:{folder}/bin:{os.environ['PATH']}"
    own = {"PATH": paths, "HOME": str(folder), "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"}

    def shell(command):
        done = subprocess.run(["sh", "-c", command], cwd=folder, env=own, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise SystemExit(f"{command}: {done.stderr}")
        return done.stdout

    demo = subprocess.Popen([binaries / "creole-demo", "--listen", "127.0.0.1:9000"], stdout=subprocess.DEVNULL)
    try:
        answers("http://127.0.0.1:9000/demo/health")
        with (folder / "creole.log").open("w") as log:
            gateway = subprocess.Popen(SERVE.split(), env=own, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            lines = [f"$ {SERVE} 2> creole.log &", gateway.stdout.readline().rstrip()]
            for command in (CLAUDE, LOG):
                lines += ["", *f"$ {command}".splitlines(), *shell(command).splitlines()]
            return lines
        finally:
            gateway.terminate()
            gateway.wait()
    finally:
        demo.terminate()
        demo.wait()


def drawn(lines):
    long = [line for line in lines if len(line) > COLUMNS]
    if long:
        raise SystemExit(f"wider than the picture: {long}")
    width, height = round(COLUMNS * WIDTH + 2 * EDGE), HEIGHT * len(lines) + 2 * EDGE
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    yield "<title>Claude Code calls a tool through Creole, and the log shows both requests</title>"
    yield "<!-- Made by harness/picture/session.py; do not edit. -->"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#1c2128"/>'
    yield '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13.4" fill="#adbac7">'
    is_command = False
    for number, line in enumerate(lines):
        is_command = line.startswith("$ ") or (is_command and lines[number - 1].endswith("\\"))
        if line:
            fill = ' fill="#f0f6fc"' if is_command else ""
            y = EDGE + HEIGHT * number + 14
            text = html.escape(line, quote=False)
            yield f'<text x="{EDGE}" y="{y}"{fill} xml:space="preserve">{text}</text>'
    yield "</g>\n</svg>\n"


def main(binaries, claude):
    page = pathlib.Path(__file__).parents[2] / "docs/session.svg"
    page.write_text("\n".join(drawn(recorded(pathlib.Path(binaries).resolve(), pathlib.Path(claude).resolve()))))
    print(page)


if __name__ == "__main__":
    main(*sys.argv[1:])
