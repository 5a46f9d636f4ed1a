#!/bin/bash
# Tests the page of `attscope ode` in a headless Chromium, by ode.py.
. "$(dirname "$0")/lib.sh"
python3 -B "$here/ode.py" "$ATTSCOPE" "$work"
