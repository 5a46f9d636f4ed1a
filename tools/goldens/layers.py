"""Factors of timm's layer-wise learning rates.

layers.txt has sections. The first line of a section names a network, its options as attscope's, layer_decay,
layer_decay_min_scale and layer_decay_no_opt_scale. A line follows for each parameter: its name and the factor of its
learning rate, 0 if it is frozen.
"""
import sys
import timm
from timm.optim import param_groups_layer_decay

CASES = [
    ("vit_tiny_patch16_224", {}, 0.75, 0, 0),
    ("deit_small_patch16_224", {"depth": 3}, 0.65, 0.3, 0.0),
    ("vit_tiny_patch16_224", {"depth": 2, "global_pool": "avg"}, 0.5, 0, 0.2),
    ("vit_tiny_patch16_224", {"depth": 2, "num_classes": 0}, 0.5, 0, 0),
    ("resnet18", {}, 0.9, 0, 0), ("resnet26d", {}, 0.8, 0.2, 0), ("seresnet50", {}, 0.7, 0, 0.05),
    ("mixer_s32_224", {}, 0.75, 0, 0), ("swin_tiny_patch4_window7_224", {}, 0.8, 0, 0),
    ("beit_base_patch16_224", {"depth": 2}, 0.75, 0, 0), ("vit_srelpos_small_patch16_224", {"depth": 2}, 0.75, 0, 0),
    ("vit_small_patch16_rope_mixed_ape_224", {"depth": 2}, 0.75, 0, 0),
    ("swinv2_tiny_window8_256", {}, 0.8, 0, 0), ("swinv2_cr_tiny_ns_224", {}, 0.8, 0, 0),
    ("test_convnext", {}, 0.75, 0, 0), ("convnext_tiny_hnf", {}, 0.8, 0.1, 0.05), ("regnety_002", {}, 0.8, 0, 0),
]

with open(sys.argv[1] + "/layers.txt", "w") as out:
    for name, options, decay, least, frozen in CASES:
        model = timm.create_model(name, device="meta", **options)
        names = {id(p): n for n, p in model.named_parameters()}
        groups = param_groups_layer_decay(model, layer_decay=decay, min_scale=least, no_opt_scale=frozen)
        factors = {names[id(p)]: g["lr_scale"] for g in groups for p in g["params"]}
        print("network", name, *(f"{k}={v}" for k, v in options.items()), decay, least, frozen, file=out)
        for parameter in names.values():
            print(parameter, repr(float(factors.get(parameter, 0))), file=out)
