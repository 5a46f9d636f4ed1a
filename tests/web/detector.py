"""Writes a small detector: a ViT of four blocks with random weights, whose boxes have scores of all sizes."""

import array
import json
import math
import random

CLASSES = 3
OPTIONS = {"model": "vit_tiny_patch16_224", "img_size": [64, 96], "in_chans": 3, "num_classes": CLASSES,
           "task": "detect", "neck": "feature2pyramid", "head_channels": 8, "box_channels": 16, "proposals": 30,
           "detections": 20, "anchor_size": 8, "patch_size": 16, "embed_dim": 16, "depth": 4, "num_heads": 2,
           "crop_pct": 1, "crop_mode": "within", "interpolation": "bilinear_plain"}
# Names of layers with their shapes; [inputs] or none: a vector.
BLOCK = {"norm1": [16], "attn.qkv": [48, 16], "attn.proj": [16, 16], "norm2": [16], "mlp.fc1": [64, 16],
         "mlp.fc2": [16, 64]}
LAYERS = {"patch_embed.proj": [16, 3, 16, 16], "norm": [16],
          **{f"blocks.{i}.{name}": shape for i in range(4) for name, shape in BLOCK.items()},
          **{f"detector.fpn.inner_blocks.{i}.0": [8, 16, 1, 1] for i in range(4)},
          **{f"detector.fpn.layer_blocks.{i}.0": [8, 8, 3, 3] for i in range(4)},
          "detector.neck.fpn1.0": [16, 16, 2, 2], "detector.neck.fpn1.1": [16], "detector.neck.fpn1.3": [16, 16, 2, 2],
          "detector.neck.fpn2.0": [16, 16, 2, 2], "detector.roi_heads.box_head.fc6": [16, 392],
          "detector.roi_heads.box_head.fc7": [16, 16], "detector.roi_heads.box_predictor.bbox_pred": [16, 16],
          "detector.roi_heads.box_predictor.cls_score": [CLASSES + 1, 16], "detector.rpn.head.bbox_pred": [12, 8, 1, 1],
          "detector.rpn.head.cls_logits": [3, 8, 1, 1], "detector.rpn.head.conv.0.0": [8, 8, 3, 3]}
TABLES = {"cls_token": [1, 1, 16], "pos_embed": [1, 25, 16], "detector.neck.fpn1.1.running_mean": [16],
          "detector.neck.fpn1.1.running_var": [16]}
GAINS = {"cls_score": 6, "cls_logits": 6, "bbox_pred": 0.5, "qkv": 6}


def width_of(name, shape):
    """Half of the range of a tensor's values."""
    fan_in = math.prod(shape[1:]) if len(shape) > 1 else 25
    return next((gain for part, gain in GAINS.items() if part in name), 1.5) / math.sqrt(fan_in)


def write_detector(path):
    draw, header, data = random.Random(1), {}, b""
    tensors = {f"{name}.{part}": shape if part == "weight" else shape[:1]
               for name, shape in LAYERS.items() for part in ("weight", "bias")}
    for name, shape in {**tensors, **TABLES}.items():
        is_scale = len(shape) == 1 and name.endswith(("weight", "running_var"))
        width = width_of(name, shape)
        values = array.array("f", (is_scale + width * (2 * draw.random() - 1) for _ in range(math.prod(shape))))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps({"__metadata__": {"attscope": json.dumps(OPTIONS)}, **header}).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
