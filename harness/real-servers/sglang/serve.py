"""The tiny model in SGLang on the processor: see ../llama.cpp/serve.py for the arguments.

SGLang's engine for processors wants instructions (AMX) that most do not have. The general engine runs on any, once it
is told that these are absent, and that vLLM, which it does not come with, has no kernel for it.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from launch import free, launch  # noqa: E402

# Python runs a `sitecustomize` at its start, in each process of the server too.
AT_START = """
import sys, types
from importlib.abc import MetaPathFinder

class WithoutAmx(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "sglang.srt.utils.common":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            module.cpu_has_amx_support = lambda: False
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, WithoutAmx())
vllm, kernels = types.ModuleType("vllm"), types.ModuleType("vllm._custom_ops")
kernels.rotary_embedding = None
vllm._custom_ops = kernels
sys.modules["vllm._custom_ops"] = kernels
"""


def main(model, folder):
    port = free()
    with open(f"{folder}/sitecustomize.py", "w", encoding="utf-8") as file:
        file.write(AT_START)
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", model, "--served-model-name", "tiny"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    command += ["--attention-backend", "torch_native", "--sampling-backend", "pytorch", "--disable-overlap-schedule"]
    command += ["--context-length", "4096", "--max-total-tokens", "16384", "--max-running-requests", "4"]
    command += ["--tool-call-parser", "qwen25", "--reasoning-parser", "qwen3", "--skip-server-warmup"]
    command += ["--mem-fraction-static", "0.2", "--enable-cache-report", "--sleep-on-idle"]
    launch(port, command, "/health", folder, PYTHONPATH=folder, SGLANG_USE_CPU_ENGINE="0")


main(*sys.argv[1:])
