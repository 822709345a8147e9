#!/usr/bin/env python3
"""Makes tokenizer.json and cases.json: a small byte-level BPE trained on a text,
and what Hugging Face's tokenizers (pip install tokenizers) encodes with it.

    python3 make.py TEXT
"""
import json
import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

text = open(sys.argv[1], encoding="utf-8").read()
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator([text], trainers.BpeTrainer(
    vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save("tokenizer.json", pretty=False)

random.seed(1)
signs = "aZé ñ'ſ  \n\t\r\u00a0\u2003１²Ⅳ漢字かな😀<|endoftext|>'s're'LL..,,!?\u0301\u200d\x01"
cases = ["", text[:600], "<|endoftext|>", "a<|endoftext|><|endoftext|> b",
         "   x  \n\n y  ", "a" * 100, "don't we'll I'M they're",
         "3.14159 is 22/7", "naïve café — “quoted” 東京 ٣٤"]
cases += ["".join(random.choice(signs) for _ in range(random.randint(1, 40)))
          for _ in range(40)]
with open("cases.json", "w", encoding="utf-8") as out:
    json.dump([{"text": c, "tokens": tokenizer.encode(c).ids} for c in cases],
              out, ensure_ascii=True, separators=(",", ":"))
    out.write("\n")
