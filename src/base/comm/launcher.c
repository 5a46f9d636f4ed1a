#include <limits.h>
#include <stdlib.h>

#include "base/comm/comm.h"

/* Open MPI's mpirun and Slurm's srun --mpi=pmix set PMIX_RANK. MPICH's mpiexec and srun --mpi=pmi2 set PMI_SIZE. */
const char *att_comm_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK"))
        return "openmpi";
    return getenv("PMI_SIZE") ? "mpich" : NULL;
}

/* The number that begins the first of these environment variables that is set, at least `least`; `missing` if none is
 * set. */
static int number_in(const char *const *names, int least, int missing)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (!text || !*text)
            continue;
        long number = strtol(text, NULL, 10);
        return number < least ? least : number > INT_MAX ? INT_MAX : (int)number;
    }
    return missing;
}

const att_unconnected *att_comm_unconnected(int *size)
{
    static const att_unconnected launchers[] = {
        {"srun", {"SLURM_STEP_NUM_TASKS", NULL}, NULL, "pass srun --mpi=pmix for Open MPI or --mpi=pmi2 for MPICH"},
        {"torchrun, accelerate or deepspeed", {"WORLD_SIZE", NULL}, "RANK", "start the command with mpirun instead"},
    };
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && !att_comm_launcher(); i++) {
        const char *rank = launchers[i].rank;
        *size = rank && !getenv(rank) ? 1 : number_in(launchers[i].sizes, 1, 1);
        if (*size > 1)
            return &launchers[i];
    }
    *size = 1;
    return NULL;
}

att_launch att_comm_launched(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", NULL};
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", NULL};
    /* Slurm's has the form "4(x2),3": this is right for the first machines. */
    static const char *const neighbours[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                             "SLURM_STEP_TASKS_PER_NODE", NULL};
    att_launch launch = {.size = 1, .local_size = 1};
    if (!att_comm_launcher())
        return launch;
    launch.rank = number_in(ranks, 0, 0);
    launch.size = number_in(sizes, 1, 1);
    launch.local_size = number_in(neighbours, 1, 1);
    return launch;
}
