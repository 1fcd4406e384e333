"""The tiny model in `transformers serve`: see ../llama.cpp/serve.py for the arguments."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from launch import free, launch  # noqa: E402


def main(model, folder):
    port = free()
    command = [os.path.join(os.path.dirname(sys.executable), "transformers"), "serve", model]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    launch(port, command, "/health", folder)


main(*sys.argv[1:])
