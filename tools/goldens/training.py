"""The first updates of small ViTs, an MLP-Mixer, Swins, ConvNeXts, EVAs and self-attention networks in PyTorch, in f64: twenty, or
three for options of ViTs, Swins V2, EVAs and self-attention networks.

Weights, images, labels and the logits of teachers follow from formulas (uniform() below), so that any program can
compute them. There is one file for each case, training_<case>.txt: lines "loss <value>" for each update, then "norm
<tensor> <value>", the norm of the tensor's gradient in the first update. Two gradients are 0 but for rounding. The key
third of qkv.bias does not
change the softmax: it is left out of the norm. An MLP-Mixer's mlp_tokens.fc2.bias adds one number to all channels of a
token, which layer norms remove: its norm is written as 0.
"""
import inspect
import sys
import numpy as np
import torch
import torch.nn.functional as F
from functools import partial
from timm.layers import DiffAttention, LayerNorm, RelPosMlp, RmsNorm, SwiGLU, SwiGLUPacked
from timm.layers import pos_embed_sincos
from timm.models import eva
from timm.models.beit import Beit
from timm.models.convnext import ConvNeXt
from timm.models.deit import VisionTransformerDistilled
from timm.models.mlp_mixer import MlpMixer
from timm.models.swin_transformer import SwinTransformer
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.swin_transformer_v2_cr import SwinTransformerV2Cr
from timm.models.vision_transformer import (DiffParallelScalingBlock, ParallelScalingBlock, ParallelThingsBlock,
                                            ResPostBlock, VisionTransformer)
from timm.models.vision_transformer_relpos import ResPostRelPosBlock, VisionTransformerRelPos
from timm.optim import param_groups_weight_decay
from attention_cnn import AttentionCnn
from formula import uniform
from networks import fill

STEPS, BATCH, CLASSES, SIDE = 20, 8, 10, 28
SWINS = {1: SwinTransformer, 2: SwinTransformerV2, "2-CR": SwinTransformerV2Cr}


def exact_lambda(self):
    """timm rounds the weight of differential attention's second map to f32."""
    first, second = torch.dot(self.lambda_q1, self.lambda_k1), torch.dot(self.lambda_q2, self.lambda_k2)
    return first.exp() - second.exp() + self.lambda_init


DiffAttention._compute_lambda = DiffParallelScalingBlock._compute_lambda = exact_lambda


def signed(shifts, function):
    return shifts.sign() * function(shifts.abs())


def exact_shifts(attention):
    """timm computes the shifts of Swins V2 in f32. In training it also drops numbers inside the MLP of V2-CR."""
    side = torch.tensor(attention.window_size, dtype=torch.float64)
    if hasattr(attention, "relative_coords_table"):
        height, width = attention.window_size
        shifts = torch.stack(torch.meshgrid(torch.arange(1 - height, height), torch.arange(1 - width, width),
                                            indexing="ij"), dim=-1).double()
        pretrained = torch.tensor(attention.pretrained_window_size, dtype=torch.float64)
        scale = 8 / ((pretrained if pretrained[0] > 0 else side) - 1).clamp(min=1)
        attention.relative_coords_table = signed(shifts * scale, lambda t: torch.log2(t + 1) / 3)[None]
    else:
        shifts = signed(attention.relative_coordinates_log.double(), torch.expm1).round()
        attention.relative_coordinates_log = signed(shifts, torch.log1p)
        attention.meta_mlp.drop1.p = 0


# timm computes rotary positions in f32.
exact_positions = inspect.getsource(pos_embed_sincos).replace("torch.float32", "torch.float64").replace(".float()", "")
exec(compile(exact_positions, pos_embed_sincos.__file__, "exec"), pos_embed_sincos.__dict__)
eva.create_rope_embed = pos_embed_sincos.create_rope_embed


class Broadcast(torch.nn.Module):
    def __init__(self, mlp, learned):
        super().__init__()
        self.fc1, self.act, self.fc2 = mlp.fc1, mlp.act, mlp.fc2
        self.cb = torch.nn.Module()
        if learned:
            self.cb.weight = torch.nn.Parameter(torch.zeros(mlp.fc2.out_features, dtype=torch.float64))

    def forward(self, x):
        x = self.fc2(self.act(self.fc1(x)))
        mean = x.mean(dim=1, keepdim=True)
        return x + self.cb.weight * mean if hasattr(self.cb, "weight") else (x + mean) / 2


