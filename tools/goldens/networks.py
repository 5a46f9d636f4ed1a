"""Networks with the numbers that the tests draw, and DeiT-Tiny with its weights: imported by the other scripts; run alone
it writes nothing."""
import os
import sys

import numpy as np
import timm
import torch
from safetensors.torch import load_file
from timm.data import create_transform, resolve_model_data_config

from formula import uniform


def fill(model):
    """Weights of norms and running variances are around 1, all other parameters and running means around 0."""
    running = [(n, b) for n, b in model.named_buffers() if n.endswith(("running_mean", "running_var"))]
    for name, parameter in [*model.named_parameters(), *running]:
        gain = ("norm" in name or ".bn." in name) and name.endswith("weight")
        start = 1.0 if gain or name.endswith("running_var") else 0.0
        wide = 0.4 if parameter.dim() > 1 else 0.2
        values = (start + wide * uniform(name, parameter.numel())).astype(np.float32)
        parameter.data = torch.from_numpy(values).double().reshape(parameter.shape)


def picture(height, width):
    image = (4 * uniform("image", height * width * 3)).astype(np.float32).reshape(1, height, width, 3)
    return torch.from_numpy(image).double().permute(0, 3, 1, 2)


def deit_tiny():
    """Returns the folder $ATT_SHARED, DeiT-Tiny and its transform of images. Ends the program if there are no weights."""
    shared = os.environ["ATT_SHARED"]
    weights = shared + "/data/weights/deit_tiny_patch16_224.safetensors"
    if not os.path.exists(weights):
        sys.exit(print(weights, "is missing: the goldens are left unchanged"))
    model = timm.create_model("deit_tiny_patch16_224").eval()
    model.load_state_dict(load_file(weights))
    return shared, model, create_transform(**resolve_model_data_config(model), is_training=False)
