#include "engine/ops/concat_maps.h"

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/corners.h"
#include "engine/kernels/ref/list.h"

/* A map that has the result's size is copied: its pixels meet no others. */
static int corners_of(const int64_t *x, const int64_t *y)
{
    return x[0] == y[0] && x[1] == y[1] ? 1 : REF_CORNERS;
}

/* Writes map i to the channels of y from `first` on. */
static void place_map(const att_call *call, int i, int64_t first)
{
    const int64_t *x = call->problem->in[i].shape.dims, *y = call->problem->out[0].shape.dims;
    const int count = corners_of(x, y);
    ref_range share = ref_share(call, call->problem->group * y[0] * y[1]);
    for (int64_t pixel = share.begin; pixel < share.end; pixel++) {
        ref_corner corners[REF_CORNERS];
        ref_corners_of(x, y, pixel % (y[0] * y[1]), corners);
        for (int64_t c = 0; c < x[2]; c++) {
            double sum = 0;
            for (int corner = 0; corner < count; corner++)
                sum += corners[corner].share *
                       ref_in(call, i, (pixel / (y[0] * y[1]) * x[0] * x[1] + corners[corner].pixel) * x[2] + c);
            ref_out(call, 0, pixel * y[2] + first + c, sum);
        }
    }
}

static att_status run_concat_maps(const att_call *call)
{
    int64_t first = 0;
    for (int i = 0; i < call->problem->in_count; i++) {
        place_map(call, i, first);
        first += ref_dim(call, i, -1);
    }
    return ATT_OK;
}

const att_kernel att_ref_concat_maps = {.op = "concat_maps", .name = "ref", .run = run_concat_maps};

/* Channel c of the gradient of map i for one sample, from channel `from` of dy. Sums are in f64 and stored once. */
static void take_channel(const att_call *call, int i, int64_t sample, int64_t c, int64_t from)
{
    const int64_t *x = call->problem->out[i].shape.dims, *y = call->problem->in[0].shape.dims;
    const int count = corners_of(x, y);
    double *sums = call->scratch;
    for (int64_t pixel = 0; pixel < x[0] * x[1]; pixel++)
        sums[pixel] = 0;
    for (int64_t pixel = 0; pixel < y[0] * y[1]; pixel++) {
        ref_corner corners[REF_CORNERS];
        ref_corners_of(x, y, pixel, corners);
        for (int corner = 0; corner < count; corner++)
            sums[corners[corner].pixel] +=
                corners[corner].share * ref_in(call, 0, (sample * y[0] * y[1] + pixel) * y[2] + from);
    }
    for (int64_t pixel = 0; pixel < x[0] * x[1]; pixel++)
        ref_out(call, i, (sample * x[0] * x[1] + pixel) * x[2] + c, sums[pixel]);
}

/* Parts share the channels of all samples. */
static att_status run_grad(const att_call *call)
{
    const att_concat_maps_attrs *attrs = call->problem->attrs;
    int64_t first = 0;
    for (int i = 0; i < attrs->count; i++) {
        const int64_t channels = attrs->size[i][2];
        ref_range share = ref_share(call, call->out[i] ? call->problem->group * channels : 0);
        for (int64_t number = share.begin; number < share.end; number++)
            take_channel(call, i, number / channels, number % channels, first + number % channels);
        first += channels;
    }
    return ATT_OK;
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    const att_concat_maps_attrs *attrs = problem->attrs;
    for (int i = 0; i < attrs->count; i++) {
        const size_t bytes = (size_t)attrs->size[i][0] * (size_t)attrs->size[i][1] * sizeof(double);
        prepared->scratch_bytes = bytes > prepared->scratch_bytes ? bytes : prepared->scratch_bytes;
    }
    return ATT_OK;
}

const att_kernel att_ref_concat_maps_grad = {
    .op = "concat_maps_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
