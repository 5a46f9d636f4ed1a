"""Tiny networks of the transformers library as it writes them, and their answers in f64.

layouts/NAME/ has config.json, preprocessor_config.json and model.safetensors, whose bfloat16 weights follow from a
formula, and expected.txt: the logits of the formula's image, or the features of a network without a classifier.
tests/networks/layouts/test_transformers.c has a row for each NAME.
"""
import pathlib
import sys

import torch
import transformers as hf
from formula import uniform
from networks import picture

SIDE = 8
VIT = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "image_size": SIDE,
       "patch_size": 4}
CLASSES = {"num_labels": 3}
DECODER = {"decoder_hidden_size": 4, "decoder_num_hidden_layers": 1, "decoder_intermediate_size": 4,
           "decoder_num_attention_heads": 1, "mask_ratio": 0.0}
SIZE = {"size": {"height": SIDE, "width": SIDE}}
CROP = {"size": {"shortest_edge": 10}, "crop_size": {"height": SIDE, "width": SIDE}}


def logits(model, image):
    return model(pixel_values=image).logits


def class_token(model, image):
    return model(pixel_values=image).last_hidden_state[:, 0]


def mean_of_tokens(model, image):
    return model(pixel_values=image).last_hidden_state.mean(1)


def class_token_of_encoder(model, image):
    """Of a masked autoencoder that masks nothing and leaves the patches in their order."""
    in_order = torch.arange((SIDE // VIT["patch_size"]) ** 2)[None].double()
    return model.vit(pixel_values=image, noise=in_order).last_hidden_state[:, 0]


# The name, the class of the network, its configuration, its processor, and what attscope must compute.
NETWORKS = [
    ("vit", hf.ViTForImageClassification, hf.ViTConfig(**VIT, **CLASSES), hf.ViTImageProcessor(**SIZE), logits),
    ("vit_base", hf.ViTModel, hf.ViTConfig(**VIT, hidden_act="gelu_pytorch_tanh"), hf.ViTImageProcessor(**SIZE),
     class_token),
    ("deit", hf.DeiTForImageClassification, hf.DeiTConfig(**VIT, **CLASSES), hf.DeiTImageProcessor(**CROP), logits),
    ("deit_teacher", hf.DeiTForImageClassificationWithTeacher, hf.DeiTConfig(**VIT, **CLASSES),
     hf.DeiTImageProcessor(**CROP), logits),
    ("vit_mae", hf.ViTMAEForPreTraining, hf.ViTMAEConfig(**VIT, **DECODER), hf.ViTImageProcessor(**SIZE),
     class_token_of_encoder),
    ("vit_msn", hf.ViTMSNForImageClassification, hf.ViTMSNConfig(**VIT, **CLASSES), hf.ViTImageProcessor(**SIZE),
     logits),
    ("ijepa", hf.IJepaForImageClassification, hf.IJepaConfig(**VIT, **CLASSES), hf.ViTImageProcessor(**SIZE), logits),
    ("ijepa_base", hf.IJepaModel, hf.IJepaConfig(**VIT), hf.ViTImageProcessor(**SIZE), mean_of_tokens),
]


def fill(model):
    """Weights and variances of norms are around 1, all other parameters around 0; all are bfloat16 numbers."""
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            start = 1.0 if ("norm" in name and name.endswith("weight")) or name.endswith("running_var") else 0.0
            wide = 0.4 if tensor.dim() > 1 else 0.2
            values = torch.from_numpy(start + wide * uniform(name, tensor.numel()))
            tensor.copy_(values.reshape(tensor.shape).bfloat16())


hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()
root = pathlib.Path(sys.argv[1]) / "layouts"
for name, network, config, processor, answer in NETWORKS:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    model = network(config).bfloat16().eval()
    fill(model)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    with torch.no_grad():
        values = answer(model.double(), picture(SIDE, SIDE))[0].tolist()
    (folder / "expected.txt").write_text(" ".join(f"{v:.8g}" for v in values) + "\n")
