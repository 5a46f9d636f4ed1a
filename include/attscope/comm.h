/* attscope/comm.h - the processes that work on one training run or evaluation together.
 *
 * A communicator connects processes that a launcher started: mpirun of Open MPI or MPICH, or Slurm's srun. Each process
 * has a rank, 0..size-1. A process that no launcher started has a communicator of one process, which needs no MPI.
 *
 * MPI is loaded when a communicator of several processes is opened, from a plugin that is installed separately (the
 * Debian packages attscope-openmpi and attscope-mpich). The library itself does not depend on MPI. It looks for plugins
 * in the folder that the environment variable ATTSCOPE_PLUGINS names. If that is not set: in the folder
 * attscope-plugins beside the library or program, then in the library folder of the prefix that it is installed below.
 */
#ifndef ATTSCOPE_COMM_H
#define ATTSCOPE_COMM_H

#include <stdint.h>

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_comm att_comm;

/* Connects this process with the others. Call it once in a process, before the first thread is started that could call
 * MPI, and in all processes.
 *
 * mpi: which plugin to load.
 *   "auto" or NULL  the one that fits the launcher, as its environment variables show: OMPI_COMM_WORLD_SIZE or
 *                   PMIX_RANK mean Open MPI, PMI_SIZE means MPICH; with none of them the process is on its own
 *   "openmpi", "mpich"
 *   "none"          the process is on its own
 *
 * On success *comm is the caller's, freed by att_comm_close() before the context. Errors: ERR_ARGUMENT (another name),
 * ERR_UNSUPPORTED (the plugin is not installed or does not load: the message names file and package; MPI connects
 * another number of processes than the launcher started; with "auto", several processes were started without MPI, as
 * SLURM_STEP_NUM_TASKS of srun without --mpi, or WORLD_SIZE with RANK of torchrun, accelerate or deepspeed say),
 * ERR_INTERNAL (MPI does not start), ERR_MEMORY. A process for which this call fails is not connected. It must end,
 * with a signal if MPICH started it (PMI_SIZE is set): only then does the launcher end the others. */
ATT_API ATT_MUST_CHECK att_status att_comm_open(att_context *context, const char *mpi, att_comm **comm);
/* Waits for all processes, then ends MPI. NULL and pointers to NULL are allowed. */
ATT_API void att_comm_close(att_comm **comm);

/* 0 and 1 if comm is NULL, which everywhere stands for a process on its own. */
ATT_API int att_comm_rank(const att_comm *comm);
ATT_API int att_comm_size(const att_comm *comm);
/* Host name of a process; "" for ranks outside 0..size-1. Lives as long as the communicator. */
ATT_API const char *att_comm_host(const att_comm *comm, int rank);
/* Name and version of the MPI library, "" for a process on its own. Lives as long as the communicator. */
ATT_API const char *att_comm_library(const att_comm *comm);

/* What this process has communicated since the communicator was opened. Bytes are those of the messages, each counted
 * as if it went straight from its sender to every receiver; MPI may take other ways.
 *
 * A thread of its own sums gradients while the backward pass runs, range by range. The sum of a range is under way from
 * the moment when this process has computed its share until this process has the complete sum. The share of this time
 * that is hidden behind computation is 1 - sum_wait_seconds / sum_seconds; both include the hand-over between threads,
 * so that the share is approximate if they are short. */
typedef struct att_comm_figures {
    int64_t bytes_sent, bytes_received;
    double sum_seconds;      /* sums of gradients were under way */
    double sum_wait_seconds; /* computation waited for these sums */
    double wait_seconds;     /* computation waited for other processes: for sums, and in all other exchanges */
} att_comm_figures;
/* All zero if comm is NULL or has one process. May be called by any thread at any time. */
ATT_API att_comm_figures att_comm_describe(const att_comm *comm);
/* What the environment variables of a launcher say, unchecked, before a communicator is opened: {0, 1, 1} without a
 * launcher. local_size: the number of processes on this machine, among which its processors should be divided
 * (att_settings.threads). */
typedef struct att_launch {
    int rank, size, local_size;
} att_launch;
ATT_API att_launch att_comm_launched(void);

/* The last call of all processes, which tells a failure of all from one of this process alone. Returns true when all
 * have called it; *first_failed is then the lowest rank that failed, -1 if none did. A process that did not fail waits
 * for the others as long as it takes. A process that failed waits a few seconds, then returns false: the others still
 * work, and would wait for this one. It should then say why, and call att_comm_abort().
 * first_failed may be NULL. */
ATT_API bool att_comm_settle(att_comm *comm, bool failed, int *first_failed);

/* Ends all processes at once, because this one cannot go on: for failures that the others do not see. With several
 * processes it does not return; the launcher ends the others, and exit_status (1..125) becomes that of the launcher.
 * Returns if comm is NULL or has one process. */
ATT_API void att_comm_abort(att_comm *comm, int exit_status);

#ifdef __cplusplus
}
#endif
#endif
