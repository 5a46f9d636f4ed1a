#!/bin/bash
# Tests the page Means of `attscope serve` in a headless Chromium, by means.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/means.py" "$ATTSCOPE" "$work"
