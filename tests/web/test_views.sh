#!/bin/bash
# Tests the four views of one checkpoint in a headless Chromium, by views.py.
. "$(dirname "$0")/lib.sh"
python3 -B "$here/views.py" "$ATTSCOPE" "$work"
