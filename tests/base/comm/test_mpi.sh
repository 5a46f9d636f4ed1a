#!/bin/bash
# Every collective call, by processes that mpirun of Open MPI and MPICH start. RANKS: the program tests/base/comm/ranks.c.
. "$(dirname "$0")/../../cli/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI keeps memory until the process ends.
sanitized && export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ATTSCOPE_PLUGINS=$ATT_BUILD/attscope-plugins

launch() { # MPI COUNT PROGRAM...
    case $1 in
    openmpi) timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n "$2" "${@:3}" ;;
    mpich) timeout 120 mpirun.mpich -n "$2" "${@:3}" ;;
    esac
}

ran=
for mpi in openmpi mpich; do
    [ -e "$ATT_BUILD/attscope-plugins/$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null || {
        echo "skipped: $mpi is not installed"
        continue
    }
    for count in 1 2 4; do
        launch $mpi $count "$RANKS" auto >stdout 2>stderr || fail "$mpi, $count ranks: $(cat stdout stderr)"
        for ((rank = 0; rank < count; rank++)); do
            grep -q "^rank $rank of $count, .*: right$" stdout || fail "$mpi, rank $rank of $count: $(cat stdout)"
        done
    done
    "$RANKS" $mpi >stdout 2>stderr || fail "$mpi without mpirun: $(cat stdout stderr)"
    WORLD_SIZE=2 RANK=0 "$RANKS" $mpi >stdout 2>stderr && fail "$mpi in the environment of torchrun: $(cat stdout)"
    grep -q "started 2 processes, but $mpi connects 1" stderr || fail "$mpi in the environment of torchrun: $(cat stderr)"
    ran=1
done
[ -n "$ran" ] || skip 'there is no MPI'
finish
