"""Makes the question set: held-out phrasings with short right answers.

    questions.py FACTBOOK OUT.jsonl [--text EVAL.txt] [--calibration CALIBRATION.txt]

No phrasing in it occurs in training, nor does an arithmetic pair; what is asked about a country is known from training
in other words, what is asked about a text stands in the prompt, and the text is new. --text also writes running text of
the same kinds, for perplexity; --calibration text and conversations as they were trained on, with control tokens, for the
quantiser.
"""
import argparse
import json
import random

import tasks

PER_FACT, READING, LOOKUP, SUM, DIFFERENCE, UNKNOWN, TALK = 12, 100, 60, 50, 30, 10, 20


def Make(folder, seed=20240):
    rng = random.Random(seed)
    facts = tasks.Facts(folder)
    rows, seen = [], set()

    def Add(make, kind=None):
        for _ in range(1000):
            d = make()
            t = d.turns[0]
            if t.prompt not in seen:
                seen.add(t.prompt)
                rows.append({"kind": kind or d.kind, "prompt": t.prompt, "answer": t.answer, "accept": sorted(set(t.accept) - {t.answer})})
                return
            if kind == "talk":
                return

    for kind in facts.kinds:
        for _ in range(PER_FACT):
            Add(lambda: facts.Ask(rng, held_out=True, kind=kind))
    for _ in range(READING):
        Add(lambda: tasks.Reading(rng, held_out=True))
    for _ in range(LOOKUP):
        Add(lambda: tasks.Lookup(rng, held_out=True))
    for _ in range(SUM):
        Add(lambda: tasks.Arithmetic(rng, held_out=True, minus=False))
    for _ in range(DIFFERENCE):
        Add(lambda: tasks.Arithmetic(rng, held_out=True, minus=True))
    for _ in range(UNKNOWN):
        Add(lambda: facts.Unknown(rng, held_out=True))
    for _, held, answer in tasks.TALK:
        for prompt in held:
            rows.append({"kind": "talk", "prompt": prompt, "answer": answer, "accept": []})
    return rows


def Text(folder, size_bytes=40000, seed=20241):
    rng = random.Random(seed)
    blend = tasks.Blend(folder)
    out = ""
    while len(out) < size_bytes:
        out += blend.Prose(rng, held_out=True) + "\n\n"
    return out


def Rendered(dialog):
    messages = [("system", dialog.system)] if dialog.system else []
    for turn in dialog.turns:
        messages += [("user", turn.prompt), ("assistant", turn.answer)]
    return "".join("<|im_start|>{0}\n{1}<|im_end|>\n".format(role, text) for role, text in messages)


def Calibration(folder, size_bytes=130000, seed=20242):
    rng = random.Random(seed)
    blend = tasks.Blend(folder)
    out = ""
    while len(out) < size_bytes:
        out += blend.Prose(rng) + "\n\n" + Rendered(blend.Mixed(rng))
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("factbook")
    parser.add_argument("out")
    parser.add_argument("--text")
    parser.add_argument("--calibration")
    args = parser.parse_args()
    with open(args.out, "w", encoding="utf-8") as f:
        for row in Make(args.factbook):
            f.write(json.dumps(row, ensure_ascii=False) + "\n")
    if args.text:
        with open(args.text, "w", encoding="utf-8") as f:
            f.write(Text(args.factbook))
    if args.calibration:
        with open(args.calibration, "w", encoding="utf-8") as f:
            f.write(Calibration(args.factbook))
