#!/bin/bash
# Tests the page Ablate of `attscope serve` in a headless Chromium, by ablate.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/ablate.py" "$ATTSCOPE" "$work"
