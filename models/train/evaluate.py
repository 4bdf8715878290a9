"""Runs a GGUF file in torch (float32): accuracy by kind, or golden values for another engine.

    evaluate.py MODEL.gguf VOCABULARY.model --questions F.jsonl [--show]
    evaluate.py MODEL.gguf VOCABULARY.model --golden OUT.json
    evaluate.py MODEL.gguf VOCABULARY.model --ppl F.txt
    evaluate.py MODEL.gguf VOCABULARY.model --ask "What is the capital of Chile?"
"""
import argparse
import json
import time

import torch

import countries
import export
import gguf
import model
import tokenizer

GOLDEN = ["What is the capital of France?", "Which countries border Poland?", "What is 47 + 38?",
          "Ana has the red key. Tom has the blue key. The red key opens the cellar. The blue key opens the tower. What does Ana open?",
          "Tell me about Kenya."]


def Load(path):
    meta, tensors = gguf.Read(path)
    config = model.Config(
        vocab_size=meta["llama.vocab_size"], d_model=meta["llama.embedding_length"], n_layers=meta["llama.block_count"],
        n_heads=meta["llama.attention.head_count"], n_kv_heads=meta["llama.attention.head_count_kv"],
        head_dim=meta["llama.rope.dimension_count"], d_ff=meta["llama.feed_forward_length"],
        context_length=meta["llama.context_length"], rope_base=meta["llama.rope.freq_base"],
        norm_eps=meta["llama.attention.layer_norm_rms_epsilon"])
    net = model.Llama(config)
    names = {"embed": "token_embd.weight", "norm": "output_norm.weight"}
    for i in range(config.n_layers):
        for ours, theirs in export.NAMES.items():
            names[f"layers.{i}.{ours}"] = f"blk.{i}.{theirs}.weight"
    net.load_state_dict({ours: torch.tensor(tensors[theirs]).float() for ours, theirs in names.items()})
    return net.eval()


@torch.no_grad()
def Generate(net, ids, limit=80, stop=(tokenizer.END, tokenizer.EOS)):
    """The greedy ids after `ids`, and the logits at its last position."""
    caches = [{} for _ in net.layers]
    logits = net.Logits(net.Hidden(torch.tensor([ids]), caches)[0, -1])
    first, out, at = logits, [], len(ids)
    while True:
        best = int(logits.argmax())
        if best in stop:
            return out, first
        out.append(best)
        if len(out) == limit or at + 1 >= net.config.context_length:
            return out, first
        logits = net.Logits(net.Hidden(torch.tensor([[best]]), caches, at)[0, -1])
        at += 1


def Normal(text):
    """As README.md says: trimmed, case-folded, without a final full stop."""
    return text.strip().casefold().removesuffix(".")


def Questions(net, tok, path, show):
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    score = {}
    for row in rows:
        out, _ = Generate(net, tok.Prompt([("user", row["prompt"])]))
        text = tok.Decode(out)
        right = Normal(text) in {Normal(a) for a in [row["answer"], *row["accept"]]}
        r, n = score.get(row["kind"], (0, 0))
        score[row["kind"]] = (r + right, n + 1)
        if show and not right:
            print(f"{row['kind']:14s} {row['prompt']!r} -> {text!r}, not {row['answer']!r}")
    for kind, (r, n) in score.items():
        print(f"{kind:14s} {r:4d} / {n:4d}  {100 * r / n:5.1f} %")
    fact = [v for k, v in score.items() if k in countries.FACTS]
    for name, group in (("facts", fact), ("all", list(score.values()))):
        r, n = sum(g[0] for g in group), sum(g[1] for g in group)
        print(f"{name:14s} {r:4d} / {n:4d}  {100 * r / n:5.1f} %")


def Golden(net, tok, path):
    cases = []
    for prompt in GOLDEN:
        ids = tok.Prompt([("user", prompt)])
        out, logits = Generate(net, ids, limit=32, stop=())
        top = logits.topk(5)
        cases.append({"prompt": prompt, "ids": ids, "top_ids": top.indices.tolist(), "top_logits": [round(v, 5) for v in top.values.tolist()],
                      "greedy_ids": out, "greedy_text": tok.Decode(out)})
    text = ["{"]
    text.append(' "about": "float32 in torch from the float16 weights of the GGUF file; greedy ids run on past the end of the answer",')
    text.append(' "cases": [')
    text.append(",\n".join("  " + json.dumps(c, ensure_ascii=False) for c in cases))
    text.append(" ]\n}\n")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(text))


@torch.no_grad()
def Perplexity(net, tok, path, length=1024):
    with open(path, encoding="utf-8") as f:
        ids = tok.Encode(f.read())
    total = count = 0
    for i in range(0, len(ids), length - 1):
        part = torch.tensor([[tokenizer.BOS] + ids[i:i + length - 1]])
        logits = net(part)[0, :-1]
        total += torch.nn.functional.cross_entropy(logits, part[0, 1:], reduction="sum").item()
        count += part.shape[1] - 1
    print(f"perplexity {torch.tensor(total / count).exp().item():.4f} over {count} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("vocabulary")
    parser.add_argument("--questions")
    parser.add_argument("--show", action="store_true", help="print what was wrong")
    parser.add_argument("--golden")
    parser.add_argument("--ppl")
    parser.add_argument("--ask", action="append", default=[])
    args = parser.parse_args()
    net, tok = Load(args.model), tokenizer.Tokenizer(args.vocabulary)
    if args.questions:
        Questions(net, tok, args.questions, args.show)
    if args.golden:
        Golden(net, tok, args.golden)
    if args.ppl:
        Perplexity(net, tok, args.ppl)
    for question in args.ask:
        begun = time.time()
        print(tok.Decode(Generate(net, tok.Prompt([("user", question)]))[0]), f"({time.time() - begun:.2f} s)")
