"""Trains the vocabulary, and turns conversations into token ids.

    tokenizer.py FACTBOOK OUT_PREFIX [--vocab 4096]

SentencePiece BPE with byte fallback. Digits are split singly, nothing is normalised and no space is put in front, so
that the text of a conversation is encoded piece by piece between control tokens.
"""
import argparse
import random
import re
import tempfile

import sentencepiece

import dialog
import tasks

UNK, BOS, EOS, PAD, START, END = range(6)
CONTROL = ["<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def Train(folder, prefix, vocab, dialogs=60000, seed=7):
    rng = random.Random(seed)
    blend = tasks.Blend(folder)
    invented = re.compile(r"\b(?:" + "|".join(dialog.SYLLABLES) + r"){2,3}(?:ia|land|stan)?\b", re.IGNORECASE)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as f:
        for _ in range(dialogs):
            d = blend.One(rng, 1.0)
            for t in d.turns:
                f.write(invented.sub("", t.prompt) + "\n" + invented.sub("", t.answer) + "\n")
            known = blend.facts.Ask(rng).turns[0]
            f.write(known.prompt + "\n" + known.answer + "\n")
            if rng.random() < 0.2:
                f.write(invented.sub("", blend.Prose(rng)) + "\n")
        # Invented names enter as syllables, so that a name is cut the same way wherever it stands.
        for s in dialog.SYLLABLES:
            f.write(f"{s}\n{s.capitalize()}\n {s.capitalize()}\n" * 300)
        f.write("user\nassistant\nsystem\n" * 50)
        f.write(" ".join(chr(c) for c in range(33, 127)) + "\n")  # every printable ASCII character has a piece of its own
        for s in tasks.SYSTEMS:
            f.write((s + "\n") * 50)
        f.flush()
        sentencepiece.SentencePieceTrainer.train(
            input=f.name, model_prefix=prefix, model_type="bpe", vocab_size=vocab, byte_fallback=True, split_digits=True,
            normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False, character_coverage=1.0,
            unk_id=UNK, bos_id=BOS, eos_id=EOS, pad_id=PAD,
            control_symbols=CONTROL, max_sentence_length=8000, num_threads=2, minloglevel=1)


class Tokenizer:
    def __init__(self, path):
        self.sp = sentencepiece.SentencePieceProcessor(model_file=path)
        assert [self.sp.piece_to_id(c) for c in CONTROL] == [START, END]

    def Encode(self, text):
        return self.sp.encode(text)

    def Decode(self, ids):
        return self.sp.decode([int(i) for i in ids])

    def Message(self, role, text):
        return [START] + self.Encode(role + "\n" + text) + [END] + self.Encode("\n")

    def Prompt(self, messages):
        """[(role, text)] -> ids, from BOS to where the assistant begins to speak."""
        ids = [BOS]
        for role, text in messages:
            ids += self.Message(role, text)
        return ids + [START] + self.Encode("assistant\n")

    def Dialog(self, dialog):
        """(ids without BOS, mask): the mask is 1 where a token is the assistant's own, its end mark included."""
        ids, mask = [], []
        if dialog.system:
            ids += self.Message("system", dialog.system)
            mask += [0] * len(ids)
        for turn in dialog.turns:
            head = self.Message("user", turn.prompt) + [START] + self.Encode("assistant\n")
            answer = self.Encode(turn.answer) + [END]
            tail = self.Encode("\n")
            ids += head + answer + tail
            mask += [0] * len(head) + [1] * len(answer) + [0] * len(tail)
        return ids, mask


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("factbook")
    parser.add_argument("prefix")
    parser.add_argument("--vocab", type=int, default=4096)
    args = parser.parse_args()
    Train(args.factbook, args.prefix, args.vocab)
