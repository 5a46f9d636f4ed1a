#!/bin/bash
# The instrument collapse: while training, in single and in double precision, in the records, and in the report.
. "$(dirname "$0")/lib.sh"
needs python3
idx data

# A training run that measures every update ends with the same weights.
train 0 plain --epochs 1
train 0 watched --epochs 1 --measure collapse --measure-every 1
cmp out/plain/last.safetensors out/watched/last.safetensors || fail 'the instrument changes the weights'
grep -q '"statistic":"rate attention"' out/watched/metrics.jsonl || fail 'a training records no rate'

run 0 measure out/plain data --with collapse:norms=all --f64
for name in 'composite attention ' 'composite skip ' 'frobenius mlp ' 'frobenius both_no_norm ' 'rate attention '; do
    out_has "$name"
done
out_has '3e-15, that is rounding'
grep -q '1e-6, that is rounding' stdout && fail 'the scale of f32 beside figures in f64'
for field in '"precision":"f64"' '"backend":"f64"' '"statistic":"composite mlp_no_norm"'; do
    grep -q "$field" out/plain/measure.jsonl || fail "measure.jsonl lacks $field"
done
run 0 report out/plain -o page.html
grep -q 'composite attention' page.html || fail 'the report lacks the residuals'

# In single precision, f64 agrees where the residual is far from rounding: the network as it is.
run 0 measure out/plain data --with collapse --f64 --json wide.json
grep -q '3e-15, that is rounding' wide.json || fail 'the JSON lacks the scale of f64'
run 0 measure out/plain data --with collapse --json narrow.json
grep -q '1e-6, that is rounding' narrow.json || fail 'the JSON lacks the scale of f32'
python3 - wide.json narrow.json <<'END' || fail 'single and double precision differ'
import json, sys
wide, narrow = ([m for m in json.load(open(name))["measurements"] if m["statistic"] == "composite both"]
                for name in sys.argv[1:])
sys.exit(not (len(wide) == len(narrow) > 2 and
              all(abs(a["mean"] / b["mean"] - 1) < 1e-4 for a, b in zip(wide, narrow))))
END

usage 'measure: --f64 and --amp exclude each other' measure out/plain data --with collapse --f64 --amp
usage 'validate: --f64 and --amp exclude each other' validate data --checkpoint out/plain --f64 --amp
run 0 validate data --checkpoint out/plain --f64 --fgsm 0.1
out_has 'FGSM 0.1'
usage 'measure: maps are recorded in single precision; leave out --f64, or measure maps on their own' \
    measure out/plain data --with collapse --f64 --maps 1
run 2 measure out/plain data --with collapse:norms=of
err_has 'instrument collapse: norms cannot be "of"; did you mean "o'
finish
