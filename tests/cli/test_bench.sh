#!/bin/bash
# attscope bench with a small network: tables, JSON with timm's names, a profile, a filter without matches, memory by
# batch size.
. "$(dirname "$0")/lib.sh"

small='--model vit_tiny_patch16_224 --img-size 32 --depth 1 --num-classes 10 -b 4 --repeats 2 --warmup 1 --threads 2'
# shellcheck disable=SC2086
run 0 bench $small --json bench.json --profile
row='+4 +[0-9.]+ +[0-9.]+ +[0-9.]+ % +[0-9.]+ +[0-9]+ MiB$'
grep -qE "^vit_tiny_patch16_224/infer $row" stdout || fail 'no row for inference'
grep -qE "^vit_tiny_patch16_224/train $row" stdout || fail 'no row for training'
grep -qE '^  linear +onednn +[0-9]+ +[0-9.]+ +[0-9.]+ % +[0-9.]+ (flops|bytes) +[0-9.]+$' stdout || fail 'no profile'
grep -qE '^  together +[0-9.]+ 100.0 % +[0-9.]+ +[0-9.]+$' stdout || fail 'no sum of the profile'
out_has 'share = images/s x operations per image / GEMM rate'
out_has 'there, not an upper bound: networks can exceed 100 %'
has_keys() { # FILE KEY...
    local file=$1
    shift
    for key in "$@"; do
        grep -q "\"$key\"" "$file" || fail "$file has no $key: $command_line"
    done
}
has_keys bench.json infer_samples_per_sec infer_step_time infer_batch_size infer_gmacs train_samples_per_sec \
    gemm_gflops gemm_share memory_gbytes_per_sec peak_bytes profile floor_seconds bytes
only_unsanitized 'more benchmarks take long under sanitizers; bench/test_bench runs the same functions'
# The time in kernels is at most that of two threads over the whole run, except for rounding.
awk -F '[:,]' '/"timed_seconds"/ { limit = 2 * $2; sum = 0; cases++ }
    /"seconds"/ { sum += $2 }
    /^ *\]/ { if (!(sum > 0 && sum <= limit * 1.001)) bad = 1 }
    END { exit bad || cases != 2 }' bench.json || fail "the profile's seconds are not part of the runs'"

# A run has 128 images only if both sides are below 64 pixels.
oblong='--model vit_tiny_patch16_224 --patch-size 8 --depth 1 --embed-dim 16 --num-heads 1 --repeats 1 --warmup 1 --threads 2'
for case in '8 56:128' '8 64:32' '64 8:32'; do
    # shellcheck disable=SC2086
    run 0 bench $oblong --img-size ${case%:*} --filter '*/infer' --json oblong.json
    grep -q "\"infer_batch_size\": ${case#*:}," oblong.json || fail "the batch size of ${case%:*} images is not ${case#*:}"
done

# Sweeps have every requested point, in the table and as JSON.
count() { # PATTERN FILE
    grep -cE "$1" "$2" || true
}
run 0 bench tokens --points 8,16,33 --num-heads 2 --embed-dim 16 --repeats 1 --warmup 1 --threads 2 --json sweep.json
[ "$(count '^ +(8|16|33) +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ %' stdout)" -eq 12 ] || fail "tokens: $(cat stdout)"
[ "$(count '"beside_neighbours"' sweep.json)" -eq 4 ] || fail 'tokens: not exactly the points between two others are compared'
has_keys sweep.json tokens pass heads head_width image_time gflops_per_sec gemm_gflops gemm_share peak_bytes
for pass in forward forward+stats forward+backward forward+backward+stats; do
    grep -qF "\"pass\": \"$pass\"" sweep.json || fail "tokens: no pass $pass"
