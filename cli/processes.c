#define _GNU_SOURCE /* sched_getaffinity */
#include "processes.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const att_flag rows[] = {
    {"mpi", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "auto",
     .help = "the MPI library that connects the processes; auto: that of the mpirun or srun that started them; none: "
             "each process works on its own",
     .choices = (const char *const[]){"auto", "openmpi", "mpich", "none", NULL}, ATT_FLAG_AT(cli_processes, mpi)},
};

const att_flag_group cli_group_processes = {
    .title = "Several processes", .rows = rows, .row_count = sizeof rows / sizeof *rows};

bool cli_processes_follows(void)
{
    return att_comm_launched().rank > 0;
}

/* --- processors -------------------------------------------------------------------------------------------------- */

static int processors_of_machine(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 1 ? (int)count : 1;
}

/* Processors on which this process may run; those of the machine if that is unknown. */
static int own_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : processors_of_machine();
}

/* An equal share of the machine for each process on it. */
static int share_of_machine(void)
{
    int share = processors_of_machine() / att_comm_launched().local_size;
    return share > 1 ? share : 1;
}

int cli_processes_threads(void)
{
    int own = own_processors(), share = share_of_machine();
    return att_comm_launched().local_size == 1 ? 0 : own < share ? own : share;
}

/* Open MPI 4 binds each of one or two processes to one core, whatever the number of their threads. */
static void warn_of_binding(cli_app *cli)
{
    int own = own_processors(), threads = att_context_threads(cli->context), share = share_of_machine();
    int wanted = threads > share ? threads : share;
    if (own < wanted && getenv("OMPI_COMM_WORLD_SIZE"))
        cli_warn(cli,
                 "mpirun bound this process to %d of %d processors, but it could use %d: start with mpirun "
                 "--bind-to none",
                 own, processors_of_machine(), wanted);
}

/* --- opening and closing ----------------------------------------------------------------------------------------- */

static void note_processes(cli_app *cli)
{
    int size = att_comm_size(cli->comm), machines = 1, threads = att_context_threads(cli->context);
    for (int i = 1; i < size; i++) {
        int j = 0;
        while (j < i && strcmp(att_comm_host(cli->comm, i), att_comm_host(cli->comm, j)) != 0)
            j++;
        machines += j == i;
    }
    if (size > 1)
        cli_note(cli, "%d processes on %d machine%s, connected by %s; rank 0 has %d thread%s", size, machines,
                 cli_plural(machines), att_comm_library(cli->comm), threads, cli_plural(threads));
}

int cli_processes_open(cli_app *cli, const cli_processes *options)
{
    int code = cli_check(cli, att_comm_open(cli->context, options->mpi, &cli->comm));
    if (code != CLI_OK)
        return code;
    cli_silence(att_comm_rank(cli->comm) > 0);
    note_processes(cli);
    warn_of_binding(cli);
    return CLI_OK;
}

int cli_processes_refuse(cli_app *cli, int code)
{
    if (att_comm_launched().size > 1 && att_comm_open(cli->context, "auto", &cli->comm) != ATT_OK)
        cli->comm = NULL;
    return cli_processes_close(cli, code);
}

/* The launcher may drop what it has not passed on yet when it ends the processes, so it gets a moment. */
static void flush_to_launcher(void)
{
    const struct timespec moment = {.tv_nsec = 300000000};
    cli_flush();
    nanosleep(&moment, NULL);
}

static void abort_all(cli_app *cli, int code)
{
    flush_to_launcher();
    att_comm_abort(cli->comm, code);
}

/* Ends a process that is not connected. The launcher of MPICH ends the others only if a process ends by a signal. */
static void end_unconnected(void)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (cli_processes_follows())
        cli_speak_as(att_comm_launched().rank, host);
    flush_to_launcher();
    if (getenv("PMI_SIZE"))
        raise(SIGKILL);
}

int cli_processes_close(cli_app *cli, int code)
{
    int rank = att_comm_rank(cli->comm), first = -1;
    if (!cli->comm && code != CLI_OK && att_comm_launched().size > 1)
        end_unconnected();
    bool alone = !att_comm_settle(cli->comm, code != CLI_OK, &first);
    if (rank > 0 && code != CLI_OK && (alone || first == rank))
        cli_speak_as(rank, att_comm_host(cli->comm, rank));
    if (alone)
        abort_all(cli, code);
    att_comm_close(&cli->comm);
    return code;
}
