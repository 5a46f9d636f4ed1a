#!/bin/sh
# tools/check-writes accepts this project's places and names a new one.
set -eu
project=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$project/src" "$project/lab" "$project/cli" "$tree"
"$project/tools/check-writes" "$tree"
for line in 'FILE *f = fopen(path, "w");' 'int f = open(path, O_WRONLY);' 'f = fopen(path, "r+");' \
    'sqlite3_open(path, &connection);'; do
    echo "$line" >"$tree/src/study/store/new.c"
    if "$project/tools/check-writes" "$tree" >"$tree/message"; then
        echo "FAILED: accepted: $line"
        exit 1
    fi
    grep -q 'src/study/store/new.c' "$tree/message" || { cat "$tree/message"; exit 1; }
done
