#!/bin/bash
# Both libraries, installed into a prefix and then moved, can be used by C and C++ programs with pkg-config and CMake,
# shared and static.
. "$(dirname "$0")/../cli/lib.sh"
examples=$(cd "$here/../../examples" && pwd)

cmake --install "$ATT_BUILD" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/there"
prefix=$work/there
config=$(find "$prefix" -name attscope.pc)
export PKG_CONFIG_PATH=${config%/*}
library=${PKG_CONFIG_PATH%/pkgconfig}
export LD_LIBRARY_PATH=$library

[ "$(pkg-config --modversion attscope)" = "$("$prefix/bin/attscope" --version | cut -d' ' -f2)" ] ||
    fail 'pkg-config and the command say different versions'
"$prefix/bin/attscope" models 'deit_tiny*' >"$work/models" || fail 'the installed command does not run'

# build_and_run NAME COMMAND...: builds the program with COMMAND -o; it must print 1.386, as examples/graph.c does.
build_and_run() {
    local name=$1
    shift
    "$@" -o "$work/$name" >"$work/log" 2>&1 || { fail "$name does not build"; cat "$work/log"; return; }
    "$work/$name" >"$work/out" || fail "$name does not run"
    grep -q 1.386 "$work/out" || { fail "$name prints something else"; cat "$work/out"; }
}
needs_library() { # PROGRAM NAME
    readelf -d "$work/$1" | grep -q "NEEDED.*$2\.so\.0\.[0-9]"
}

read -ra shared < <(pkg-config --cflags --libs attscope)
read -ra flags < <(pkg-config --cflags attscope)
read -ra private < <(pkg-config --static --libs attscope)
build_and_run shared cc "$examples/graph.c" "${shared[@]}" -lm
needs_library shared libattscope || fail 'the shared program does not ask for libattscope.so.0.x'

# Programs with their own module, instrument and task need only the installed headers and library.
build_own() { # NAME ARGUMENT...
    local name=$1
    shift
    cc -Wall -Wextra -Werror "$examples/$name.c" "${shared[@]}" -lm -o "$work/$name" >"$work/log" 2>&1 ||
        { fail "$name.c does not build"; cat "$work/log"; return; }
    (cd "$work" && "./$name" "$@" >out 2>&1) || { fail "$name.c does not run"; cat "$work/out"; }
}
build_own module
build_own instrument deit_tiny_patch16_224 "$examples/../tests/goldens/images/rgb.png"
cc -Wall -Wextra -Werror "$examples/task.c" "${shared[@]}" -lm -o "$work/task" >"$work/log" 2>&1 ||
    { fail 'task.c does not build'; cat "$work/log"; }

# A folder without the shared library, so that -lattscope uses the static one.
mkdir "$work/archive"
cp "$library"/libattscope*.a "$work/archive"
build_and_run static cc "$examples/graph.c" "${flags[@]}" "-L$work/archive" "${private[@]/-L*/-L$work/archive}"
! needs_library static libattscope || fail 'the static program asks for libattscope.so.0.x'

# libattscope-lab, which also links with libattscope.
cat >"$work/lab.c" <<'TEXT'
#include <attscope/attscope.h>
#include <attscope/lab.h>
#include <stdio.h>
int main(void)
{
    att_json_writer *writer = NULL;
    const char *text = NULL;
    size_t length = 0;
    att_context *context = NULL;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_json_writer_create(context, false, &writer);
    if (status == ATT_OK) {
        att_json_number(writer, att_ode_method_count() > 0 ? 1.386 : 0);
        status = att_json_writer_finish(writer, &text, &length);
    }
    if (status == ATT_OK)
        puts(text);
    att_json_writer_destroy(&writer);
    att_context_destroy(&context);
    return status != ATT_OK;
}
TEXT
read -ra lab_shared < <(pkg-config --cflags --libs attscope-lab)
read -ra lab_private < <(pkg-config --static --libs attscope-lab)
build_and_run lab cc "$work/lab.c" "${lab_shared[@]}"
needs_library lab libattscope-lab || fail 'the shared program does not ask for libattscope-lab.so.0.x'
build_and_run lab_static cc "$work/lab.c" "${flags[@]}" "-L$work/archive" "${lab_private[@]/-L*/-L$work/archive}"
! needs_library lab_static 'libattscope[^ ]*' || fail 'the static program asks for libattscope-lab.so.0.x'
# It finds libattscope in its own folder, without LD_LIBRARY_PATH.
env -u LD_LIBRARY_PATH ldd "$library/libattscope-lab.so" | grep -q "libattscope.so.0.* => .*$work" ||
    fail 'the second library does not find the first'
