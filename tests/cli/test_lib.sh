#!/bin/bash
# lib.sh: the exit status of a test that fails, or that lacks optional data or a program.
. "$(dirname "$0")/lib.sh"

# part STATUS OUTPUT: runs standard input as a test that sources lib.sh.
part() {
    local status=0
    { printf '. "%s/lib.sh"\n' "$here" && cat; } >part.sh
    command_line="a part: $(tail -n +2 part.sh | tr '\n' ';')"
    { ATT_SHARED=$work bash part.sh >stdout 2>stderr || status=$?; } 2>/dev/null
    [ $status -eq "$1" ] || fail "$command_line exit status $status, expected $1: $(cat stdout stderr)"
    printf '%s' "${2:+$2$'\n'}" | out_is
}

part 1 'FAILED: wrong' <<<'fail wrong; finish; echo goes on'
part 77 'skipped: ATT_SHARED has no data' <<<'needs_shared data; echo goes on'
part 0 'skipped in part: ATT_SHARED has no data' <<<'run 0 --version; needs_shared data; echo goes on'
part 1 $'FAILED: wrong\nskipped in part: ATT_SHARED has no data' <<<'fail wrong; needs_shared data; echo goes on'
part 77 'skipped: there is no no_such_program' <<<'needs no_such_program; echo goes on'
mkdir data
part 0 'goes on' <<<'needs bash; needs_shared data; echo goes on; finish'
part 143 '' <<<'[ -z "$(no_such_program 2>/dev/null)" ] && finish'
err_has 'FAILED: there is no no_such_program'
finish
