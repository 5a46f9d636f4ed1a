#!/bin/bash
# The list of networks: patterns, an unknown name, JSON.
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
attscope: there is no model "vit_tini_patch16_224"; did you mean "vit_tiny_patch16_224"?
TEXT
run 1 models vit_small
err_is <<'TEXT'
attscope: there is no model "vit_small"; attscope models 'vit_small*' lists those whose names begin with it
TEXT
run 1 models dinov2
err_is <<'TEXT'
attscope: there is no model "dinov2"; attscope models '*dinov2*' lists those whose names contain it
TEXT
run 0 models '*dinov2*'
out_has 'vit_small_patch14_reg4_dinov2'
run 1 models resnetaa50
err_is <<'TEXT'
attscope: timm has resnetaa50 (anti-aliased downsampling); attscope does not support it
TEXT
run 1 models 'resnetaa*'
err_is <<'TEXT'
attscope: no model matches "resnetaa*"; attscope models lists all
TEXT

# A deprecated name and a name with a tag belong to a network in the list; --tags lists a network's tags.
run 0 models tv_resnet34 resnet34.a1_in1k
out_has 'resnet34 '
run 0 models --tags vit_small_patch8_224 deit3_small_patch16_224
out_is <<'TEXT'
model                        params M    GMACs  size
vit_small_patch8_224            22.06    22.41   224  Vision Transformer (Dosovitskiy et al., ICLR 2021)
  .dino                         no classes  size 224  crop 0.9 center  bicubic  mean 0.485,0.456,0.406  std 0.229,0.224,0.225
deit3_small_patch16_224         22.06     4.60   224  DeiT III (Touvron et al., ECCV 2022)
  .fb_in1k                    1000 classes  size 224  crop 0.9 center  bicubic  mean 0.485,0.456,0.406  std 0.229,0.224,0.225
  .fb_in22k_ft_in1k           1000 classes  size 224  crop 1 center  bicubic  mean 0.485,0.456,0.406  std 0.229,0.224,0.225
TEXT
run 0 models --tags deit3_small_patch16_224 --json -
out_has '"tag": "fb_in22k_ft_in1k"'
out_has '"crop_pct": 1'

# What options cost: in operations of CB itself, mid_mlp is four times after_mlp, whose width is a quarter.
run 0 models vit_small_patch16_224 --compare cb --compare cb_s@after_mlp --compare cb@mid_mlp \
  --compare uniform_head:how=replace --compare uniform_head:how=compensate --compare uniform_head
out_is <<'TEXT'
                                               parameters  MFLOP forward MFLOP training
vit_small_patch16_224                            22050664       9307.486      28072.150
  --modules cb                                         +0         +2.723         +5.447
  --modules cb_s@after_mlp                          +4608         +1.816         +5.447
  --modules cb@mid_mlp                                 +0        +10.893        +21.787
  --modules uniform_head:how=replace              -591360       -585.660      -1815.109
  --modules uniform_head:how=compensate              -768       -584.480      -1811.570
  --modules uniform_head                          +590592         +3.000         +6.277
TEXT
# The class token or a maximum costs no more than the mean, but for one product per channel.
run 0 models vit_small_patch16_224 --compare cb --compare cb:pool=class --compare cb:pool=max \
  --compare cb_s --compare cb_s:pool=class --compare cb_s:pool=max
out_is <<'TEXT'
                                               parameters  MFLOP forward MFLOP training
vit_small_patch16_224                            22050664       9307.486      28072.150
  --modules cb                                         +0         +2.723         +5.447
  --modules cb:pool=class                              +0         +1.825         +3.645
  --modules cb:pool=max                                +0         +2.728         +5.451
  --modules cb_s                                    +4608         +1.816         +5.447
  --modules cb_s:pool=class                         +4608         +0.922         +3.663
  --modules cb_s:pool=max                           +4608         +1.825         +5.470
TEXT
run 0 models vit_small_patch16_224 --depth 8 --extra-layer attn
out_has '  --depth 8 --extra-layer attn '
run 0 models vit_small_patch16_224 --modules cb_s --json -
out_has '"added_param_count": 4608'
out_has '"modules": "cb_s"'
# Modules are compared in the network with the options; 8 of 12 blocks have two thirds of its parameters.
run 0 models vit_small_patch16_224 --depth 8 --compare cb_s
out_has 'vit_small_patch16_224 --depth 8'
grep -q -- '--modules cb_s  *+3072 ' stdout || fail "CB_S in 8 blocks: $(cat stdout)"

run 0 models vit_small_patch14_dinov2 --compare cb
out_has ' -'
run 2 models resnet20 --compare cb
err_has 'module "cb" works on tokens'
finish
