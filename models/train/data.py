"""Packs conversations into rows of fixed length that begin with BOS, in a process of its own."""
import multiprocessing
import os
import random

import numpy as np

import tasks
import tokenizer

PROMPT_SHARE, PROMPT_WEIGHT = 0.12, 0.3  # how many of the prompt's tokens are learnt from, and how much
REPEAT_WEIGHT = 0.5  # of a prompt's token that follows the same token as earlier in the conversation: it teaches copying
PROSE_SHARE, PROSE_WEIGHT = 0.04, 0.4


def Documents(blend, tok, rng, level):
    """Endless (ids, weights). level is a mutable value: how long and tangled the texts may be, 0 to 1."""
    while True:
        if rng.random() < PROSE_SHARE:
            ids = tok.Encode(blend.Prose(rng)) + tok.Encode("\n\n")
            yield ids, [PROSE_WEIGHT] * len(ids)
        else:
            ids, mask = tok.Dialog(blend.Mixed(rng, level.value))
            weights, seen = [], set()
            for i, m in enumerate(mask):
                pair = (ids[i - 1] if i else tokenizer.BOS, ids[i])
                weights.append(1.0 if m else REPEAT_WEIGHT if pair in seen else PROMPT_WEIGHT if rng.random() < PROMPT_SHARE else 0.0)
                seen.add(pair)
            yield ids, weights


class Packer:
    """Whole documents only: a row takes the waiting documents that fit, longest first, and is padded."""

    def __init__(self, documents, waiting=64):
        self.documents, self.waiting, self.queue = documents, waiting, []

    def Row(self, length):
        ids, weights = [tokenizer.BOS], [0.0]
        while True:
            while len(self.queue) < self.waiting:
                doc = next(self.documents)
                if len(doc[0]) < length:
                    self.queue.append(doc)
            room = length - len(ids)
            # The oldest that fits while there is much room, then the longest that fits.
            fitting = [i for i, d in enumerate(self.queue) if len(d[0]) <= room]
            if not fitting:
                break
            best = fitting[0] if room > length // 2 else max(fitting, key=lambda i: len(self.queue[i][0]))
            doc = self.queue.pop(best)
            ids += doc[0]
            weights += doc[1]
        pad = length - len(ids)
        return ids + [tokenizer.PAD] * pad, weights + [0.0] * pad


def Serve(folder, vocabulary, seed, length, level, batch_tokens, blend, queue):
    os.nice(1)
    packer = Packer(Documents(tasks.Blend(folder, blend), tokenizer.Tokenizer(vocabulary), random.Random(seed), level))
    while True:
        t = length.value
        rows = [packer.Row(t) for _ in range(batch_tokens // t)]
        ids = np.array([r[0] for r in rows], dtype=np.int64)
        weights = np.array([r[1] for r in rows], dtype=np.float32)
        queue.put((ids, weights))


class Loader:
    """Next() gives ids [rows, length] and, per position, the weight of predicting that token."""

    def __init__(self, folder, vocabulary, seed, batch_tokens, length, blend=None):
        self.length = multiprocessing.Value("i", length)
        self.level = multiprocessing.Value("d", 0.0)
        self.queue = multiprocessing.Queue(4)
        self.process = multiprocessing.Process(target=Serve, daemon=True, args=(
            folder, vocabulary, seed, self.length, self.level, batch_tokens, blend, self.queue))
        self.process.start()

    def Next(self):
        return self.queue.get()
