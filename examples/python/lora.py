"""LoRA: adapters on a frozen base, and the adapters alone travel. By transformers
and peft, on a small random model of its own: nothing is downloaded.

    lora.py PEER.yaml                  two at once: kith lab lora.yaml
"""
import sys

import peft
import torch
import transformers

import kith

torch.set_num_threads(1)
torch.manual_seed(1)  # the same base and adapters everywhere
base = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=64, n_positions=32, n_embd=64, n_layer=2, n_head=2,
    bos_token_id=0, eos_token_id=0))
model = peft.get_peft_model(base, peft.LoraConfig(
    r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True))
adapters = [one for one in model.parameters() if one.requires_grad]
frozen = sum(one.numel() for one in model.parameters()) - sum(
    one.numel() for one in adapters)

peer = kith.Peer(adapters, *sys.argv[1:2])
rank = peer.stats["rank"]
print(f"peer {rank}: {sum(one.numel() for one in adapters)} values travel, "
      f"{frozen} do not", flush=True)
optimiser = torch.optim.AdamW(adapters, lr=1e-2)
random = torch.Generator().manual_seed(rank)


def batch(random):
    """Counting by threes from anywhere."""
    start = torch.randint(64, (8, 1), generator=random)
    return (start + 3 * torch.arange(32)) % 64


while not peer.over:
    tokens = batch(random)
    loss = model(input_ids=tokens, labels=tokens).loss
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    peer.step(loss.item())
with torch.no_grad():
    tokens = batch(torch.Generator().manual_seed(99))
    peer.report(loss=model(input_ids=tokens, labels=tokens).loss.item())
peer.close()