def prepare_shifts(module):
    """Computes the shifts in f64, where timm rounds them to f32, and drops no hidden channels, as attscope."""
    height, width = module.window_size
    shifts = torch.stack(torch.meshgrid(torch.arange(1.0 - height, height, dtype=torch.float64),
                                        torch.arange(1.0 - width, width, dtype=torch.float64), indexing="ij"), dim=-1)
    module.rel_coords_log = shifts.sign() * shifts.abs().log1p()
    module.mlp.drop1.p = 0


def build(options):
    options = dict(options)
    broadcast = options.pop("broadcast", None)
    sizes = {"img_size": SIDE, "patch_size": 7, "in_chans": 1, "num_classes": CLASSES, "embed_dim": 32}
    if options.pop("mixer", False):
        model = MlpMixer(**(sizes | options)).double()
    elif "swin" in options:
        model = SWINS[options.pop("swin")](**(sizes | options), drop_path_rate=0).double()
        for module in model.modules():
            if hasattr(module, "logit_scale"):
                exact_shifts(module)
    elif options.pop("convnext", False):
        model = ConvNeXt(in_chans=1, num_classes=CLASSES, **options).double()
    elif options.pop("distilled", False):
        model = VisionTransformerDistilled(depth=2, num_heads=2, **sizes, **options).double()
    elif options.pop("eva", False):
        model = eva.Eva(depth=2, num_heads=2, **(sizes | {"patch_size": (7, 4)} | options), dtype=torch.float64)
    else:
        kind = options.pop("kind", VisionTransformer)
        model = kind(**({"depth": 2, "num_heads": 2} | sizes | options)).double()
    for module in model.modules():
        if isinstance(module, RelPosMlp):
            prepare_shifts(module)
    for block in model.blocks if broadcast else []:
        block.mlp = Broadcast(block.mlp, broadcast == "cb_s")
    fill(model)
    return model


def batch(step):
    count = SIDE * SIDE
    images = (4 * uniform("image", BATCH * count, step * BATCH * count)).astype(np.float32)
    labels = np.floor((uniform("label", BATCH, step * BATCH) + 0.5) * CLASSES).astype(np.int64)
    return torch.from_numpy(images).double().reshape(BATCH, 1, SIDE, SIDE), torch.from_numpy(labels)


def teacher_logits(step):
    logits = (6 * uniform("teacher", BATCH * CLASSES, step * BATCH * CLASSES)).astype(np.float32)
    return torch.from_numpy(logits).double().reshape(BATCH, CLASSES)


def distillation_loss(logits, teacher, distillation):
    """Returns the teacher's part of the loss as DeiT (Touvron et al., ICML 2021) computes it."""
    if distillation["type"] == "hard":
        return F.cross_entropy(logits, teacher.argmax(dim=1))
    tau = distillation["tau"]
    divergence = F.kl_div(F.log_softmax(logits / tau, dim=1), F.log_softmax(teacher / tau, dim=1), reduction="sum",
                          log_target=True)
    return divergence * tau**2 / logits.numel()


def gradient_norm(name, gradient):
    if name.endswith("qkv.bias"):
        query, _, value = gradient.chunk(3)
        gradient = torch.cat((query, value))
    norm = gradient.norm().item()
    return norm if norm > 1e-15 else 0


def run(path, model_options, optimizer, smoothing, distillation=None, steps=STEPS):
    model = build(model_options)
    no_decay = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
    groups = param_groups_weight_decay(model, 0.05, no_weight_decay_list=no_decay)
    if optimizer == "adamw":
        update = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    else:
        update = torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=smoothing)
    losses, norms = [], []
    for step in range(steps):
        images, labels = batch(step)
        logits = model(images)
        loss = criterion(logits, labels)
        if distillation:
            taught = distillation_loss(logits, teacher_logits(step), distillation)
            loss = (1 - distillation["alpha"]) * loss + distillation["alpha"] * taught
        update.zero_grad()
        loss.backward()
        if step == 0:
            norms = [(n, gradient_norm(n, p.grad)) for n, p in model.named_parameters()]
        update.step()
        losses.append(loss.item())
    with open(path, "w") as out:
        out.writelines(f"loss {value:.12g}\n" for value in losses)
        out.writelines(f"norm {name} {value:.9g}\n" for name, value in norms)


