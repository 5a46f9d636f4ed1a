#!/bin/bash
# Tests the report of generated runs in a headless Chromium, by page.py.
. "$(dirname "$0")/lib.sh"
[ -n "${MAKE_RUNS:-}" ] || skip 'MAKE_RUNS does not name the program that generates runs'
"$MAKE_RUNS" "$work" || exit 1
python3 -B "$here/page.py" "$ATTSCOPE" "$work"
