#!/bin/bash
# train --alert: a healthy training raises nothing, one with damaged weights says what is wrong, where and when.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
needs python3
idx data

# A healthy training: the same weights, no alerts, and figures of what the rules read.
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 8 --output out --experiment plain
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 8 --output out --experiment watched --alert --measure-every 2
cmp out/plain/last.safetensors out/watched/last.safetensors || fail 'alerts change the weights'
! grep -q '"event":"alert"' out/watched/metrics.jsonl || fail "a healthy training: $(grep alert out/watched/metrics.jsonl)"
! grep -q 'warning: ' stderr || fail "a healthy training: $(cat stderr)"
for rule in 'alert: entropy collapse (Zhai et al., ICML 2023; threshold ours): ' 'alert: rank collapse (Dong' \
    'alert: stiffness spike (zeta >= max(mu (1 + M1), M2)' 'alert: dead head ('; do err_has "$rule"; done
grep -qE 'the instruments took [0-9.e+-]+ % of the time: [0-9]+ of 47 updates observed' stderr || fail "no share: $(cat stderr)"
grep -qxF 'alert: true' out/watched/args.yaml || fail 'args.yaml has no alert'
found=$(grep -o '"instrument":"[a-z_]*"' out/watched/metrics.jsonl | sort -u | cut -d'"' -f4 | tr '\n' ' ')
[ "$found" = 'entropy jacobian nsi residual ' ] || fail "instruments of alerts: $found"

# Named instruments come in addition. A network without attention has the rules that apply to it.
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment named --alert --measure nsi,distance --measure-every 2
found=$(grep -o '"instrument":"[a-z_]*"' out/named/metrics.jsonl | sort -u | cut -d'"' -f4 | tr '\n' ' ')
[ "$found" = 'distance entropy jacobian nsi residual ' ] || fail "named instruments and alerts: $found"
# shellcheck disable=SC2086
run 0 train data --model resnet18 --img-size 32 --in-chans 1 --num-classes 4 $recipe --epochs 1 --output out \
    --experiment convolutions --alert

# Weights of queries and keys that are far too large: sharp attention.
cat >scale.py <<'PYTHON'
import json, struct, sys
source, target, name, factor = sys.argv[1:]
data = bytearray(open(source, "rb").read())
length, = struct.unpack("<Q", data[:8])
begin, end = json.loads(data[8:8 + length])[name]["data_offsets"]
form = "<%df" % ((end - begin) // 4)
begin, end = begin + 8 + length, end + 8 + length
data[begin:end] = struct.pack(form, *(float(factor) * value for value in struct.unpack(form, data[begin:end])))
open(target, "wb").write(data)
PYTHON
python3 scale.py out/plain/last.safetensors sharp.safetensors blocks.0.attn.qkv.weight 1000
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 2 --initial-checkpoint sharp.safetensors --output out --experiment sharp \
    --alert --measure-every 1 --lr 1e-9
err_has 'warning: entropy collapse in blocks.0.attn at update 1: mean entropy '
err_has 'nats, '
err_has ' (alert below 10 %); try a smaller --lr, more --warmup-epochs, --clip-grad 1, or a network that normalises'
err_has 'warning: dead head in blocks.0.attn, head 0 at update 1: 1 - sum a^2 is '
grep -qE '"event":"alert","epoch":0,"step":1,.*"set":"train","rule":"dead head","node":"blocks.0.attn",.*"threshold":0.01,"head":0}' \
    out/sharp/metrics.jsonl || fail "no event: $(grep alert out/sharp/metrics.jsonl)"
[ "$(grep -c '"rule":"entropy collapse"' out/sharp/metrics.jsonl)" = 1 ] || fail 'an alert is repeated'
run 0 train --resume out/sharp/checkpoint-0.safetensors
! grep -q 'warning: entropy collapse' stderr || fail "a resume repeats an alert: $(cat stderr)"
[ "$(grep -c '"rule":"entropy collapse"' out/sharp/metrics.jsonl)" = 1 ] || fail 'a resume repeats an alert'
run 0 report out/sharp -o page.html
grep -qF 'dead head in blocks.0.attn, head 0 at update 1' page.html || fail 'the report lacks the alerts'

# Equal tokens: positions, patches and the class token are 0.
for name in pos_embed patch_embed.proj.weight patch_embed.proj.bias cls_token; do
    python3 scale.py "${same:-out/plain/last.safetensors}" "same-$name" $name 0
    same=same-$name
done
mv "$same" same.safetensors
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --initial-checkpoint same.safetensors --output out --experiment same \
    --alert --lr 1e-9
grep -qE 'warning: rank collapse in blocks.0.add[12] at update 1: \|res\(X\)\|_F / \|X\|_F is ' stderr ||
    fail "no rank collapse: $(cat stderr)"
finish
