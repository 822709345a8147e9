"""Hugging Face's Trainer as it is: two lines, Peer() and attach(), and a callback
that ends it with the peer's share of steps.

    trainer.py PEER.yaml               two at once: kith lab trainer.yaml
"""
import sys
import tempfile

import torch
import transformers

import kith


class Counting(torch.utils.data.Dataset):
    """Sequences that count by threes."""

    def __len__(self):
        return 512

    def __getitem__(self, i):
        tokens = (i + 3 * torch.arange(32)) % 64
        return {"input_ids": tokens, "labels": tokens}


class UntilOver(transformers.TrainerCallback):
    def on_step_end(self, arguments, state, control, **_):
        control.should_training_stop = peer.over


transformers.set_seed(1)
torch.set_num_threads(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2,
    bos_token_id=0, eos_token_id=0))
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
peer = kith.Peer(model, *sys.argv[1:2])
peer.attach(optimiser)
folder = tempfile.mkdtemp()
trainer = transformers.Trainer(
    model, transformers.TrainingArguments(
        folder, max_steps=10**6, per_device_train_batch_size=8,
        report_to="none", use_cpu=True, save_strategy="no",
        disable_tqdm=True, seed=peer.stats["rank"]),
    train_dataset=Counting(), optimizers=(optimiser, None),
    callbacks=[UntilOver()])
if not peer.over:
    trainer.train()
with torch.no_grad():
    tokens = torch.stack([Counting()[i]["input_ids"] for i in range(64)])
    peer.report(loss=model(input_ids=tokens, labels=tokens).loss.item())
peer.close()
