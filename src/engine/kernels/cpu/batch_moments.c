#include "engine/ops/batch_moments.h"
#include "base/core/error.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Reductions over the samples of a batch, in f64 and in the order of the samples. Parts share the channels. */

enum { BLOCK = 64 }; /* channels per block */

static int64_t block_end(int64_t begin, att_range part)
{
    return begin + BLOCK < part.end ? begin + BLOCK : part.end;
}

/* All samples have the same number of rows, so that sample s has weight 1 / (s + 1) when it is merged with the s
 * samples before it (Chan, Golub, LeVeque 1983). */
static void merge_block(const att_call *call, int64_t columns, int64_t begin, int64_t end)
{
    double rows = (double)ATT_ATTRS(call->problem, moments)->rows, mean[BLOCK] = {0}, squares[BLOCK] = {0};
    for (int64_t sample = 0; sample < call->samples; sample++) {
        const float *from = (const float *)call->in[0] + sample * 2 * columns + begin;
        double joined = 1 / (double)(sample + 1), weight = rows * (double)sample * joined;
        for (int64_t i = 0; i < end - begin; i++) {
            double difference = (double)from[i] - mean[i];
            mean[i] += difference * joined;
            squares[i] += (double)from[columns + i] + difference * difference * weight;
        }
    }
    float *to = (float *)call->out[0] + begin;
    for (int64_t i = 0; i < end - begin; i++) {
        to[i] = (float)mean[i];
        to[columns + i] = (float)(squares[i] / (rows * (double)call->samples));
    }
}

static att_status merge_moments_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t columns = att_columns(&problem->in[0]);
    if (ATT_ATTRS(problem, moments)->rows == 1 && call->samples == 1)
        return att_fail(problem->context, ATT_ERR_ARGUMENT, "batch norm needs more than one row; use a larger batch");
    att_range part = att_part_of(call, columns, BLOCK);
    for (int64_t begin = part.begin; begin < part.end; begin += BLOCK)
        merge_block(call, columns, begin, block_end(begin, part));
    return ATT_OK;
}

/* Outputs may be the same memory as the old values. */
static att_status running_stats_run(const att_call *call)
{
    const att_moments_attrs *attrs = call->problem->attrs;
    const float *stats = call->in[0], *old_mean = call->in[1], *old_variance = call->in[2];
    float *mean = call->out[0], *variance = call->out[1];
    double n = (double)attrs->rows * (double)call->samples, unbiased = n / (n - 1), share = attrs->momentum;
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, columns, BLOCK);
    for (int64_t i = part.begin; mean && i < part.end; i++)
        mean[i] = (float)((1 - share) * (double)old_mean[i] + share * (double)stats[i]);
    for (int64_t i = part.begin; variance && i < part.end; i++)
        variance[i] = (float)((1 - share) * (double)old_variance[i] + share * unbiased * (double)stats[columns + i]);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(merge_moments, .run = merge_moments_run);
ATT_PLAIN_KERNEL(running_stats, .run = running_stats_run);
