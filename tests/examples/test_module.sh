#!/bin/bash
# examples/module.c: checkpoints of networks with a registered module are written and opened again.
. "$(dirname "$0")/../cli/lib.sh"
attscope=$ATTSCOPE
ATTSCOPE=$ATT_BUILD/examples/module
run 0
sed -n 's/: first logit -*[0-9.]*$//p' stdout >networks
diff networks - <<'TEXT' || fail 'the networks differ'
resnet20, stretch@after_branch:layer3:all
resnet20, stretch@after_branch:layer3:all
vit_tiny_patch16_224, stretch:init=0.5@after_attn:0-5+cb
vit_tiny_patch16_224, stretch:init=0.5@after_attn:0-5+cb
TEXT
[ "$(uniq -c stdout | grep -c '^ *2 ')" -eq 2 ] || fail 'a network from its file gives another logit'
out_has 'its network has the module "stretch", which is neither built in nor registered'
[ ! -e module_example.safetensors ] || fail 'the file was not removed'
finish
