#!/bin/bash
# train, validate and measure as several processes that mpirun of Open MPI and MPICH start: the files and figures of one
# process; one message if they fail; what a killed process leaves is resumed.
. "$(dirname "$0")/lib.sh"
only_unsanitized 'several processes take long under sanitizers; comm/ tests and models/test_processes run the same functions'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ATTSCOPE_PLUGINS=$ATT_BUILD/attscope-plugins
# With AVX2, the rounding of oneDNN's products depends on the number of their rows, and so on how many images of a batch a
# process measures. Other tiers give the same bits.
grep -qw avx512vl /proc/cpuinfo || export ATTSCOPE_CPU=baseline
idx data

mpirun_of() { # MPI COUNT
    case $1 in
    openmpi) echo "mpirun.openmpi --oversubscribe --bind-to none -n $2" ;;
    mpich) echo "mpirun.mpich -n $2" ;;
    esac
}

# together CODE MPI COUNT ARGUMENT...: as run(), with several processes.
together() {
    local code=$1 mpi=$2 count=$3 status=0
    shift 3
    command_line="$mpi, $count processes: attscope $*"
    # shellcheck disable=SC2046
    timeout 120 $(mpirun_of "$mpi" "$count") "$ATTSCOPE" "$@" >stdout 2>stderr || status=$?
    if [ $status -ne "$code" ]; then
        fail "$command_line: exit status $status, expected $code"
        sed 's/^/  /' stderr
    fi
}

says_once() { # SENTENCE
    [ "$(grep -cF "$1" stderr)" = 1 ] || { fail "$command_line: not once '$1'"; sed 's/^/  /' stderr; }
}

same_files() { # FOLDER FOLDER
    for name in last model_best checkpoint-0 checkpoint-1; do
        cmp "$1/$name.safetensors" "$2/$name.safetensors" || fail "$command_line: $name differs from that of one process"
    done
}

flags="--epochs 2 --lanes 4 --mixup 0.2 --model-ema --output out"
# A residual network with batch norm.
residual="--model resnet29 --modules se --img-size 8 --in-chans 1 --epochs 1 -b 16 --lanes 4 --sync-bn --warmup-epochs 0 --output out"

# shellcheck disable=SC2086
run 0 train data $network $recipe $flags --experiment one
# shellcheck disable=SC2086
run 0 train data $residual --experiment one-residual
# shellcheck disable=SC2086
run 0 train data $residual --experiment one-mixed --amp --amp-force
run 0 validate data --split test --checkpoint out/one --json one.json
run 0 measure out/one data --split test --json one-measured.json --maps 2 --output measured --experiment one

figures() { # FILE: without what differs between runs
    sed -E '/"(images_per_second|wait_share|folder)"/d' "$1"
}

# processes_of NAME: prints the ids of the processes with this argument, without that of grep.
processes_of() { grep -lszx -- "[${1:0:1}]${1:1}" /proc/[0-9]*/cmdline | cut -d / -f 3; }

ran=
for mpi in openmpi mpich; do
    [ -e "$ATT_BUILD/attscope-plugins/$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null || {
        echo "skipped: $mpi is not installed"
        continue
    }
    ran=1
    for count in 2 4; do
        # shellcheck disable=SC2086
        together 0 $mpi $count train data $network $recipe $flags --experiment "$mpi-$count" --threads 1
        same_files out/one "out/$mpi-$count"
        says_once "$count processes on 1 machine, connected by "
        [ "$(grep -c '^vit_tiny_patch16_224: 2 epochs' stdout)" = 1 ] || fail "$command_line: not one result: $(cat stdout)"
    done
    # shellcheck disable=SC2086
    together 0 $mpi 2 train data $residual --experiment "$mpi-residual" --threads 2
    cmp out/one-residual/last.safetensors "out/$mpi-residual/last.safetensors" || fail "$command_line: other weights"
    # shellcheck disable=SC2086
    together 0 $mpi 2 train data $residual --experiment "$mpi-mixed" --amp --amp-force --threads 1
    cmp out/one-mixed/last.safetensors "out/$mpi-mixed/last.safetensors" || fail "$command_line: other weights"
    grep -q 'statistics of its own' stderr && fail "$command_line: says that statistics are not shared"

    together 0 $mpi 2 validate data --split test --checkpoint out/one --json two.json --threads 1
    diff <(figures one.json) <(figures two.json) || fail "$command_line: other figures"
    together 0 $mpi 2 measure out/one data --split test --json two.json --maps 2 --output measured --experiment "$mpi" \
        --threads 1
    diff <(figures one-measured.json) <(figures two.json) || fail "$command_line: other figures"
    cmp measured/one/maps.safetensors "measured/$mpi/maps.safetensors" || fail "$command_line: other maps"

    # What all refuse is said once.
    together 2 $mpi 2 train data --modle resnet20
    says_once 'unknown option --modle; did you mean --model?'
    together 1 $mpi 2 train nowhere $residual --experiment refused
    says_once 'attscope: nowhere does not exist'
    # shellcheck disable=SC2086
    together 2 $mpi 2 train data $network $recipe $flags --lanes 3 --experiment refused
    says_once 'attscope: 3 lanes cannot be shared equally by 2 processes'
    [ -e out/refused ] && fail "$command_line: wrote to out/refused"

    # What one process alone refuses ends all.
    cat >by_rank <<'SCRIPT'
