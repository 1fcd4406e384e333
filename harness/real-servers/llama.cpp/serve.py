"""The tiny model in llama.cpp's server.

    python serve.py MODEL FOLDER

MODEL is the model's folder; FOLDER keeps the GGUF that is made of it. Prints the server's address when it
answers, and serves until it is ended.
"""
import sys
import time

import xllamacpp

import gguf


def main(model, folder):
    path = f"{folder}/tiny.gguf"
    gguf.write(model, path)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {"tiny"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 2
    # For all slots.
    params.n_ctx = 2 * 8192
    # With more threads one prompt does not always give one answer.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.endpoint_slots = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


main(*sys.argv[1:])
