"""Tiny networks of the transformers library as it writes them, and their answers in f64.

layouts/NAME/ has config.json, preprocessor_config.json and model.safetensors (timm_wrapper: its index and shards), whose
bfloat16 weights follow from a formula, and expected.txt: the logits of the formula's image, or the features of a network
without a classifier. Those of IN_MEMORY, one for each kind of network whose tensors have other names in memory, have
state_dict.safetensors, too: the same tensors under these names.

tests/networks/layouts/test_transformers.c has a row for each NAME.
"""
import pathlib
import sys

import torch
import transformers
import safetensors.torch
from formula import uniform
from networks import picture
from transformers_networks import networks

SIDE, WIDTH = 8, 8
IN_MEMORY = ["vit", "vit_mae", "dinov2", "dinov2_base", "dinov3_gated", "beit", "beit_masked", "swin"]


def fill(model):
    """Weights and variances of norms are around 1, all other parameters around 0; all are bfloat16 numbers."""
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            start = 1.0 if ("norm" in name and name.endswith("weight")) or name.endswith("running_var") else 0.0
            wide = 0.4 if tensor.dim() > 1 else 0.2
            values = torch.from_numpy(start + wide * uniform(name, tensor.numel()))
            tensor.copy_(values.reshape(tensor.shape).bfloat16())


transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
for network in networks(SIDE, WIDTH):
    folder = pathlib.Path(sys.argv[1]) / "layouts" / network.name
    folder.mkdir(parents=True, exist_ok=True)
    model = network.make().double().eval()
    fill(model)
    with torch.no_grad():
        values = network.answer(model, picture(network.side, network.side))[0].tolist()
    (folder / "expected.txt").write_text(" ".join(f"{v:.8g}" for v in values) + "\n")
    model.bfloat16().save_pretrained(folder, max_shard_size="2KB" if network.name == "timm_wrapper" else "50GB")
    network.processor.save_pretrained(folder)
    if network.name in IN_MEMORY:
        safetensors.torch.save_file(model.state_dict(), folder / "state_dict.safetensors")
