#!/bin/bash
# What the examples print that register a module, an instrument and a task.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
goldens=$(cd "$(dirname "$0")/../goldens" && pwd)
failures=0
cd "$work" || exit 1

# example NAME ARGUMENT...: its output is in the file `out`.
example() {
    name=$1
    shift
    "$ATT_BUILD/examples/$name" "$@" >out 2>err && [ ! -s err ] || {
        echo "FAILED: $name: exit status $?, messages:"
        cat err
        failures=$((failures + 1))
    }
}
# out_has PATTERN: a line of the output fits the basic regular expression.
out_has() {
    grep -q -- "$1" out || {
        echo "FAILED: $name: no line '$1' in:"
        cat out
        failures=$((failures + 1))
    }
}

example module
out_has '^resnet20: stretch2d@after_branch:layer3:all$'
out_has '^vit_tiny_patch16_224: stretch:init=0.5@after_attn:0-5+cb$'
out_has '^elsewhere: .*: its network has the module "stretch", which is neither built in nor registered'
example instrument deit_tiny_patch16_224 "$goldens/images/rgb.png"
out_has '^centre   blocks\.0\.add1    length  * [0-9.]* 1$'
out_has '^centre   blocks\.11\.add2   length  * [0-9.]* 1$'
out_has '^entropy  blocks\.11\.attn   mean '
[ "$(grep -c '^centre ' out)" -eq 24 ] || { echo 'FAILED: instrument: not 24 additions'; failures=$((failures + 1)); }
example task
out_has '^mean error after 30 epochs: 0\.[01]'
out_has '^an image like those of 2: \(1\.[89]\|2\.[012]\)$'
[ -z "$(find . -name 'task_example*' -o -name '*.safetensors')" ] || {
    echo 'FAILED: examples leave files'
    failures=$((failures + 1))
}
exit $((failures > 0))
