"""Writes a checkpoint as a GGUF file and as a Hugging Face folder, both in float16.

    export.py CHECKPOINT.pt VOCABULARY.model OUT.gguf [--hf FOLDER] [--name NAME]
"""
import argparse
import json
import os
import shutil
import struct

import numpy as np
import torch

import gguf
import model
import tokenizer

NAMES = {"attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "ffn_norm": "ffn_norm",
         "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
HF_NAMES = {"attn_norm": "input_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
            "o": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
            "down": "mlp.down_proj"}
DESCRIPTION = "A small chat model: short facts about countries, reading, look-ups and sums. Made to demonstrate and test Sluice."


def Load(path):
    state = torch.load(path, map_location="cpu")
    return model.Config(**state["config"]), {n: w.numpy() for n, w in state["optimizer"]["master"].items()}


def Stored(w):
    """Vectors are float32 in GGUF, but hold float16 values, so that both exports are the same model."""
    return w.astype(np.float16) if w.ndim == 2 else w.astype(np.float16).astype(np.float32)


def Pieces(tok):
    """(piece, score, type) by id; types as in GGUF: 1 normal, 2 unknown, 3 control, 6 byte."""
    sp = tok.sp
    rows = []
    for i in range(sp.vocab_size()):
        kind = 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
        rows.append((sp.id_to_piece(i), sp.get_score(i), kind))
    return rows


def WriteGguf(path, config, weights, tok, name):
    w = gguf.Writer()
    parameters = sum(a.size for a in weights.values())
    w.Put("general.architecture", gguf.STRING, "llama")
    w.Put("general.type", gguf.STRING, "model")
    w.Put("general.name", gguf.STRING, name)
    w.Put("general.author", gguf.STRING, "Sluice")
    w.Put("general.description", gguf.STRING, DESCRIPTION)
    w.Put("general.license", gguf.STRING, "apache-2.0")
    w.Put("general.size_label", gguf.STRING, f"{parameters / 1e6:.1f}M")
    w.PutArray("general.languages", gguf.STRING, ["en"])
    w.Put("general.file_type", gguf.U32, 1)
    w.Put("general.sampling.temp", gguf.F32, 0.0)
    for key, value in {"block_count": config.n_layers, "context_length": config.context_length, "embedding_length": config.d_model,
                       "feed_forward_length": config.d_ff, "attention.head_count": config.n_heads,
                       "attention.head_count_kv": config.n_kv_heads, "attention.key_length": config.head_dim,
                       "attention.value_length": config.head_dim, "rope.dimension_count": config.head_dim,
                       "vocab_size": config.vocab_size}.items():
        w.Put("llama." + key, gguf.U32, value)
    w.Put("llama.attention.layer_norm_rms_epsilon", gguf.F32, config.norm_eps)
    w.Put("llama.rope.freq_base", gguf.F32, config.rope_base)
    rows = Pieces(tok)
    w.Put("tokenizer.ggml.model", gguf.STRING, "llama")
    w.Put("tokenizer.ggml.pre", gguf.STRING, "default")
    w.PutArray("tokenizer.ggml.tokens", gguf.STRING, [r[0] for r in rows])
    w.PutArray("tokenizer.ggml.scores", gguf.F32, [r[1] for r in rows])
    w.PutArray("tokenizer.ggml.token_type", gguf.I32, [r[2] for r in rows])
    for key, value in {"bos": tokenizer.BOS, "eos": tokenizer.END, "eot": tokenizer.END, "unknown": tokenizer.UNK,
                       "padding": tokenizer.PAD}.items():
        w.Put(f"tokenizer.ggml.{key}_token_id", gguf.U32, value)
    w.Put("tokenizer.ggml.add_bos_token", gguf.BOOL, True)
    w.Put("tokenizer.ggml.add_eos_token", gguf.BOOL, False)
    w.Put("tokenizer.ggml.add_space_prefix", gguf.BOOL, False)
    w.Put("tokenizer.ggml.remove_extra_whitespaces", gguf.BOOL, False)
    w.Put("tokenizer.chat_template", gguf.STRING, tokenizer.CHAT_TEMPLATE)
    w.Tensor("token_embd.weight", Stored(weights["embed"]))
    for i in range(config.n_layers):
        for ours, theirs in NAMES.items():
            w.Tensor(f"blk.{i}.{theirs}.weight", Stored(weights[f"layers.{i}.{ours}"]))
    w.Tensor("output_norm.weight", Stored(weights["norm"]))
    w.Write(path)


def HalfSplit(w, heads):
    """Rows of a rotated projection from pairs (2i, 2i+1) to pairs (i, i + head_dim / 2)."""
    return w.reshape(heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def WriteSafetensors(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": "F16", "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for a in tensors.values():
            f.write(np.ascontiguousarray(a).tobytes())


def TokenizerJson(rows):
    vocab = {piece: i for i, (piece, _, _) in enumerate(rows)}
    merges = []
    for piece, score, kind in rows:
        if kind != 1:
            continue
        pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += [(-score, vocab[a], vocab[b], f"{a} {b}") for a, b in pairs]
    merges.sort()
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True} for i, (piece, _, kind) in enumerate(rows) if kind in (2, 3)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [tokenizer.BOS], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": [m[3] for m in merges]},
    }


def WriteFolder(folder, config, weights, tok, vocabulary):
    os.makedirs(folder, exist_ok=True)

    def Json(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(value, f, indent=2, ensure_ascii=False)
            f.write("\n")

    Json("config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": config.vocab_size, "hidden_size": config.d_model,
        "intermediate_size": config.d_ff, "num_hidden_layers": config.n_layers, "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads, "head_dim": config.head_dim, "hidden_act": "silu",
        "max_position_embeddings": config.context_length, "rms_norm_eps": config.norm_eps, "rope_theta": config.rope_base,
        "rope_scaling": None, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True, "torch_dtype": "float16",
        "bos_token_id": tokenizer.BOS, "eos_token_id": tokenizer.END, "pad_token_id": tokenizer.PAD, "use_cache": True})
    Json("generation_config.json", {"bos_token_id": tokenizer.BOS, "eos_token_id": [tokenizer.END, tokenizer.EOS],
                                    "pad_token_id": tokenizer.PAD, "do_sample": False})
    rows = Pieces(tok)
    special = {"bos_token": "<s>", "eos_token": "<|im_end|>", "unk_token": "<unk>", "pad_token": "<pad>"}
    Json("special_tokens_map.json", special)
    Json("tokenizer_config.json", {
        "tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False, "add_prefix_space": False, "legacy": False,
        "clean_up_tokenization_spaces": False, "model_max_length": config.context_length, **special,
        "added_tokens_decoder": {str(i): {"content": piece, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                                          "special": True} for i, (piece, _, kind) in enumerate(rows) if kind in (2, 3)},
        "chat_template": tokenizer.CHAT_TEMPLATE})
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(TokenizerJson(rows), f, ensure_ascii=False, separators=(",", ":"))
    shutil.copy(vocabulary, os.path.join(folder, "tokenizer.model"))
    tensors = {"model.embed_tokens.weight": weights["embed"]}
    for i in range(config.n_layers):
        for ours, theirs in HF_NAMES.items():
            w = weights[f"layers.{i}.{ours}"]
            if ours in ("q", "k"):
                w = HalfSplit(w, config.n_heads if ours == "q" else config.n_kv_heads)
            tensors[f"model.layers.{i}.{theirs}.weight"] = w
    tensors["model.norm.weight"] = weights["norm"]
    WriteSafetensors(os.path.join(folder, "model.safetensors"), {n: w.astype(np.float16) for n, w in tensors.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("vocabulary")
    parser.add_argument("gguf")
    parser.add_argument("--hf")
    parser.add_argument("--name", default="Sluice Demo")
    args = parser.parse_args()
    config, weights = Load(args.checkpoint)
    tok = tokenizer.Tokenizer(args.vocabulary)
    WriteGguf(args.gguf, config, weights, tok, args.name)
    if args.hf:
        WriteFolder(args.hf, config, weights, tok, args.vocabulary)
