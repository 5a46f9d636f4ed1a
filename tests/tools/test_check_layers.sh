#!/bin/sh
# tools/check-layers accepts a correct tree and names each kind of violation.
set -eu
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

mkdir -p "$tree/cmake" "$tree/src/core" "$tree/src/page" "$tree/src/train" "$tree/src/report" "$tree/src/tasks" "$tree/src/left" "$tree/src/right/inner/tier" "$tree/cli" "$tree/examples" \
    "$tree/include/attscope/lab"
cat >"$tree/cmake/folders.cmake" <<'CMAKE'
att_folder(core)
att_folder(left USES att_core Some::library)
att_folder(tasks)
att_folder(train)
att_folder(report)
att_folder(right/inner USES
           att_core)
att_folder(page LAB USES att_core)
att_folder(top FILES src/top.c USES att_left att_right_inner)
CMAKE
touch "$tree/src/core/a.h" "$tree/src/left/b.h" "$tree/src/right/inner/c.h"
clean() {
    printf '#include <stdio.h>\n#include "core/a.h"\n' >"$tree/src/left/b.c"
    printf '#include <attscope/api.h>\n#include "core/a.h"\n#include "right/inner/c.h"\n' \
        >"$tree/src/right/inner/tier/c.c"
    printf '#include "left/b.h"\n#include "core/a.h"\n#include "right/inner/c.h"\n' >"$tree/src/top.c"
    printf '#include <attscope/api.h>\n#include "shared.h"\n' >"$tree/cli/main.c"
    touch "$tree/cli/shared.h"
    printf '#include <attscope/api.h>\n' >"$tree/examples/one.c"
    printf '#include <attscope/lab/names.h>\n' >"$tree/src/core/names.h"
    printf '#include <attscope/lab.h>\n#include <attscope/lab/page.h>\n' >"$tree/src/page/p.c"
    printf '#include <attscope/lab/page.h>\n' >"$tree/include/attscope/lab.h"
    printf '#include <attscope/api.h>\n' >"$tree/include/attscope/lab/page.h"
    : >"$tree/include/attscope/api.h"
    printf '#include <attscope/api.h>\n' >"$tree/include/attscope/attscope.h"
    rm -f "$tree/include/attscope/lab/more.h"
    printf '/* reads "logits" */\nchar *x = "images", *y = "logit";\n' >"$tree/src/train/t.c"
    printf 'char *x = "logits", *y = "top1";\n' >"$tree/src/tasks/t.c"
    printf 'char *x = "logits";\n' >"$tree/cli/task_t.c"
    rm -rf "$tree/src/core/a.c" "$tree/src/stray"
}
refuses() { # PATTERN
    if "$check" "$tree" 2>"$tree/message"; then
        echo "FAILED: accepted, expected: $1"
        exit 1
    fi
    grep -qF "$1" "$tree/message" || { echo "FAILED: no '$1' in:"; cat "$tree/message"; exit 1; }
    clean
}

clean
"$check" "$tree" || { echo "FAILED: refused a well-layered tree"; exit 1; }

printf '#include "left/b.h"\n' >"$tree/src/core/a.c"
refuses 'src/core/a.c: core must not use left'
printf '  #  include <left/b.h>\n' >"$tree/src/core/a.c"
refuses 'src/core/a.c: core must not use left'
printf '#include "right/inner/c.h"\n' >>"$tree/src/left/b.c"
refuses 'src/left/b.c: left must not use right_inner'
printf '#include "left/b.h"\n' >>"$tree/src/right/inner/tier/c.c"
refuses 'src/right/inner/tier/c.c: right_inner must not use left'
printf '#include <attscope/lab/page.h>\n' >"$tree/src/core/a.c"
refuses 'src/core/a.c: core is not LAB and must not include <attscope/lab/page.h>'
printf '#include <attscope/lab.h>\n' >"$tree/src/core/a.c"
refuses 'src/core/a.c: core is not LAB and must not include <attscope/lab.h>'
printf '#include <attscope/lab/page.h>\n' >"$tree/include/attscope/api.h"
refuses 'include/attscope/api.h: includes <attscope/lab/page.h>, which is of the second library'
touch "$tree/include/attscope/lab/more.h"
refuses 'include/attscope/lab.h: lacks <attscope/lab/more.h>'
: >"$tree/include/attscope/attscope.h"
refuses 'include/attscope/attscope.h: lacks <attscope/api.h>'
printf '#include <curl/curl.h>\n' >"$tree/src/core/a.c"
refuses 'src/core/a.c: includes <curl/curl.h>, but only src/hub/curl.c opens connections'
printf '#include "../left/b.h"\n' >"$tree/src/core/a.c"
refuses 'src/core/a.c: includes "../left/b.h"'
printf '#include "b.h"\n' >>"$tree/src/left/b.c"
refuses 'src/left/b.c: includes "b.h", which is no file named from src/'
mkdir "$tree/src/stray" && touch "$tree/src/stray/s.c"
refuses 'src/stray/s.c: in no folder of cmake/folders.cmake'
printf '#include "core/a.h"\n' >>"$tree/cli/main.c"
refuses 'cli/main.c: includes "core/a.h"'
printf '#include "../src/core/a.h"\n' >>"$tree/cli/main.c"
refuses 'cli/main.c: includes "../src/core/a.h"'
printf '#include "core/a.h"\n' >>"$tree/examples/one.c"
refuses 'examples/one.c: includes "core/a.h"'
for literal in '"logits"' '"target"' '"image"' '"top"' '"probability"' '"top1"' '"best eval_top1 of all"'; do
    printf '/* a comment */ char *z = %s; /* another */\n' "$literal" >>"$tree/src/train/t.c"
    refuses "src/train/t.c: names $literal"
done
printf 'char *z = "image";\n' >>"$tree/cli/main.c"
refuses 'cli/main.c: names "image"'
sed -i '/(top /s/USES/USES att_page/' "$tree/cmake/folders.cmake"
refuses 'top uses page, which is LAB'