CASES = {
    "plain_adamw": ({}, "adamw", 0.0),
    "plain_sgd_smoothing": ({}, "sgd", 0.1),
    "cb_adamw": ({"broadcast": "cb"}, "adamw", 0.1),
    "cb_s_layerscale_adamw": ({"broadcast": "cb_s", "init_values": 0.1, "no_embed_class": True}, "adamw", 0.0),
    "mean_sgd": ({"class_token": False, "global_pool": "avg", "qkv_bias": False}, "sgd", 0.0),
    "mixer_adamw": ({"mixer": True, "patch_size": (7, 4), "num_blocks": 2, "mlp_ratio": (0.7, 2.0)}, "adamw", 0.1),
    "swin_adamw": ({"swin": 1, "patch_size": (2, 4), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4),
                    "mlp_ratio": 1.5}, "adamw", 0.1),
    "swin_padded_sgd": ({"swin": 1, "patch_size": (4, 2), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4),
                         "mlp_ratio": 1.5, "window_size": (4, 5), "always_partition": True}, "sgd", 0.0),
    "hard_teacher_adamw": ({}, "adamw", 0.1, {"type": "hard", "alpha": 0.5}),
    "soft_teacher_sgd": ({}, "sgd", 0.1, {"type": "soft", "alpha": 0.7, "tau": 3.0}),
}
# The options of tests/networks/models/test_training.c, as timm's arguments.
EPS = partial(LayerNorm, eps=1e-3)
GAP = {"class_token": False, "global_pool": "avg"}
RELPOS = {"kind": VisionTransformerRelPos, "patch_size": (7, 4), "init_values": 0.1}
VIT_CASES = {
    "registers": GAP | {"reg_tokens": 3, "no_embed_class": True, "init_values": 0.1},
    "embedded_registers": {"reg_tokens": 2},
    "clip": {"pre_norm": True, "norm_layer": EPS, "act_layer": "quick_gelu"},
    "aim": GAP | {"fc_norm": False, "qkv_bias": False, "proj_bias": False, "norm_layer": RmsNorm,
                  "embed_norm_layer": RmsNorm, "act_layer": "silu", "mlp_layer": SwiGLU, "mlp_ratio": 2},
    "packed": {"act_layer": "silu", "mlp_layer": SwiGLUPacked, "mlp_ratio": 3},
    "scale_norms": {"scale_attn_norm": True, "scale_mlp_norm": True, "qk_norm": True, "global_pool": "avg"},
    "map": {"class_token": False, "reg_tokens": 1, "global_pool": "map", "act_layer": "gelu_tanh"},
    "map_prefix": {"global_pool": "map", "pool_include_prefix": True, "pos_embed": "none", "act_layer": "relu"},
    "max": GAP | {"global_pool": "avgmax"},
    "post_norm": GAP | {"block_fn": ResPostBlock},
    "things": {"block_fn": ParallelThingsBlock, "init_values": 0.1},
    "scaling": {"block_fn": ParallelScalingBlock, "norm_layer": RmsNorm, "qk_norm": True, "qkv_bias": False,
                "init_values": 0.1},
    "scaling_bias": {"block_fn": ParallelScalingBlock},
    "diff": {"attn_layer": "diff", "scale_attn_norm": True},
    "diff_scaling": {"block_fn": DiffParallelScalingBlock},
    "distilled": {"distilled": True},
    "beit": {"kind": Beit, "patch_size": (7, 4), "use_abs_pos_emb": False, "use_rel_pos_bias": True, "init_values": 0.1},
    "beit_shared": {"kind": Beit, "patch_size": (7, 4), "use_shared_rel_pos_bias": True, "scale_mlp": True,
                    "global_pool": "token"},
    "relpos": RELPOS | {"class_token": True, "global_pool": "token", "qk_norm": True, "rel_pos_dim": 8},
    "relpos_shared": RELPOS | {"shared_rel_pos": True, "rel_pos_dim": 8, "block_fn": ResPostRelPosBlock},
    "relpos_bias": RELPOS | {"rel_pos_type": "bias", "class_token": True, "fc_norm": True, "qkv_bias": False},
}
SWIN_CASES = {
    "swin_v2_adamw": ({"swin": 2, "patch_size": (2, 4), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4),
                       "mlp_ratio": 1.5, "pretrained_window_sizes": (5, 0)}, "adamw", 0.1),
    "swin_v2_padded_sgd": ({"swin": 2, "patch_size": (4, 2), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4),
                            "mlp_ratio": 1.5, "window_size": (4, 5), "always_partition": True}, "sgd", 0.0),
    "swin_v2_cr_adamw": ({"swin": "2-CR", "patch_size": (2, 4), "embed_dim": 16, "depths": (3, 2),
                          "num_heads": (2, 4), "mlp_ratio": 1.5, "window_ratio": 2, "extra_norm_period": 2}, "adamw",
                         0.1),
    "swin_v2_cr_padded_sgd": ({"swin": "2-CR", "patch_size": (4, 2), "embed_dim": 16, "depths": (2, 2),
                               "num_heads": (2, 4), "mlp_ratio": 1.5, "window_size": (4, 5),
                               "always_partition": True, "extra_norm_stage": True}, "sgd", 0.0),
}
CONVNEXT = {"convnext": True, "depths": (1, 2, 1, 1), "dims": (8, 12, 16, 20), "patch_size": 1}
CONVNEXT_CASES = {
    "convnext_patch_adamw": (CONVNEXT | {"kernel_sizes": (7, 5, 3, 3), "ls_init_value": 0.1}, "adamw", 0.1),
    "convnext_norm_first_sgd": (CONVNEXT | {"head_norm_first": True, "conv_mlp": True, "norm_layer": "rmsnorm",
                                            "act_layer": "silu"}, "sgd", 0.0),
}
EVA_CASES = {
    "fused": {"swiglu_mlp": True, "mlp_ratio": 1.5, "use_rot_pos_emb": True, "ref_feat_shape": 5},
    "apart": {"qkv_fused": False, "swiglu_mlp": True, "scale_mlp": True, "scale_attn_inner": True, "mlp_ratio": 1.5,
              "use_rot_pos_emb": True, "rope_temperature": 50, "global_pool": "token"},
    "post_norm": {"use_post_norm": True, "global_pool": "token", "num_reg_tokens": 1},
    "dinov3": {"rope_type": "dinov3", "rope_temperature": 100, "rope_rotate_half": True, "use_rot_pos_emb": True,
               "use_abs_pos_emb": False, "num_reg_tokens": 3, "use_fc_norm": False, "init_values": 0.1,
               "swiglu_mlp": True, "swiglu_align_to": 8},
    "mixed": {"attn_type": "rope", "rope_type": "mixed", "rope_grid_indexing": "xy", "use_rot_pos_emb": True,
              "global_pool": "token", "no_embed_class": True, "init_values": 0.1, "qkv_fused": False},
    "pe": {"attn_type": "rope", "use_rot_pos_emb": True, "ref_feat_shape": 6, "rope_grid_offset": 1.0,
           "rope_grid_indexing": "xy", "use_pre_transformer_norm": True, "global_pool": "map",
           "attn_pool_num_heads": 4, "attn_pool_mlp_ratio": 2.0},
}
SETTINGS = {case: (settings, {}) for case, settings in CASES.items()}
SETTINGS |= {case: (settings, {"steps": 3}) for case, settings in (SWIN_CASES | CONVNEXT_CASES).items()}
SETTINGS |= {f"vit_{case}": ((options, "adamw", 0.0), {"steps": 3}) for case, options in VIT_CASES.items()}
SETTINGS |= {f"eva_{case}": ((options | {"eva": True}, "adamw", 0.0), {"steps": 3})
             for case, options in EVA_CASES.items()}
ENCODINGS = ("isotropic", "quadratic", "learned", "learned_content")
ATTENTION_CNN = {"kind": AttentionCnn, "patch_size": (7, 4), "num_heads": 3}
SETTINGS |= {f"attention_cnn_{encoding}": ((ATTENTION_CNN | {"encoding": encoding}, "sgd", 0.0), {"steps": 3})
             for encoding in ENCODINGS}
PRUNED = {"encoding": "quadratic", "num_heads": (1, 3)}
SETTINGS |= {"attention_cnn_pruned": ((ATTENTION_CNN | PRUNED, "sgd", 0.0), {"steps": 3})}
for case, (settings, more) in SETTINGS.items():
    if len(sys.argv) < 3 or case in sys.argv[2:]:
        run(f"{sys.argv[1]}/training_{case}.txt", *settings, **more)
