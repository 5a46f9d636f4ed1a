#include "engine/ops/group_norm.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

/* One group of one sample: channels [begin, end), counted over all samples, with `count` elements. */
typedef struct group {
    int64_t begin, end;
    double count, mean, rstd;
} group;

static int64_t groups_of(const att_call *call)
{
    return ATT_ATTRS(call->problem, group_norm)->groups * call->problem->group;
}

/* Group `number`, counted over all samples. All channels have the same number of rows, so the group's mean is the mean
 * of the channel means. The group's sum of squares is the sum of the channels' sums, plus rows times the squared
 * distances of the channel means from the group's mean. */
static group group_at(const att_call *call, int x, int moments, int64_t number)
{
    const att_group_norm_attrs *attrs = call->problem->attrs;
    int64_t columns = ref_dim(call, x, -1), width = columns / attrs->groups;
    double rows = (double)(att_shape_count(call->problem->in[x].shape) / columns), squares = 0;
    group g = {.begin = number * width, .end = (number + 1) * width, .count = rows * (double)width};
    int64_t sample = g.begin / columns, first = g.begin + sample * columns; /* moments have two rows per sample */
    for (int64_t c = first; c < first + width; c++)
        g.mean += ref_in(call, moments, c) / (double)width;
    for (int64_t c = first; c < first + width; c++) {
        double difference = ref_in(call, moments, c) - g.mean;
        squares += ref_in(call, moments, c + columns) + rows * difference * difference;
    }
    g.rstd = 1 / sqrt(squares / g.count + attrs->eps);
    return g;
}

static double gamma_at(const att_call *call, int gamma, int64_t channel)
{
    return ref_has(call, gamma) ? ref_in(call, gamma, channel) : 1;
}

static void norm_group(const att_call *call, const group *g)
{
    enum { X, MOMENTS, GAMMA, BETA };
    for (int64_t k = g->begin; k < g->end; k++) {
        ref_channel channel = ref_channel_of(call, X, k);
        int64_t c = k % channel.step;
        double gamma = gamma_at(call, GAMMA, c), beta = ref_has(call, BETA) ? ref_in(call, BETA, c) : 0;
        for (int64_t e = channel.begin; e < channel.end; e += channel.step)
            ref_out(call, 0, e, (ref_in(call, X, e) - g->mean) * g->rstd * gamma + beta);
    }
}

static att_status run_group_norm(const att_call *call)
{
    ref_range share = ref_share(call, groups_of(call));
    for (int64_t number = share.begin; number < share.end; number++) {
        group g = group_at(call, 0, 1, number);
        norm_group(call, &g);
    }
    return ATT_OK;
}

const att_kernel att_ref_group_norm = {.op = "group_norm", .name = "ref", .run = run_group_norm};

enum { DY, GRAD_X, GRAD_MOMENTS, GRAD_GAMMA, SUM_DY, SUM_DY_NORMAL };

static double normal_at(const att_call *call, const group *g, int64_t e)
{
    return (ref_in(call, GRAD_X, e) - g->mean) * g->rstd;
}

static void sum_group(const att_call *call, const group *g)
{
    for (int64_t k = g->begin; k < g->end; k++) {
        ref_channel channel = ref_channel_of(call, GRAD_X, k);
        double sum = 0, products = 0;
        for (int64_t e = channel.begin; e < channel.end; e += channel.step) {
            sum += ref_in(call, DY, e);
            products += ref_in(call, DY, e) * normal_at(call, g, e);
        }
        ref_out(call, 0, k, sum);
        ref_out(call, 1, k, products);
    }
}

static att_status for_groups(const att_call *call, void (*work)(const att_call *call, const group *g))
{
    ref_range share = ref_share(call, groups_of(call));
    for (int64_t number = share.begin; number < share.end; number++) {
        group g = group_at(call, GRAD_X, GRAD_MOMENTS, number);
        work(call, &g);
    }
    return ATT_OK;
}

static att_status run_sums(const att_call *call)
{
    return for_groups(call, sum_group);
}

const att_kernel att_ref_group_norm_sums = {.op = "group_norm_sums", .name = "ref", .run = run_sums};

static void group_dx(const att_call *call, const group *g)
{
    int64_t columns = ref_dim(call, GRAD_X, -1);
    double mean = 0, product = 0;
    for (int64_t k = g->begin; k < g->end; k++) {
        double gamma = gamma_at(call, GRAD_GAMMA, k % columns);
        mean += gamma * ref_in(call, SUM_DY, k) / g->count;
        product += gamma * ref_in(call, SUM_DY_NORMAL, k) / g->count;
    }
    for (int64_t k = g->begin; k < g->end; k++) {
        ref_channel channel = ref_channel_of(call, GRAD_X, k);
        double gamma = gamma_at(call, GRAD_GAMMA, k % columns);
        for (int64_t e = channel.begin; e < channel.end; e += channel.step)
            ref_out(call, 0, e, g->rstd * (ref_in(call, DY, e) * gamma - mean - normal_at(call, g, e) * product));
    }
}

static att_status run_grad(const att_call *call)
{
    return for_groups(call, group_dx);
}

const att_kernel att_ref_group_norm_grad = {.op = "group_norm_grad", .name = "ref", .run = run_grad};
