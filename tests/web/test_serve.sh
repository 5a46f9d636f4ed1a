#!/bin/bash
# Tests the pages of `attscope serve` in a headless Chromium, by serve.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/serve.py" "$ATTSCOPE" "$work"
