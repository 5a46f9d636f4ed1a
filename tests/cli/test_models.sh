#!/bin/bash
# The list of networks: patterns, a name that is not there, JSON.
. "$(dirname "$0")/lib.sh"

run 0 models 'vit_tiny_patch16_2*' 'deit_tiny_patch16_224'
out_is <<'TEXT'
model                        params M    GMACs  size
vit_tiny_patch16_224             5.72     1.25   224  Vision Transformer (Dosovitskiy et al., ICLR 2021)
deit_tiny_patch16_224            5.72     1.25   224  DeiT (Touvron et al., ICML 2021)
TEXT
run 0 models vit_tiny_patch16_224 --json -
out_is <<'TEXT'
[
  {
    "model": "vit_tiny_patch16_224",
    "img_size": 224,
    "param_count": 5717416,
    "infer_gmacs": 1.2536832,
    "summary": "Vision Transformer (Dosovitskiy et al., ICLR 2021)"
  }
]
TEXT
run 0 models vit_tiny_patch16_224 --json models.json
[ "$(head -c 1 models.json)" = '[' ] || fail '--json FILE'
out_has 'vit_tiny_patch16_224'

run 1 models vit_tini_patch16_224
err_is <<'TEXT'
attscope: no model is called "vit_tini_patch16_224"; did you mean vit_tiny_patch16_224?
TEXT
finish
