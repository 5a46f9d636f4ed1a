/* Compares the kernels of the backend "f64" with the reference on every case of their ops that they accept, in f64 and
 * on each processor tier of this machine. */
#include "engine/kernels/case.h"
#include "engine/kernels/cpu/wide.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/list.h"

#define ADDRESS(name, tier, features) &att_cpu_##name##_##tier,
#define TIERED_ADDRESSES(name) ATT_EACH_TIER(ADDRESS, name)
static const att_kernel *const kernels[] = {ATT_WIDE_KERNELS(TIERED_ADDRESSES) NULL};

/* Relative to the largest magnitude of the output. Measured: 2.0e-14, of attention with scores of several thousands. */
static const double TOLERANCE = 1e-13;

static const att_op *op_of(const att_kernel *kernel)
{
    for (const att_op *const *op = att_ops; *op; op++)
        if (strcmp((*op)->name, kernel->op) == 0)
            return *op;
    fail_msg("there is no op %s", kernel->op);
    return NULL;
}

/* Returns false if the kernel does not accept the case. Of the outputs, only the first two are read. */
static bool compare(const att_kernel *kernel, case_setup setup, double *worst)
{
    enum { UNREAD = ~3 };
    case_drawn drawn = case_draw(setup);
    case_result truth, one, three;
    bool accepted = case_run(&drawn, kernel, 1, (unsigned)UNREAD, &one);
    if (accepted) {
        case_run(&drawn, case_kernel(att_kernels_ref, kernel->op), 1, (unsigned)UNREAD, &truth);
        assert_true(case_run(&drawn, kernel, 3, (unsigned)UNREAD, &three));
        for (int out = 0; out < truth.out_count && out < 2; out++) {
            double difference = case_difference(&one, &truth, out);
            if (!(difference <= TOLERANCE))
                fail_msg("%s, case %s: output %d differs by %g", kernel->op, setup.definition->name, out, difference);
            *worst = fmax(*worst, difference);
            assert_true(case_difference(&three, &one, out) <= TOLERANCE);
        }
        case_result_free(&truth);
        case_result_free(&three);
    }
    case_result_free(&one);
    case_free(&drawn);
    return accepted;
}

TEST(wide_kernels_agree_with_the_reference)
{
    double worst = 0;
    for (const att_kernel *const *kernel = kernels; *kernel; kernel++) {
        const att_op *op = op_of(*kernel);
        int accepted = 0;
        if ((*kernel)->features != att_context_features(context))
            continue;
        for (int i = 0; i < op->case_count; i++)
            for (int64_t group = 1; group <= 3 && !op->cases[i].bench; group += 2)
                accepted +=
                    compare(*kernel, (case_setup){context, op, &op->cases[i], ATT_F64, group, true, 0, 0}, &worst);
        assert_true(accepted >= 4);
    }
    print_message("differences of up to %.2g\n", worst);
}

TEST(narrow_values_are_refused)
{
    for (const att_kernel *const *kernel = kernels; *kernel; kernel++) {
        const att_op *op = op_of(*kernel);
        case_result result;
        case_drawn drawn = case_draw((case_setup){context, op, &op->cases[0], ATT_F32, 1, false, 0, 0});
        assert_false(case_run(&drawn, *kernel, 1, 0, &result));
        case_free(&drawn);
    }
}
