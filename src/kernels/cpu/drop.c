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
static att_status dropout_run(const att_call *call)
{
    draws d = draws_of(call);
    const float *x = call->in[0];
    float *y = call->out[0];
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group;
    for (int64_t sample = 0; sample < call->problem->group; sample++, x += count, y += count) {
        att_range part = att_part_of(call, count, 4);
        for (int64_t i = part.begin; i < part.end; i += 4) {
            att_philox block = att_philox_block(d.key, (uint64_t)(call->position + sample), (uint64_t)i / 4);
            for (int64_t e = i; e < i + 4 && e < part.end; e++)
                y[e] = kept(&d, block.word[e % 4]) ? x[e] * d.keep : 0;
        }
    }
    return ATT_OK;
}

static att_status drop_path_run(const att_call *call)
{
    draws d = draws_of(call);
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group;
    att_range part = att_part_of(call, count, 16);
    for (int64_t sample = 0; sample < call->problem->group; sample++) {
        const float *x = (const float *)call->in[0] + sample * count;
        float *y = (float *)call->out[0] + sample * count;
        att_philox block = att_philox_block(d.key, (uint64_t)(call->position + sample), 0);
        bool keep = kept(&d, block.word[0]);
#pragma omp simd
        for (int64_t i = part.begin; i < part.end; i++)
            y[i] = keep ? x[i] * d.keep : 0;
    }
    return ATT_OK;
}

const att_kernel att_cpu_dropout = {.op = "dropout", .name = "plain", .accepts = att_takes_f32, .run = dropout_run};
const att_kernel att_cpu_drop_path = {
    .op = "drop_path", .name = "plain", .accepts = att_takes_f32, .run = drop_path_run};
