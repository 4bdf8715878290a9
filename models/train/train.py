"""Trains a model.

    train.py FACTBOOK VOCABULARY OUT.pt --minutes 90 [--resume] [--start MODEL.gguf] [--threads 2] ...

The length of the run is given in minutes: the learning rate warms up, stays, and falls to nothing at the end, so that
the run ends when it should on any machine. Short rows come first, rows of the full context last. A checkpoint is written
every few minutes, and with it the share of held-out questions whose whole answer has the highest score token by token.
"""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F

import data
import export
import gguf
import model
import muon
import questions
import tokenizer

# Of a run that starts with a trained model: past short rows and easy texts, before the learning rate falls.
START_FRACTION = 0.38


def Schedule(fraction, step, decay_from, warmup=60):
    return min(1.0, step / warmup) * (1.0 if fraction < decay_from else max(0.0, (1 - fraction) / (1 - decay_from)))


def Batches(tok, rows, size=64):
    coded = []
    for row in rows:
        prompt = tok.Prompt([("user", row["prompt"])])
        coded.append((row["kind"], prompt, tok.Encode(row["answer"]) + [tokenizer.END]))
    coded.sort(key=lambda r: len(r[1]))
    return [coded[i:i + size] for i in range(0, len(coded), size)]


@torch.no_grad()
def Accuracy(net, batches):
    """{kind: (right, asked)}: right when every token of the answer is the most likely one."""
    score = {}
    for batch in batches:
        width = max(len(p) + len(a) for _, p, a in batch)
        ids = torch.tensor([p + a + [tokenizer.PAD] * (width - len(p) - len(a)) for _, p, a in batch])
        hidden = net.Hidden(ids)
        for i, (kind, p, a) in enumerate(batch):
            best = net.Logits(hidden[i, len(p) - 1:len(p) - 1 + len(a)]).argmax(-1)
            right, asked = score.get(kind, (0, 0))
            score[kind] = (right + int(best.tolist() == a), asked + 1)
    return score


def Save(path, config, optimizer, spent, tokens):
    torch.save({"config": config.AsDict(), "optimizer": optimizer.State(), "seconds": spent, "tokens": tokens}, path + ".tmp")
    os.replace(path + ".tmp", path)


def ExportedWeights(path):
    """{name: tensor} as the optimizer has them, of a GGUF that export.py wrote."""
    _, tensors = gguf.Read(path)
    theirs = {v: k for k, v in export.NAMES.items()}
    weights = {"embed": tensors.pop("token_embd.weight"), "norm": tensors.pop("output_norm.weight")}
    for name, w in tensors.items():
        _, layer, kind, _ = name.split(".")
        weights[f"layers.{layer}.{theirs[kind]}"] = w
    return {n: torch.from_numpy(w.astype("float32")) for n, w in weights.items()}


def Main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("factbook")
    parser.add_argument("vocabulary")
    parser.add_argument("out")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--d-ff", type=int, default=768)
    parser.add_argument("--batch-tokens", type=int, default=6144)
    parser.add_argument("--short", type=int, default=128, help="row length at first")
    parser.add_argument("--middle", type=int, default=160, help="and from --middle-from on")
    parser.add_argument("--middle-from", type=float, default=0.3)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--long-from", type=float, default=0.97, help="and full length from here on, before that now and then")
    parser.add_argument("--matrix-lr", type=float, default=0.008)
    parser.add_argument("--vector-lr", type=float, default=1.5e-3)
    parser.add_argument("--decay-from", type=float, default=0.45, help="share of the run after which the learning rates fall")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-minutes", type=float, default=5)
    parser.add_argument("--blend", type=json.loads, help='shares of the tasks other than in tasks.py, as {"reading": 0.6, ...}')
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--start", help="begin with the weights of this exported model")
    parser.add_argument("--plain", action="store_true", help="torch operations only")
    args = parser.parse_args()

    if not args.plain:
        import fused  # compiles its kernels
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    tok = tokenizer.Tokenizer(args.vocabulary)
    config = model.Config(n_layers=args.layers, d_model=args.d_model, d_ff=args.d_ff, context_length=args.context)
    net = model.Llama(config)
    optimizer = muon.Optimizer(net, args.matrix_lr, args.vector_lr)
    net.bfloat16()
    net.rope = model.RopeTable(config, config.context_length)
    spent, tokens, seed = 0.0, 0, args.seed
    if args.resume:
        state = torch.load(args.out)
        optimizer.Load(state["optimizer"])
        spent, tokens, seed = state["seconds"], state["tokens"], args.seed + 1000 + optimizer.steps
    elif args.start:
        optimizer.Load({**optimizer.State(), "master": ExportedWeights(args.start)})
        spent = START_FRACTION * args.minutes * 60
    test = Batches(tok, questions.Make(args.factbook))
    loader = data.Loader(args.factbook, args.vocabulary, seed, args.batch_tokens, args.short, args.blend)

    total = args.minutes * 60
    begun = last_save = last_print = time.time()
    offset, printed_tokens, losses = spent, tokens, []
    while spent < total:
        fraction = spent / total
        loader.level.value = min(1.0, max(0.0, 4 * (fraction - 0.12)))
        long = fraction >= args.long_from or (fraction >= args.middle_from and optimizer.steps % 16 == 0)
        loader.length.value = args.context if long else args.middle if fraction >= args.middle_from else args.short
        ids, weights = loader.Next()
        ids, weights = torch.from_numpy(ids), torch.from_numpy(weights)
        wanted = weights[:, 1:].reshape(-1).nonzero().squeeze(1)
        target, w = ids[:, 1:].reshape(-1)[wanted], weights[:, 1:].reshape(-1)[wanted]
        hidden = (net.Hidden(ids) if args.plain else fused.Hidden(net, ids))[:, :-1].reshape(-1, config.d_model)[wanted]
        if args.plain:
            loss = (F.cross_entropy(net.Logits(hidden).float(), target, reduction="none") * w).sum() / w.sum()
        else:
            loss = fused.Loss.apply(hidden, net.embed, target, w)
        loss.backward()
        optimizer.Step(Schedule(fraction, optimizer.steps + 1, args.decay_from))
        losses.append(loss.item())
        tokens += ids.numel()
        now = time.time()
        spent = offset + now - begun
        if now - last_print > 30:
            rate = (tokens - printed_tokens) / (now - last_print)
            print(f"{spent / 60:6.1f} min  step {optimizer.steps}  {tokens / 1e6:.2f}M tokens  {rate:.0f}/s  loss {sum(losses) / len(losses):.4f}", flush=True)
            last_print, printed_tokens, losses = now, tokens, []
        if now - last_save > args.save_minutes * 60 or spent >= total:
            Save(args.out, config, optimizer, spent, tokens)
            score = Accuracy(net, test)
            print("   ", json.dumps({k: round(r / n, 2) for k, (r, n) in sorted(score.items())}), flush=True)
            last_save = time.time()


if __name__ == "__main__":
    Main()
