#!/bin/bash
# The example train learns to name images that it was not trained on, and attscope takes its checkpoint as it is.
. "$(dirname "$0")/../cli/lib.sh"
attscope=$ATTSCOPE
ATTSCOPE=$ATT_BUILD/examples/train
idx data
run 0 data out
awk '{ exit !($1 >= 90) }' stdout || fail "it did not learn (guessing names 25 %): $(cat stdout)"
said=$(cut -d' ' -f1 stdout)
ATTSCOPE=$attscope
run 0 validate data --checkpoint out
out_has "top-1 $said"
ATTSCOPE=$ATT_BUILD/examples/train
run 1 nowhere out2
err_has nowhere
[ ! -e out2 ] || fail 'a refused training leaves a folder'
run 2 data
finish
