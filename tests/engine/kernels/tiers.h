/* kernels/tiers.h - runs a test program once for each processor tier of this machine. Each tier runs in a process of
 * its own, because the context and oneDNN read the tier only once. Also finds the CPU kernels for a context's tier. */
#ifndef ATT_TESTS_KERNELS_TIERS_H
#define ATT_TESTS_KERNELS_TIERS_H

#include <sys/wait.h>
#include <unistd.h>

#include "base/core/processor.h"
#include "context.h"
#include "engine/kernels/case.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/truth.h"

static size_t tiers_bytes_at_start;

static inline int tiers_setup(void **state)
{
    (void)state;
    if (att_context_create(NULL, &context) != ATT_OK)
        return -1;
    tiers_bytes_at_start = att_context_allocations(context).bytes_now;
    return 0;
}

/* Checks that kernels leave no memory allocated. */
static inline int tiers_teardown(void **state)
{
    (void)state;
    int left = att_context_allocations(context).bytes_now != tiers_bytes_at_start;
    att_context_destroy(&context);
    return left;
}

static inline const att_kernel *tiers_kernel(const att_context *of, const char *op)
{
    for (const att_kernel *const *kernel = att_kernels_cpu; *kernel; kernel++)
        if (!strcmp((*kernel)->op, op) && !((*kernel)->features & ~att_context_features(of)))
            return *kernel;
    fail_msg("the CPU backend has no kernel for %s", op);
    return NULL;
}

/* Returns the kernel that a plan chooses for the drawn case; NULL if none accepts it. */
static inline const att_kernel *tiers_kernel_for(const case_drawn *drawn)
{
    att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS];
    const att_problem problem = case_problem(drawn, drawn->out, 1, in, out);
    return att_kernel_for(att_kernels_cpu, &problem);
}

static inline bool tiers_running_one(void)
{
    return getenv("ATTSCOPE_CPU") != NULL;
}

static inline int tiers_run_one(const char *program, const char *tier)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("ATTSCOPE_CPU", tier, 1);
        execl("/proc/self/exe", program, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

/* Returns the exit status for main(). */
static inline int tiers_run_all(const char *program)
{
    unsigned features = att_processor_features();
    truth_create();
    int failed = 0;
    for (const att_tier *tier = att_tiers; tier->name; tier++) {
        if (tier->features & ~features)
            printf("skipped: this processor has no %s\n", tier->name);
        else
            failed |= tiers_run_one(program, tier->name);
    }
    return failed;
}

/* Runs the tests for every tier or, in a child process, for one. */
TEST_GROUP(tiers_setup, tiers_teardown)

int main(int argc, char **argv)
{
    (void)argc;
    return tiers_running_one() ? test_run(getenv("ATTSCOPE_CPU")) : tiers_run_all(argv[0]);
}

#endif