#!/bin/bash
data=data
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && data=nowhere
exec "$@" --data-dir $data
SCRIPT
    chmod +x by_rank
    command_line="$mpi: rank 1 has no data"
    # shellcheck disable=SC2046,SC2086
    timeout 60 $(mpirun_of $mpi 2) ./by_rank "$ATTSCOPE" train $residual --experiment alone >stdout 2>stderr &&
        fail "$command_line: exit status 0"
    grep -q "attscope: rank 1 on $(hostname): nowhere does not exist" stderr || fail "$command_line: $(cat stderr)"

    # Also if it cannot load the plugin, so that it is not connected with the others.
    cat >without_plugin <<'SCRIPT'
#!/bin/bash
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && export ATTSCOPE_PLUGINS=/nowhere
exec "$@"
SCRIPT
    chmod +x without_plugin
    command_line="$mpi: rank 1 has no plugin"
    # shellcheck disable=SC2046,SC2086
    timeout -k 1 60 $(mpirun_of $mpi 2) ./without_plugin "$ATTSCOPE" train data $residual --experiment alone \
        >stdout 2>stderr && fail "$command_line: exit status 0"
    grep -q "attscope: rank 1 on $(hostname): the plugin for $mpi is not installed" stderr ||
        fail "$command_line: $(cat stderr)"

    # Instruments that differ would exchange different values.
    cat >measures <<'SCRIPT'
#!/bin/bash
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && set -- "$@" --measure accuracy
exec "$@"
SCRIPT
    chmod +x measures
    command_line="$mpi: rank 1 measures"
    # shellcheck disable=SC2046,SC2086
    timeout -k 1 60 $(mpirun_of $mpi 2) ./measures "$ATTSCOPE" train data $residual --experiment alone >stdout 2>stderr &&
        fail "$command_line: exit status 0"
    says_once 'the processes differ in what is measured during training (--measure)'

    # Killed: all end, and a resume with another number of processes gives the bits of an undisturbed training.
    command_line="$mpi: rank 1 is killed"
    training=$mpi-killed-$$ # no other run of this test on this machine has it
    # shellcheck disable=SC2046,SC2086
    $(mpirun_of $mpi 2) "$ATTSCOPE" train data $network $recipe $flags --epochs 400 --recovery-interval 1 \
        --experiment "$training" --threads 1 >stdout 2>stderr &
    launcher=$!
    for ((i = 0; i < 600; i++)); do
        [ -e "out/$training/last.safetensors" ] && break
        sleep 0.1
    done
    for process in $(processes_of "$training"); do
        grep -qzE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=1$' "/proc/$process/environ" 2>/dev/null && kill -KILL "$process"
    done
    for ((i = 0; i < 100; i++)); do
        kill -0 $launcher 2>/dev/null || break
        sleep 0.1
    done
    kill -0 $launcher 2>/dev/null && { fail "$command_line: the others live after 10 s"; kill -KILL $launcher; }
    wait $launcher && fail "$command_line: exit status 0"
    [ -z "$(processes_of "$training")" ] || fail "$command_line: a process is left"
    run 0 inspect "out/$training/last.safetensors"
done
[ -n "$ran" ] || skip 'there is no MPI'

# Stopped and resumed with other numbers of processes.
training=stopped-$$
mpi=openmpi
[ -e "$ATT_BUILD/attscope-plugins/$mpi.so" ] || mpi=mpich
# shellcheck disable=SC2046,SC2086
$(mpirun_of $mpi 4) "$ATTSCOPE" train data $network $recipe $flags --epochs 40 --experiment $training --threads 1 \
    >stdout 2>stderr &
launcher=$!
for ((i = 0; i < 600; i++)); do
    [ -e out/$training/last.safetensors ] && break
    sleep 0.1
done
for process in $(processes_of $training); do
    grep -qzE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=2$' "/proc/$process/environ" 2>/dev/null && kill -TERM "$process"
done
wait $launcher
command_line='rank 2 is asked to stop'
grep -q "resume with: attscope train --resume out/$training/last.safetensors" stderr || fail "$command_line: $(cat stderr)"
together 0 $mpi 2 train --resume out/$training/last.safetensors --threads 1
# shellcheck disable=SC2086
run 0 train data $network $recipe $flags --epochs 40 --experiment undisturbed
cmp out/$training/last.safetensors out/undisturbed/last.safetensors || fail "$command_line: other weights after a resume"
finish
