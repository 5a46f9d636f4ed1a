#!/bin/sh
# tools/check-symbols accepts correct objects, and names each kind of violation.
set -eu
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check-symbols
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
compiler=${CC:-cc}

object() { # NAME: compiles standard input to NAME.o
    "$compiler" -std=c17 -fPIC -fvisibility=hidden -x c -c -o "$1.o" -
}
accepts() {
    "$check" "$@" || { echo "FAILED: refused: $*"; exit 1; }
}
refuses() { # PATTERN ARGUMENT...: fails with a line that matches
    pattern=$1
    shift
    if "$check" "$@" 2>message; then
        echo "FAILED: accepted: $*"
        exit 1
    fi
    grep -q "$pattern" message || { echo "FAILED: no '$pattern' in:"; cat message; exit 1; }
}

object good <<'C'
static inline int helper(int x) { return x + 1; }
const int att_cpu_kernels_avx512[] = {1, 2};
int att_run_avx512(int x) { return helper(x); }
C
accepts tier avx512 good.o
refuses 'not of tier avx2: att_run_avx512' tier avx2 good.o

object shared <<'C'
__attribute__((weak)) int att_shared_helper(int x) { return x + 1; }
int att_run_avx512(int x) { return att_shared_helper(x); }
C
refuses 'not of tier avx512: att_shared_helper' tier avx512 good.o shared.o

object api <<'C'
__attribute__((visibility("default"))) int att_open(void) { return 0; }
int att_inner(void) { return 1; }
C
"$compiler" -shared -o library.so api.o
accepts exports library.so
accepts names api.o
object stray <<'C'
__attribute__((visibility("default"))) int stray(void) { return 0; }
C
"$compiler" -shared -o stray.so api.o stray.o
refuses 'exports a name without att_: stray' exports stray.so
refuses 'defines a name without att_: stray' names stray.o

object user <<'C'
int att_open(void);
int main(void) { return att_open(); }
C
accepts public library.so -- user.o
object intruder <<'C'
int att_inner(void);
int main(void) { return att_inner(); }
C
refuses 'not public in .*: att_inner' public library.so -- intruder.o

object between <<'C'
__attribute__((visibility("default"))) int att_inner(void) { return 1; }
C
cat >versions <<'MAP'
ATTSCOPE_0.2 { global: att_*; local: *; };
ATTSCOPE_PRIVATE_0.2.0 { global: att_inner; };
MAP
"$compiler" -shared -o first.so between.o -Wl,--version-script=versions
object requests <<'C'
int att_inner(void);
__attribute__((visibility("default"))) int att_second(void) { return att_inner(); }
C
"$compiler" -shared -o second.so requests.o first.so
object second_user <<'C'
int att_open(void), att_second(void);
int main(void) { return att_open() + att_second(); }
C
accepts exports first.so
accepts public library.so first.so second.so -- second_user.o
refuses 'not public in .*: att_inner' public library.so first.so second.so -- intruder.o
accepts private first.so second.so
refuses 'private in first.so, but library.so does not need it .*: att_inner' private first.so library.so

# The symbol is named whatever characters the path has.
mkdir 'a&b'
cp stray.so 'a&b/stray.so'
refuses 'a&b/stray.so exports a name without att_: stray' exports 'a&b/stray.so'
refuses "$work/stray.so exports a name without att_: stray" exports "$work/stray.so"

mkdir 'a b'
cp good.o 'a b/good.o'
accepts tier avx512 'a b/good.o' good.o

# A file that is missing or no object is an error in every mode.
echo 'not an object' >text.o
for bad in missing.o text.o; do
    refuses "$bad" tier avx512 good.o $bad
    refuses "$bad" names api.o $bad
    refuses "$bad" exports $bad
    refuses "$bad" public $bad -- user.o
    refuses "$bad" public library.so $bad -- user.o
    refuses "$bad" public library.so -- user.o $bad
    refuses "$bad" private $bad second.so
    refuses "$bad" private first.so $bad
done
