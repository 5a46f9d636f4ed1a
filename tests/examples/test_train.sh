#!/bin/bash
# examples/train.c: the network learns to classify the validation images, and the command uses its checkpoint unchanged.
. "$(dirname "$0")/../cli/lib.sh"
attscope=$ATTSCOPE
ATTSCOPE=$ATT_BUILD/examples/train
idx data
run 0 data out
awk '{ exit !($1 >= 90) }' stdout || fail "it did not learn (chance is 25 %): $(cat stdout)"
accuracy=$(cut -d' ' -f1 stdout)
ATTSCOPE=$attscope
run 0 validate data --checkpoint out
out_has "top-1 $accuracy"
ATTSCOPE=$ATT_BUILD/examples/train
run 1 nowhere out2
err_has nowhere
[ ! -e out2 ] || fail 'a refused training leaves a folder'
run 2 data
finish
