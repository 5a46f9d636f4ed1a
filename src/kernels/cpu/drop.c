#include "core/random.h"
#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"

/* The draws of one call's node: the same at every call of one update, in whatever order. */
typedef struct draws {
    uint64_t key;
    double rate;
    float keep; /* what a kept element is multiplied by */
} draws;

static draws draws_of(const att_call *call)
{
    const att_drop_attrs *attrs = &call->problem->attrs->drop;
    const att_run *run = call->run;
    return (draws){att_random_key(run->seed, (uint64_t)run->step, attrs->stream), attrs->rate,
                   (float)(1 / (1 - attrs->rate))};
}

static bool kept(const draws *d, uint32_t word)
{
    return word * 0x1p-32 >= d->rate;
}

/* Word e % 4 of block e / 4 decides for element e of its sample. */
ATT_INLINE void dropout_as(const att_call *call, bool narrow_x, bool narrow_y)
{
    draws d = draws_of(call);
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group, at = 0;
    for (int64_t sample = 0; sample < call->problem->group; sample++, at += count) {
        att_range part = att_part_of(call, count, 4);
        for (int64_t i = part.begin; i < part.end; i += 4) {
            att_philox block = att_philox_block(d.key, (uint64_t)(call->position + sample), (uint64_t)i / 4);
            for (int64_t e = i; e < i + 4 && e < part.end; e++) {
                float x = att_float_get(call->in[0], at + e, narrow_x);
                att_float_put(call->out[0], at + e, kept(&d, block.word[e % 4]) ? x * d.keep : 0, narrow_y);
            }
        }
    }
}

ATT_INLINE void drop_path_as(const att_call *call, bool narrow_x, bool narrow_y)
{
    draws d = draws_of(call);
    const void *x = call->in[0];
    void *y = call->out[0];
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group;
    att_range part = att_part_of(call, count, 16);
    for (int64_t sample = 0; sample < call->problem->group; sample++) {
        att_philox block = att_philox_block(d.key, (uint64_t)(call->position + sample), 0);
        bool keep = kept(&d, block.word[0]);
        float factor = d.keep;
        int64_t first = sample * count + part.begin, last = sample * count + part.end;
#pragma omp simd
        for (int64_t i = first; i < last; i++)
            att_float_put(y, i, keep ? att_float_get(x, i, narrow_x) * factor : 0, narrow_y);
    }
}

static att_status dropout_run(const att_call *call)
{
    dropout_as(call, att_is_narrow(&call->problem->in[0]), att_is_narrow(&call->problem->out[0]));
    return ATT_OK;
}

/* Forward a branch comes and goes in bf16; backward what comes is the gradient of the residual stream. */
static att_status drop_path_run(const att_call *call)
{
    bool x = att_is_narrow(&call->problem->in[0]), y = att_is_narrow(&call->problem->out[0]);
    if (x && y)
        drop_path_as(call, true, true);
    else if (y)
        drop_path_as(call, false, true);
    else if (x)
        drop_path_as(call, true, false);
    else
        drop_path_as(call, false, false);
    return ATT_OK;
}

static bool drop_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 1);
}

const att_kernel att_cpu_dropout = {.op = "dropout", .name = "plain", .accepts = drop_accepts, .run = dropout_run};
const att_kernel att_cpu_drop_path = {
    .op = "drop_path", .name = "plain", .accepts = drop_accepts, .run = drop_path_run};
