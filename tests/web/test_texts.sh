#!/bin/bash
# Tests the pages of `attscope serve` with networks for texts in a headless Chromium, by texts.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/texts.py" "$ATTSCOPE" "$here/../goldens" "$work"
