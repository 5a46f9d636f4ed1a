#!/bin/bash
# Tests the charts of training runs and of samples in a headless Chromium, by charts.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/charts.py" "$ATTSCOPE" "$work"
