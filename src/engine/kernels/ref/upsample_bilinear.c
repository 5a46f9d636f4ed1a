#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/corners.h"
#include "engine/kernels/ref/list.h"

static att_status run_upsample(const att_call *call)
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    int64_t from = x[0] * x[1] * x[2], to = y[0] * y[1] * y[2];
    ref_range share = ref_share(call, call->problem->group * to);
    for (int64_t e = share.begin; e < share.end; e++) {
        ref_corner corners[REF_CORNERS];
        double sum = 0;
        ref_corners_of(x, y, e % to / y[2], corners);
        for (int i = 0; i < REF_CORNERS; i++)
            sum += corners[i].share * ref_in(call, 0, e / to * from + corners[i].pixel * x[2] + e % x[2]);
        ref_out(call, 0, e, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_upsample_bilinear = {.op = "upsample_bilinear", .name = "ref", .run = run_upsample};

/* Parts share the channels of all samples. Sums are in f64 and stored once. */
static att_status run_grad(const att_call *call)
{
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    int64_t channels = x[2], from = x[0] * x[1] * channels, to = y[0] * y[1] * channels;
    double *sums = call->scratch;
    ref_range share = ref_share(call, call->problem->group * channels);
    for (int64_t number = share.begin; number < share.end; number++) {
        int64_t sample = number / channels, channel = number % channels;
        for (int64_t i = 0; i < x[0] * x[1]; i++)
            sums[i] = 0;
        for (int64_t e = channel; e < to; e += channels) {
            ref_corner corners[REF_CORNERS];
            ref_corners_of(x, y, e / channels, corners);
            for (int i = 0; i < REF_CORNERS; i++)
                sums[corners[i].pixel] += corners[i].share * ref_in(call, 0, sample * to + e);
        }
        for (int64_t i = 0; i < x[0] * x[1]; i++)
            ref_out(call, 0, sample * from + i * channels + channel, sums[i]);
    }
    return ATT_OK;
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *x = problem->out[0].shape.dims;
    prepared->scratch_bytes = (size_t)(x[0] * x[1]) * sizeof(double);
    return ATT_OK;
}

const att_kernel att_ref_upsample_bilinear_grad = {
    .op = "upsample_bilinear_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
