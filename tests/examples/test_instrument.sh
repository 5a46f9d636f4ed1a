#!/bin/bash
# examples/instrument.c: a registered instrument together with a built-in one.
. "$(dirname "$0")/../cli/lib.sh"
image=$here/../goldens/images/rgb.png
ATTSCOPE=$ATT_BUILD/examples/instrument
run 0 deit_tiny_patch16_224 "$image"
[ "$(grep -c '^centre   blocks\.[0-9]*\.add[12]  *length  * [0-9.]* 1$' stdout)" -eq 24 ] || fail 'not 24 figures of residual additions'
[ "$(grep -c '^entropy  blocks\.[0-9]*\.attn  *mean  * [0-9.]* nats$' stdout)" -eq 12 ] || fail 'not 12 figures of attention'
run 1 deit_tiny_patch16_224 nowhere.png
err_has nowhere.png
run 2
err_is <<<'usage: instrument CHECKPOINT IMAGES'
finish
