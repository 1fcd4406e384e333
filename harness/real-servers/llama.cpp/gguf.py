"""Writes the model as GGUF, the format of llama.cpp. Standard library only.

The numbers of the weights stay as they are: bfloat16 is the upper half of float32.
"""
import json
import struct

ALIGNMENT = 32
FLOAT32_TENSOR = 0
# Kinds of tokens: an ordinary one, one that stands for a role, one that a template writes, one that is not used.
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
BLOCK = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(of):
    """A value with its type before it."""
    if isinstance(of, bool):
        return struct.pack("<I?", 7, of)
    if isinstance(of, int):
        return struct.pack("<II", 4, of)
    if isinstance(of, float):
        return struct.pack("<If", 6, of)
    if isinstance(of, str):
        return struct.pack("<I", 8) + text(of)
    if isinstance(of[0], int):
        return struct.pack(f"<IIQ{len(of)}i", 9, 5, len(of), *of)
    return struct.pack("<IIQ", 9, 8, len(of)) + b"".join(map(text, of))


def vocabulary(tokenizer, size):
    """The texts of all tokens, and their kinds."""
    texts, kinds = [f"[PAD{number}]" for number in range(size)], [UNUSED] * size
    for token, number in tokenizer["model"]["vocab"].items():
        texts[number], kinds[number] = token, NORMAL
    for token in tokenizer["added_tokens"]:
        texts[token["id"]] = token["content"]
        kinds[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    return texts, kinds


def settings(folder):
    def read(name):
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            return file.read()

    config, tokenizer = json.loads(read("config.json")), json.loads(read("tokenizer.json"))
    texts, kinds = vocabulary(tokenizer, config["vocab_size"])
    merges = tokenizer["model"]["merges"]
    return {
        "general.architecture": "qwen3",
        "general.name": "tiny",
        "general.file_type": 0,
        "qwen3.context_length": config["max_position_embeddings"],
        "qwen3.embedding_length": config["hidden_size"],
        "qwen3.block_count": config["num_hidden_layers"],
        "qwen3.feed_forward_length": config["intermediate_size"],
        "qwen3.attention.head_count": config["num_attention_heads"],
        "qwen3.attention.head_count_kv": config["num_key_value_heads"],
        "qwen3.attention.key_length": config["head_dim"],
        "qwen3.attention.value_length": config["head_dim"],
        "qwen3.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "qwen3.rope.freq_base": config["rope_parameters"]["rope_theta"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [one if isinstance(one, str) else " ".join(one) for one in merges],
        "tokenizer.ggml.eos_token_id": config["eos_token_id"],
        "tokenizer.ggml.padding_token_id": config["pad_token_id"],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": read("chat_template.jinja"),
    }


def name_of(weight):
    if weight == "model.embed_tokens.weight":
        return "token_embd.weight"
    if weight == "model.norm.weight":
        return "output_norm.weight"
    _, _, block, *part, _ = weight.split(".")
    return f"blk.{block}.{BLOCK['.'.join(part)]}.weight"


def tensors(folder):
    """Names, shapes and numbers, as float32."""
    with open(f"{folder}/model.safetensors", "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    head, data = json.loads(data[8:8 + length]), data[8 + length:]
    for weight, info in head.items():
        # The output has the weights of the embedding.
        if weight in ("__metadata__", "lm_head.weight"):
            continue
        assert info["dtype"] == "BF16", info
        halves = data[slice(*info["data_offsets"])]
        numbers = bytearray(2 * len(halves))
        numbers[2::4], numbers[3::4] = halves[0::2], halves[1::2]
        yield name_of(weight), info["shape"], bytes(numbers)


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def write(folder, path):
    """Makes the file at `path` of the model in `folder`."""
    told, weights = settings(folder), list(tensors(folder))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(told))
    for key, one in told.items():
        head += text(key) + value(one)
    offset = 0
    for name, shape, numbers in weights:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), FLOAT32_TENSOR, offset)
        offset += len(padded(numbers))
    with open(path, "wb") as file:
        file.write(padded(head))
        for _, _, numbers in weights:
            file.write(padded(numbers))
