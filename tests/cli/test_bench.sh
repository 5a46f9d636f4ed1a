#!/bin/bash
# A small network's benchmark: rows, JSON under timm's names, a profile, a filter that fits nothing, memory by batch.
. "$(dirname "$0")/lib.sh"

small='--model vit_tiny_patch16_224 --img-size 32 --depth 1 --num-classes 10 -b 4 --repeats 2 --warmup 1 --threads 2'
# shellcheck disable=SC2086
run 0 bench $small --json bench.json --profile
grep -qE '^vit_tiny_patch16_224/infer +[0-9.]+ +[0-9.]+ +[0-9.]+ % +[0-9]+ MiB$' stdout || fail 'no row for inference'
grep -qE '^vit_tiny_patch16_224/train +[0-9.]+ +[0-9.]+ +[0-9.]+ % +[0-9]+ MiB$' stdout || fail 'no row for training'
grep -qE '^  linear +onednn +[0-9]+ calls +[0-9.]+ s +[0-9.]+ % +[0-9.]+ GFLOP/s$' stdout || fail 'no profile'
out_has 'share = images/s x operations per image / GEMM rate'
for key in infer_samples_per_sec infer_step_time infer_batch_size infer_gmacs train_samples_per_sec gemm_share peak_bytes profile; do
    grep -q "\"$key\"" bench.json || fail "bench.json has no $key"
done
# shellcheck disable=SC2086
usage "--filter nothing fits no case; the first is called vit_tiny_patch16_224/infer" bench $small --filter nothing
# shellcheck disable=SC2086
run 2 bench $small --num-heads 5
err_has 'attscope: '
# Training's memory does not grow with the batch, the images' own bytes apart: 64 x 64 x 3 floats each. Measured: 0.1 MiB
# more at 256 images than at 32, 3.7 MiB under the address sanitizer of clang 19 (7.7 MiB where that may keep what was
# freed); one activation of the smallest kind (65 tokens of 192 floats) kept for every image would be 10.7 MiB.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
peak() { # BATCH
    run 0 bench --model vit_tiny_patch16_224 --img-size 64 --patch-size 8 --depth 2 --num-classes 10 --filter '*/train' \
        --repeats 1 --warmup 1 --threads 2 -b "$1" --json peak.json
    bytes=$(sed -n 's/.*"peak_bytes": *\([0-9]*\).*/\1/p' peak.json)
}
peak 32
few=${bytes:-0}
peak 256
more=$((${bytes:-0} - few - 224 * 64 * 64 * 3 * 4))
if [ "$few" -eq 0 ] || [ -z "$bytes" ]; then
    fail 'bench gives no peak_bytes'
elif [ $more -gt $((5 << 20)) ] || [ $more -lt $((-5 << 20)) ]; then
    fail "256 images take $more bytes more than 32, beside their own"
fi
finish
