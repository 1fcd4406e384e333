"""The tiny model in mlx-lm's server: see ../llama.cpp/serve.py for the arguments."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from launch import free, launch  # noqa: E402


def main(model, folder):
    port = free()
    # Kernels for the processor are compiled at the first start, and kept.
    command = [sys.executable, "-m", "mlx_lm.server", "--model", model, "--port", str(port)]
    launch(port, command, "/health", folder)


main(*sys.argv[1:])
