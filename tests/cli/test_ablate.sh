#!/bin/bash
# attscope ablate: its table, its JSON, and what it refuses.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
idx data
train 0 plain --epochs 2

run 0 ablate out/plain/last.safetensors data --split test --heads all --branches mlp --json found.json --npz found.npz
out_has 'rho'
grep -qE '^  interval +mean\(d\)' stdout || fail 'no formula of the intervals'
grep -qE '^unchanged: accuracy [0-9.]+ %, loss [0-9.]+, p_class [0-9.]+; 32 images$' stdout || fail 'no unchanged network'
heads=$(grep -cE '^  blocks\.[0-9]+\.attn:[0-9]+ ' stdout)
branches=$(grep -cE '^  blocks\.[0-9]+\.add2 ' stdout)
[ "$heads" -gt 1 ] && [ "$branches" -gt 0 ] || fail "$heads heads and $branches branches"
parts=$((heads + branches))
grep -q "^$((32 * (1 + parts))) runs of an image in " stderr || fail "the number of runs: $(cat stderr)"
[ "$(grep -c '"rank": ' found.json)" = $parts ] || fail 'the JSON has another number of parts'
[ "$(head -c 2 found.npz)" = PK ] || fail 'the .npz file is no zip archive'
# The table has the order of the losses.
grep -E '^  blocks' stdout | awk '{ print $2 }' >losses
sort -gr losses | cmp -s - losses || fail "the losses are not sorted: $(tr '\n' ' ' <losses)"
run 0 ablate out/plain/last.safetensors data --split test --heads all --rows 1 --brief
[ "$(grep -cE '^  blocks' stdout)" = 1 ] || fail '--rows 1 shows other than one part'
out_has "... and $((heads - 1)) more"
! grep -q 'mean(d)' stdout || fail '--brief shows formulas'
# The unchanged network is what validate evaluates.
run 0 ablate out/plain data --split test --heads 'blocks.0:0' --json -
grep -o '"accuracy": [0-9.]*' stdout | head -1 | sed 's/.*: //' >own
run 0 validate data --split test --checkpoint out/plain --json -
grep -o '"top1": [0-9.]*' stdout | sed 's/.*: //' | cmp -s - own || fail "accuracy $(cat own) differs from validate: $(cat stdout)"
# Greedy steps: each with all earlier ones.
run 0 ablate out/plain data --split test --greedy --brief
out_has 'removed so far'
[ "$(grep -cE '^  blocks' stdout)" = "$heads" ] || fail 'greedy steps are missing'
run 0 ablate out/plain data --split test --greedy --bound 100 --brief

usage 'ablate needs CHECKPOINT and DATA; see attscope ablate --help' ablate out/plain
usage '--bound requires --greedy' ablate out/plain data --bound 90
usage 'ablate: "more" is one operand too many; see attscope ablate --help' ablate out/plain data more
refused() { # MESSAGE ARGUMENT...
    local message=$1
    shift
    run 2 ablate out/plain data --split test "$@"
    err_has "attscope: $message"
    out_is </dev/null
}
refused 'vit_tiny_patch16_224 has no attention layer "blocks.0.atn"; did you mean blocks.0.attn?' --heads blocks.0.atn
refused 'heads "9" of blocks.0.attn: expected numbers and ranges from 0 to' --heads blocks.0:9
refused 'vit_tiny_patch16_224 has no residual branch "blocks.0.add7"; did you mean blocks.0.add1?' --branches blocks.0.add7
refused 'vit_tiny_patch16_224 has no register tokens' --tokens registers
refused 'tokens "x": expected all, class, registers, or numbers and ranges from 0 to' --tokens x
run 2 ablate out/plain data --npz same --json same
run 1 ablate out/plain data --split test --heads blocks.0:0 --npz nowhere/found.npz
err_has nowhere
finish
