#!/bin/bash
# Tests class maps on the page Explore and in the report in a headless Chromium, by classes.py.
. "$(dirname "$0")/lib.sh"
needs_server
python3 -B "$here/classes.py" "$ATTSCOPE" "$work"
