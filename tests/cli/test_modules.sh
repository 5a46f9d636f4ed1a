#!/bin/bash
# The list of modules: what they fit, their options, JSON; a module where it does not fit.
. "$(dirname "$0")/lib.sh"

run 0 modules
out_has 'cb_s   tokens [N, C]'
out_has 'init=0 (-10..10)  start of the weight'
out_has 'step   feature maps [h, w, C]'
out_has 'adaptor=affine (affine, iebn, bottleneck, conv1d, style, dct, linear)'
out_has 'input=both (x_t, x_t1, difference, both)'
run 0 modules --json -
out_has '"module": "srm"'
out_has '"choices": ['

usage '--broadcast: there is no "se", only none, cb, cb_s' train data --broadcast se
run 2 modules cb
err_has 'too many'
finish
