#!/usr/bin/env python3
"""PyTorch on the models of bench_gpu.

    usage: reference.py [--tiny] PART FOLDER

    torch-steps   steps of GPT-2 124M and ResNet-50, and kith's share of them
    torch-parity  losses and gradients beside kith's

FOLDER is that of bench_gpu's --out. --tiny: its tiny sizes, on the CPU where
there is no device. A result is a row, as bench_gpu's. Status: 0; 1, a failure;
2, the command line; 77, no PyTorch or no device.
"""
import importlib
import sys

PARTS = {"torch-steps": "torch_steps", "torch-parity": "torch_parity"}


def main():
    words = [word for word in sys.argv[1:] if word != "--tiny"]
    tiny = len(words) < len(sys.argv) - 1
    if len(words) != 2 or words[0] not in PARTS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        print(f"reference.py: no PyTorch: {error}")
        return 77
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not tiny:
        print("reference.py: PyTorch finds no device")
        return 77
    name = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
    print(f"# device: {name}, PyTorch {torch.__version__}", flush=True)
    importlib.import_module(PARTS[words[0]]).run(words[1], device, tiny)
    return int(importlib.import_module("torch_models").FAILED)


if __name__ == "__main__":
    sys.exit(main())
