#!/bin/bash
# Tests the report's sections on experiments in a headless Chromium, by experiments.py.
. "$(dirname "$0")/lib.sh"
python3 -B "$here/experiments.py" "$ATTSCOPE" "$work"
