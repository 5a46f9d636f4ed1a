#!/bin/bash
# Tests sorting and filtering of the tables of runs in a headless Chromium, by rows.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/rows.py" "$ATTSCOPE" "$work"
