#!/bin/bash
# Tests the report of generated runs in a headless Chromium, by page.py.
. "$(dirname "$0")/lib.sh"
if [ -z "${MAKE_RUNS:-}" ]; then
    echo 'skipped: MAKE_RUNS does not name the program that generates runs'
    exit 77
fi
"$MAKE_RUNS" "$work" || exit 1
python3 -B "$here/page.py" "$ATTSCOPE" "$work"
