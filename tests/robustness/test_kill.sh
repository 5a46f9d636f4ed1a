#!/bin/bash
# A training run that is killed at random moments, ATT_KILLS times (8), and resumed from its checkpoint ends with the weights
# and logs of an undisturbed one; at every moment its files can be read.
. "$(dirname "$0")/../cli/lib.sh"
too_long_sanitized
kills=${ATT_KILLS:-8}
idx data

epochs=$(sanitized && echo 15 || echo 40)
# shellcheck disable=SC2086
train() { "$ATTSCOPE" train "$@" >stdout 2>stderr; }
start=(data $network $recipe --model-ema --epochs $epochs --recovery-interval 3 --log-interval 2 --output out)
began=$(date +%s%N)
train "${start[@]}" --experiment whole || { cat stderr; exit 1; }
took=$((($(date +%s%N) - began) / 1000000))

killed=0 finished=0 anew=0
while [ $killed -lt "$kills" ]; do
    if [ -e out/cut/last.safetensors ]; then
        again=(--resume out/cut/last.safetensors)
    else
        rm -rf out/cut
        again=("${start[@]}" --experiment cut)
        anew=$((anew + 1))
    fi
    "$ATTSCOPE" train "${again[@]}" >stdout 2>stderr &
    child=$!
    # Mostly within the time of a whole training divided by the number of kills, sometimes much later.
    sleep "$(awk -v took="$took" -v kills="$kills" -v seed=$RANDOM \
        'BEGIN { srand(seed); printf "%.3f", took / 1000 * rand() * (rand() < 0.1 ? 1 : 3 / (3 + kills)) }')"
    kill -KILL $child 2>/dev/null
    status=0
    wait $child 2>/dev/null || status=$?
    if [ $status -eq 137 ]; then
        killed=$((killed + 1))
    elif [ $status -eq 0 ]; then
        finished=$((finished + 1))
        for file in last.safetensors model_best.safetensors summary.csv timm/model.safetensors timm/config.json; do
            cmp out/cut/$file out/whole/$file || fail "after $killed kills: $file differs"
        done
        rm -rf out/cut
    else
        fail "after $killed kills: exit status $status: $(cat stderr)"
        break
    fi
    for file in out/cut/*.safetensors out/cut/timm/*.safetensors; do
        [ ! -e "$file" ] || "$ATTSCOPE" inspect "$file" >stdout 2>stderr || fail "after $killed kills: $(cat stderr)"
    done
done
if [ -e out/cut/last.safetensors ]; then
    train --resume out/cut/last.safetensors
else
    rm -rf out/cut
    train "${start[@]}" --experiment cut
fi || fail "the last training: $(cat stderr)"
for file in last.safetensors model_best.safetensors summary.csv timm/model.safetensors timm/config.json; do
    cmp out/cut/$file out/whole/$file || fail "after $killed kills: $file differs"
done
# Prints the log without times (seconds, rates, shares of waiting).
timeless() { sed -E 's/"(seconds|images_per_second|wait_share)":[^,}]*,?//g' "$1"; }
cmp <(timeless out/cut/metrics.jsonl) <(timeless out/whole/metrics.jsonl) || fail 'metrics.jsonl differs'
ls out/cut >names
ls out/whole | diff names - || fail 'the folders have different files (< killed)'
echo "$killed kills, $((finished + 1)) training runs finished, $anew begun anew"
finish
