"""Starts a model server as a process of its own: what most `serve.py` here do."""
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

# The slowest server loads PyTorch and compiles for minutes on a busy machine.
PATIENCE_S = 600


def free():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def launch(port, command, ready, folder, **environment):
    """Prints the server's address once `ready`, a path, answers; serves until SIGTERM, and ends all it started."""
    own = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **environment}
    # In a folder of its own: a server takes a folder below it that has the model's name for the model.
    server = subprocess.Popen(
        command, stdout=sys.stderr, cwd=folder, env={**os.environ, **own}, start_new_session=True
    )

    def end(*_):
        try:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(4)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(server.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    address, start = f"http://127.0.0.1:{port}", time.monotonic()
    while not answers(address + ready):
        if server.poll() is not None or time.monotonic() - start > PATIENCE_S:
            print(f"the server did not start ({server.poll()})", file=sys.stderr)
            end()
        time.sleep(0.1)
    print(address, flush=True)
    server.wait()
