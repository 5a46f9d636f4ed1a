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

# The first of several modules may have neither options nor a place.
run 1 train data --model vit_tiny_patch16_224 --modules cb+cb_s@after_attn
err_is <<<'attscope: data does not exist'

# Several modules are joined with +, wherever a comma stands instead.
tiny='--model vit_tiny_patch16_224'
usage '"cb,se" is not a module; several are joined with +: cb+se' train data $tiny --modules cb,se
usage '"se,cb_s" is not a module; several are joined with +: se+cb_s' train data $tiny --modules cb+se,cb_s
usage 'module cb: "se" is not option=value; several modules are joined with +' train data $tiny \
    --modules cb:pool=max,se

# One module: its options, and only its places.
run 0 modules uniform_head
out_is <<'TEXT'
uniform_head  a head that attends to all tokens equally (Hyeon-Woo et al., ICCV 2023; widths: our interpretation)
    on heads of attention
    how=append (append, replace, compensate)  append: beside all heads; replace: instead of one; compensate: instead of one, and twice as wide, so that the weights are as many as without the module

Places in networks of the family "vit" (after @; the first is the default):
  @heads             heads of attention      beside the heads of a block's attention

Places in networks of the family "eva" (after @; the first is the default):
  @heads             heads of attention      beside the heads of a block's attention

Places in networks of the family "swin" (after @; the first is the default):
  @heads             heads of attention      beside the heads of a block's attention
TEXT
run 0 modules eca srm --json -
[ "$(grep -c '"module":' stdout)" -eq 2 ] || fail "modules eca srm: $(cat stdout)"
run 1 modules cbb
err_is <<<'attscope: there is no module "cbb"; did you mean "cb"?'
run 1 modules none
err_is <<<'attscope: "none" is not a module'
finish
