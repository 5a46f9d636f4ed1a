#!/bin/bash
# The example module: networks with a module of one's own are written and opened again where it is registered.
. "$(dirname "$0")/../cli/lib.sh"
attscope=$ATTSCOPE
ATTSCOPE=$ATT_BUILD/examples/module
run 0
sed -n 's/: first logit -*[0-9.]*$//p' stdout >networks
diff networks - <<'TEXT' || fail 'other networks'
resnet20, stretch2d@after_branch:layer3:all
resnet20, stretch2d@after_branch:layer3:all
vit_tiny_patch16_224, stretch:init=0.5@after_attn:0-5+cb
vit_tiny_patch16_224, stretch:init=0.5@after_attn:0-5+cb
TEXT
[ "$(uniq -c stdout | grep -c '^ *2 ')" -eq 2 ] || fail 'a network from a file answers otherwise than before'
out_has 'its network has the module "stretch", which is neither built in nor registered'
[ ! -e module_example.safetensors ] || fail 'a file is left'
finish
