#include <stdlib.h>

#include "comm/comm.h"

/* Open MPI's mpirun and Slurm's srun --mpi=pmix set PMIX_RANK. MPICH's mpiexec and srun --mpi=pmi2 set PMI_SIZE. */
const char *att_comm_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK"))
        return "openmpi";
    return getenv("PMI_SIZE") ? "mpich" : NULL;
}
