/* kernels/direct.h - runs a reference kernel in f64 on arrays written in a test. */
#ifndef ATT_TESTS_KERNELS_DIRECT_H
#define ATT_TESTS_KERNELS_DIRECT_H

#include "base/core/context.h"
#include "context.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "engine/kernels/case.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/list.h"

typedef struct direct_input {
    att_desc desc;
    const void *data;
} direct_input;

#define DIRECT_SHAPE(...)                                          \
    {                                                              \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        {                                                          \
            __VA_ARGS__                                            \
        }                                                          \
    }
/* Arrays of doubles: one per sample, or one for all. */
#define SAMPLE(data_, ...)                                        \
    {                                                             \
        {ATT_F64, ATT_SAMPLE, DIRECT_SHAPE(__VA_ARGS__)}, (data_) \
    }
#define SHARED(data_, ...)                                        \
    {                                                             \
        {ATT_F64, ATT_SHARED, DIRECT_SHAPE(__VA_ARGS__)}, (data_) \
    }
#define BATCH(data_, ...)                                        \
    {                                                            \
        {ATT_F64, ATT_BATCH, DIRECT_SHAPE(__VA_ARGS__)}, (data_) \
    }
#define SCALARS(data_)                              \
    {                                               \
        {ATT_F64, ATT_SAMPLE, {.rank = 0}}, (data_) \
    }
/* An array of int32_t, one number per sample. */
#define CLASSES(data_)                              \
    {                                               \
        {ATT_I32, ATT_SAMPLE, {.rank = 0}}, (data_) \
    }
#define ABSENT                                    \
    {                                             \
        {ATT_F64, ATT_SAMPLE, {.rank = -1}}, NULL \
    }

static inline int direct_setup(void **state)
{
    (void)state;
    static const att_backend *const none[] = {NULL};
    static const att_registry registry = {.ops = att_ops, .backends = none};
    return att_context_create_with(NULL, &registry, &context) != ATT_OK;
}

/* Runs the op's reference kernel in one part. out[i] may be NULL: nobody reads it. `out` has room for ATT_CASE_OUTPUTS.
 * */
static inline void direct_run(const char *op, const void *attrs, int64_t group, const direct_input *inputs,
                              int in_count, void *const *out, const att_run *run, int64_t position)
{
    static const max_align_t no_attrs[16];
    att_desc in[ATT_CASE_INPUTS], outs[ATT_CASE_OUTPUTS];
    const void *data[ATT_CASE_INPUTS];
    for (int i = 0; i < in_count; i++) {
        in[i] = inputs[i].desc;
        data[i] = inputs[i].data;
    }
    attrs = attrs ? attrs : no_attrs;
    const att_op *of = case_op(att_ops, op);
    att_infer infer = {context, of, attrs, in, in_count, outs, ATT_CASE_OUTPUTS, 0, false};
    assert_int_equal(of->infer(&infer), ATT_OK);
    for (int i = 0; i < infer.out_count; i++)
        if (!out[i])
            outs[i].shape.rank = -1;
    att_problem problem = {context, op, attrs, in, outs, in_count, infer.out_count, group, 1};
    const att_kernel *kernel = case_kernel(att_kernels_ref, op);
    att_prepared prepared = {0};
    if (kernel->prepare)
        assert_int_equal(kernel->prepare(&problem, &prepared), ATT_OK);
    void *scratch = case_memory(prepared.scratch_bytes);
    att_call call = {&problem, data, out, NULL, prepared.state, scratch, 0, 1, position, run, group};
    assert_int_equal(kernel->run(&call), ATT_OK);
    free(scratch);
}

/* Runs an op that depends neither on the run nor on the position. */
#define DIRECT(op, attrs, group, out, ...)                            \
    direct_run(op, attrs, group, (const direct_input[]){__VA_ARGS__}, \
               (int)(sizeof((const direct_input[]){__VA_ARGS__}) / sizeof(direct_input)), out, &(const att_run){0}, 0)

#define OUTPUTS(...) ((void *[ATT_CASE_OUTPUTS]){__VA_ARGS__})

/* NaN differs from everything. */
static inline void direct_close(const double *got, const double *expected, int count, double tolerance)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(got[i] - expected[i]) <= tolerance * fmax(1, fabs(expected[i]))))
            fail_msg("element %d is %.17g, expected %.17g", i, got[i], expected[i]);
}

#define CLOSE(got, tolerance, ...)                                                                                  \
    direct_close(got, (const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), \
                 tolerance)

#endif
