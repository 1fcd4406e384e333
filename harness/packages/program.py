"""The program that a package starts, asked as a client would, and checks that are counted."""
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import traceback
import urllib.request

checks = []


def check(function):
    """Registers a check; its name is a claim."""
    checks.append(function)
    return function


def main():
    failed = 0
    for run in checks:
        start = time.monotonic()
        try:
            run()
            print(f"ok {run.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {run.__name__}", flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


class Demo:
    """`creole demo`, by whatever command starts it; with a terminal whose keys reach it, if asked."""

    def __init__(self, command, environment, folder, terminal=False):
        self.keys, stdin = pty.openpty() if terminal else (None, subprocess.DEVNULL)
        self.log = os.path.join(folder, "log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*command, "demo", "--listen", "127.0.0.1:0"], env=environment, cwd=folder,
                stdin=stdin, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None,
            )
        if terminal:
            os.close(stdin)
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.url = line.split()[2]
                return
        with open(self.log) as log:
            raise AssertionError(f"{command} ended with {self.process.wait()}: {log.read()}")

    def stream(self, words):
        """A stream that goes from the demo model through Creole."""
        body = {
            "model": "demo", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": words}],
        }
        headers = {"content-type": "application/json", "x-api-key": "any", "anthropic-version": "2023-06-01"}
        request = urllib.request.Request(self.url + "/v1/messages", json.dumps(body).encode(), headers)
        return urllib.request.urlopen(request, timeout=20)

    def answers(self, words="demo:say It works.", meanwhile=None):
        """The stream is whole, whatever is done after its first line."""
        with self.stream(words) as answer:
            answer.readline()
            if meanwhile is not None:
                meanwhile()
            events = [json.loads(line[6:]) for line in answer.read().decode().split("\n") if line.startswith("data: ")]
        text = "".join(it["delta"].get("text", "") for it in events if it["type"] == "content_block_delta")
        assert text == words.split("demo:say ")[1] and events[-1]["type"] == "message_stop", events

    def ends(self, number=signal.SIGTERM):
        """The exit code after a signal to the process that was started, and to no other."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.keys is not None:
            os.close(self.keys)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