# Private functions have the exact version, so that libraries of two builds cannot be combined.
version=$(pkg-config --modversion attscope)
readelf -W --version-info "$library/libattscope-lab.so" | grep -q "ATTSCOPE_PRIVATE_$version" ||
    fail 'the second library takes private functions of any version'

# The whole programs on the page for C programmers; the page is the installed one.
page=$(find "$prefix" -name use-from-c.md)
awk -v work="$work" '
    /^```/ && code && text ~ /int main/ { printf "%s", text >(work "/page" ++count ".c") }
    /^```/ { code = $0 == "```c"; text = ""; next }
    code { text = text $0 "\n" }' "$page"
ls "$work"/page*.c >/dev/null || fail 'use-from-c.md has no programs'
for program in "$work"/page*.c; do
    cc -Wall -Wextra -Werror "$program" "${lab_shared[@]}" -o "$work/page" >"$work/log" 2>&1 ||
        { fail "a program of use-from-c.md does not build"; cat "$work/log"; }
done

cat >"$work/version.cpp" <<'TEXT'
#include <attscope/attscope.h>
#include <cstdio>
#include <cstring>
static_assert(ATT_VERSION_AT_LEAST(0, 2, 0) && !ATT_VERSION_AT_LEAST(99, 0, 0), "the headers have a version");
int main()
{
    if (std::strcmp(att_version(), ATT_VERSION) != 0)
        return 1;
    att_context *context = nullptr;
    if (att_context_create(nullptr, &context) != ATT_OK)
        return 1;
    std::printf("1.386 %s\n", att_version());
    att_context_destroy(&context);
}
TEXT
languages=C
if command -v c++ >/dev/null; then
    languages='C CXX'
    build_and_run cpp c++ "$work/version.cpp" "${shared[@]}"
else
    echo 'skipped: C++: there is no c++'
fi

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES $languages)
find_package(attscope 0.2 REQUIRED COMPONENTS lab static)
add_executable(by_shared $examples/graph.c)
target_link_libraries(by_shared PRIVATE attscope::attscope m)
add_executable(by_static $examples/graph.c)
target_link_libraries(by_static PRIVATE attscope::static m)
add_executable(lab_by_shared $work/lab.c)
target_link_libraries(lab_by_shared PRIVATE attscope::lab)
add_executable(lab_by_static $work/lab.c)
target_link_libraries(lab_by_static PRIVATE attscope::lab_static)
if(CMAKE_CXX_COMPILER)
  add_executable(by_cpp $work/version.cpp)
  target_link_libraries(by_cpp PRIVATE attscope::attscope)
endif()
TEXT
if cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    cmake --build "$work/project/build" >>"$work/log" 2>&1; then
    for name in by_shared by_static lab_by_shared lab_by_static by_cpp; do
        [ -e "$work/project/build/$name" ] || continue
        "$work/project/build/$name" | grep -q 1.386 || fail "$name prints something else"
    done
else
    fail 'a project with find_package(attscope) does not build'
    cat "$work/log"
fi

# Without components, only attscope itself is searched for.
sed -i 's/ COMPONENTS lab static//; /by_static/d; /lab_by/d' "$work/project/CMakeLists.txt"
cmake -S "$work/project" -B "$work/project/bare" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 || {
    fail 'find_package(attscope) needs more than attscope'
    cat "$work/log"
}
! grep -qi 'dnnl\|jansson\|opencl' "$work/log" || fail 'find_package(attscope) looks for the parts of the static library'

# Without the files of libattscope-lab, a message says that its component is missing.
sed -i 's/ REQUIRED/ REQUIRED COMPONENTS lab/' "$work/project/CMakeLists.txt"
rm "$library"/cmake/attscope/attscope-lab*
! cmake -S "$work/project" -B "$work/project/missing" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    grep -q '(libattscope-lab-dev)' "$work/log" || {
    fail 'find_package(attscope COMPONENTS lab) does not say that the second library is not installed'
    cat "$work/log"
}
finish
