#!/bin/bash
# Tests the pages of `attscope serve` in a headless Chromium, by serve.py.
. "$(dirname "$0")/lib.sh"
if "$ATTSCOPE" serve /nowhere 2>&1 | grep -qF 'this build of attscope has no web server'; then
    echo 'skipped: this build has no libmicrohttpd'
    exit 77
fi
python3 -B "$here/serve.py" "$ATTSCOPE" "$work"
