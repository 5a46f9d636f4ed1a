#!/bin/sh
# The attributes of operations have no padding bytes: nodes are compared byte by byte.
set -eu
command -v clang >/dev/null || { echo 'skipped: only clang reports padding'; exit 77; }
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source/src"
for header in engine/ops/*.h; do
    echo "#include \"$header\""
done >"$work/sizes.c"
# The compiler lays out a struct, and reports its padding, when its size is needed.
sed -n 's/^.* \(att_[a-z0-9_]*_attrs\);$/static char size_of_\1[sizeof(\1)];/p' engine/ops/*.h >>"$work/sizes.c"
count=$(grep -c sizeof "$work/sizes.c")
[ "$count" -gt 20 ] || { echo "FAILED: found only $count kinds of attributes"; exit 1; }
clang -std=c17 -D_DEFAULT_SOURCE -fsyntax-only -Wpadded -I../include -I. "$work/sizes.c" 2>"$work/report"
if grep -E 'engine/ops/[a-z0-9_]*\.h:.*Wpadded' "$work/report"; then
    echo 'FAILED: these attributes have padding bytes'
    exit 1
fi
