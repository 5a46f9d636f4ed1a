#!/bin/sh
# Scripts of tools/ print what they do with --help, and refuse an option that they do not have before they do anything.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
for script in $(grep -lE '^#!.*/(ba)?sh|^#!.* bash' tools/* tools/goldens/* 2>/dev/null) \
    tools/build-wheel tools/python-cost tools/render-notebooks; do
    "$script" --help | grep -q "^$script" || { echo "FAILED: $script --help"; failed=1; }
    "$script" --nosuch >/dev/null 2>&1
    [ $? -eq 2 ] || { echo "FAILED: $script --nosuch"; failed=1; }
done
tools/install-packages --help | grep -q '^  abi  ' || { echo "FAILED: sets of install-packages"; failed=1; }
exit $failed
