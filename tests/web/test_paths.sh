#!/bin/bash
# Tests the report's section on paths in a headless Chromium, by paths.py.
. "$(dirname "$0")/lib.sh"
python3 -B "$here/paths.py" "$ATTSCOPE" "$work"