done
# shellcheck disable=SC2086
run 0 bench batch $small --points 1,2,3 --json sweep.json
[ "$(count '^ +[123] +[0-9.]+ +[0-9.]+' stdout)" -eq 6 ] || fail "batch: $(cat stdout)"
has_keys sweep.json case batch_size step_time samples_per_sec
# shellcheck disable=SC2086
run 0 bench threads $small --points 1,2,3 --filter '*/infer' --json sweep.json
[ "$(count '^ +[123] +[0-9.]+ +[0-9.]+' stdout)" -eq 3 ] || fail "threads: $(cat stdout)"
has_keys sweep.json threads samples_per_sec speedup one_image_time one_image_ratio
[ "$(count '"one_image_ratio": 1(\.0)?,?$' sweep.json)" -ge 1 ] || fail 'threads: the ratio of the first row is not 1'
# shellcheck disable=SC2086
run 0 bench instruments $small --json sweep.json
[ "$(count '^ +[/a-z0-9_]* +4 (attention|all) +[0-9.]+ +[+-][0-9.]+ %$' stdout)" -eq 4 ] || fail "instruments: $(cat stdout)"
[ "$(count '"seconds_over_alone"' sweep.json)" -eq 6 ] || fail 'instruments: not a figure for each'
has_keys sweep.json case precision observed_by images_per_second
# Instruments of attention between tokens find nothing in a network without it.
run 0 bench instruments --model resnet20 --modules se -b 2 --img-size 8 --repeats 1 --warmup 1 --threads 2 --filter '*/infer'
[ "$(count '^ +[/a-z0-9_]* +2 (alone|all) +[0-9.]+( +[+-][0-9.]+ %)?$' stdout)" -eq 2 ] || fail "instruments: $(cat stdout)"

# The cost of all modules, or of the requested one. Parameters of SE on three blocks of 64, 128 and 256 channels: C (C /
# 16) twice, and the biases.
tiny='--model resnet29 --modules se -b 2 --repeats 2 --warmup 1 --threads 2'
# shellcheck disable=SC2086
run 0 bench modules $tiny --img-size 8 --json sweep.json
[ "$(count '^se/(train|infer) +[0-9.]+ +[+-][0-9.]+ % +[+-][0-9.]+ to +[+-][0-9.]+ +[+][0-9]+ +[0-9]+ MiB$' stdout)" -eq 2 ] || fail "modules: $(cat stdout)"
has_keys sweep.json case model attn precision batch_size samples_per_sec price price_least price_most extra_parameters peak_bytes
out_has 'price = time of a batch with the module'
# shellcheck disable=SC2086
run 0 bench modules ${tiny/se/step} --adaptor iebn --img-size 8 --filter '*/infer'
[ "$(count '^step:adaptor=iebn/infer ' stdout)" -eq 1 ] || fail "modules: $(cat stdout)"
run 0 bench modules --model resnet20 -b 2 --img-size 8 --repeats 1 --warmup 1 --threads 2 --filter '*a/infer'
[ "$(count '^[a-z]+/' stdout)" -eq 2 ] && [ "$(count '^(eca|fca)/infer ' stdout)" -eq 2 ] || fail "modules: $(cat stdout)"
# shellcheck disable=SC2086
run 0 bench modules --model resnet20 -b 2 --img-size 8 --repeats 1 --warmup 1 --threads 2 --filter 'none/infer'
[ "$(count '^none/infer +[0-9.]+ +[+-][0-9.]+ % .* [+]0 +[0-9]+ MiB$' stdout)" -eq 1 ] || fail "modules: $(cat stdout)"

# Every rewriting that changes the plan, in both precisions.
# shellcheck disable=SC2086
tiny=${tiny/repeats 2/repeats 1}
run 0 bench patterns ${tiny/se/step} --img-size 8 --json sweep.json
row='2 +[0-9.]+ +[+-][0-9.]+ % +[+-][0-9.]+ to +[+-][0-9.]+ +[0-9]+ +[+-][0-9.]+ %$'
for rewriting in none affine_norm mean_of_affine split_gradient pooled_gradient; do
    [ "$(count "^$rewriting/resnet29[+]step/(f32|bf16) +$row" stdout)" -eq 2 ] || fail "patterns: $(cat stdout)"
done
has_keys sweep.json case pattern model attn precision batch_size turns seconds gain gain_least gain_most kept_gain
# shellcheck disable=SC2086
usage '--filter nothing matches no case; the first is affine_norm/resnet29/f32' bench patterns $tiny --filter nothing

