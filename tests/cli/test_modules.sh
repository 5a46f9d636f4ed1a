#!/bin/bash
# The list of modules: what they fit, their options, JSON; a module that does not fit a network.
. "$(dirname "$0")/lib.sh"

run 0 modules
out_has 'cb_s          x <- x + weight (.) c'
out_has 'on tokens [N, C] or feature maps [h, w, C]'
out_has '@heads             heads of attention'
out_has 'init=0 (-10..10)  initial value of the weight'
out_has 'step          StepNet'
out_has 'adaptor=affine (affine, iebn, bottleneck, conv1d, style, dct, linear)'
out_has 'input=both (x_t, x_t1, difference, both)'
run 0 modules --json -
out_has '"module": "srm"'
out_has '"choices": ['

run 2 train data --broadcast eca
err_has 'attscope: --broadcast: there is no "eca"'
# The first of several modules may have neither options nor a place.
run 1 train data --model vit_tiny_patch16_224 --modules cb+cb_s@after_attn
err_is <<<'attscope: data does not exist'
run 2 modules cb
err_has 'too many'
finish
