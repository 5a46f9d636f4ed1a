#!/bin/bash
# examples/task.c: the network learns to predict numbers, its checkpoint records the task, and the command, which lacks
# the task, names it in its message.
. "$(dirname "$0")/../cli/lib.sh"
attscope=$ATTSCOPE image=$here/../goldens/images/grey.png
ATTSCOPE=$ATT_BUILD/examples/task

# Writes a data set of 8 x 8 images. The class is the brightness of the image.
idx_pair() { # PREFIX COUNT
    awk -v count="$2" 'BEGIN {
        printf "\\0\\0\\10\\3\\0\\0\\0\\%o\\0\\0\\0\\10\\0\\0\\0\\10", count
        for (i = 0; i < count; i++)
            for (p = 0; p < 64; p++)
                printf "\\%o", 60 * (i % 4) + (31 * i + 17 * p) % 50
    }' | unescape >"$1-images-idx3-ubyte"
    awk -v count="$2" 'BEGIN {
        printf "\\0\\0\\10\\1\\0\\0\\0\\%o", count
        for (i = 0; i < count; i++)
            printf "\\%o", i % 4
    }' | unescape >"$1-labels-idx1-ubyte"
}
idx data
run 0 data out "$image"
# The measured error is 0.05. Predicting 1.5 for every image gives an error of 1.
awk 'NR == 1 { exit !($1 < 0.5) }' stdout || fail "it did not learn: $(cat stdout)"
sed -n 2p stdout | grep -q '^-*[0-9]*\.[0-9]$' || fail "no prediction for the image: $(cat stdout)"
run 2 data
ATTSCOPE=$attscope
run 1 validate data --checkpoint out
err_has 'its network has the task "regression", which is neither built in nor registered'
finish