# The stages of a start take no more time than the first logits. The network is trained briefly on noise.
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment short
picture=$here/../goldens/images/422.jpg
run 0 bench start out/short/last.safetensors "$picture" --repeats 3 --warmup 1 --threads 2 --json start.json
grep -qE '^ +[0-9.]+  from start to first logits$' stdout || fail "start: $(cat stdout)"
has_keys start.json process context checkpoint image network first_logits second_logits
[ "$(count '^the checkpoint: vit_tiny' stderr)" -eq 1 ] || fail "start: notes are printed more than once: $(cat stderr)"
run 1 bench start missing.safetensors "$picture"
err_has 'missing.safetensors'
run 0 bench data data --filter 'data/[de]*' --img-size 8 --repeats 1 --warmup 1 --threads 1 --json data.json
has_keys data.json samples_per_sec workers img_size

run 0 bench kernels --filter 'layer_norm*/demo' --repeats 1 --json kernels.json
[ "$(count '^\* layer_norm(_grad)?/demo +simd +' stdout)" -eq 2 ] || fail "kernels: $(cat stdout)"
has_keys kernels.json op case kernel tier taken seconds flops bytes

# shellcheck disable=SC2086
usage "--filter nothing matches no case; the first is vit_tiny_patch16_224/infer" bench $small --filter nothing
usage 'bench cannot measure "token"; did you mean tokens?' bench token
usage 'bench start needs CHECKPOINT IMAGE; see attscope bench --help' bench start one
usage 'bench tokens: "x" is one operand too many; see attscope bench --help' bench tokens x
usage '--points 4,2: expected up to 64 ascending numbers from 1 to 65536, separated by commas' \
    bench batch --points 4,2
# shellcheck disable=SC2086
run 2 bench $small --num-heads 5
err_has 'attscope: '

# One process: its speed, and how to start several. Several: the formula gives the bytes that were sent.
tiny='bench processes --model vit_tiny_patch16_224 --img-size 32 --depth 1 --num-classes 10 -b 4 --repeats 2 --threads 1'
# shellcheck disable=SC2086
run 0 $tiny --mpi none --json one.json
out_has '1 process, 1 thread together, 1 lane, f32'
out_has 'mpirun -n 2 --bind-to none attscope bench processes'
grep -q '"processes": 1,' one.json || fail "the JSON of one process: $(cat one.json)"
# shellcheck disable=SC2086
usage '--mpi: there is no "openmp"; did you mean openmpi?' $tiny --mpi openmp
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ATTSCOPE_PLUGINS=$ATT_BUILD/attscope-plugins
for mpi in openmpi mpich; do
    [ -e "$ATTSCOPE_PLUGINS/$mpi.so" ] && command -v mpirun.$mpi >/dev/null || {
        echo "skipped: bench processes with $mpi, which is not installed"
        continue
    }
    [ $mpi = mpich ] && options= || options='--oversubscribe --bind-to none'
    # shellcheck disable=SC2086
    timeout 300 mpirun.$mpi $options -n 2 "$ATTSCOPE" $tiny --json two.json >stdout 2>stderr ||
        fail "bench processes with $mpi: $(cat stdout stderr)"
    command_line="bench processes with $mpi"
    [ "$(count '^2 processes connected by [A-Za-z ]+:? ?v?[0-9.]+, 2 threads together, 2 lanes, f32$' stdout)" -eq 1 ] ||
        fail "$mpi: $(cat stdout)"
    [ "$(count '^ +[01] +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  [^ ]+$' stdout)" -eq 2 ] ||
        fail "$mpi: the ranks: $(cat stdout)"
    has_keys two.json samples_per_sec gradient_bytes sum_seconds sum_wait_seconds wait_seconds overlap sum_alone_seconds \
        slowest host
    # The memory of gradients is aligned, so it may be a little more than what is sent. The first match is of all ranks.
    awk -F '[:,]' '/"expected_bytes"/ { expected = $2 } /"bytes_sent"/ && !sent { sent = $2 }
        END { exit !(sent > 0 && sent <= expected && sent > 0.99 * expected) }' two.json ||
        fail "$mpi: other bytes than the formula: $(cat two.json)"
done
unset ATTSCOPE_PLUGINS
# The memory of a training run does not grow with the batch size, except for the images: 64 x 64 x 3 floats each. Measured:
# 0.1 MiB more for 256 images than for 32. The smallest activation (65 tokens of 192 floats), kept for every image,
# would take 10.7 MiB.
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
