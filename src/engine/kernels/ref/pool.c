#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/pool.h"

/* Rows (or columns) [begin, end) of x in a window; counted: the number of rows by which averages divide if they count
 * padding. */
typedef struct span {
    int64_t begin, end, counted;
} span;

static span span_of(const att_pool_attrs *attrs, int64_t window, int64_t size)
{
    int64_t begin = window * attrs->stride - attrs->padding, end = begin + attrs->kernel;
    int64_t last = end < size + attrs->padding ? end : size + attrs->padding;
    return (span){begin > 0 ? begin : 0, end < size ? end : size, last - begin};
}

/* Sizes of a pool: map [height, width, channels], windows [out_h, out_w, channels]. */
typedef struct pool {
    const att_pool_attrs *attrs;
    int64_t height, width, out_h, out_w, channels;
} pool;

static pool pool_of(const att_call *call, const att_desc *x, const att_desc *y)
{
    return (pool){call->problem->attrs, x->shape.dims[0], x->shape.dims[1],
                  y->shape.dims[0],     y->shape.dims[1], y->shape.dims[2]};
}

static double elements_of(const pool *p, span rows, span columns)
{
    return p->attrs->count_padding ? (double)rows.counted * (double)columns.counted
                                   : (double)(rows.end - rows.begin) * (double)(columns.end - columns.begin);
}

/* The element of x (input `in`) that is the window's first maximum; NaN is larger than every number. */
static int64_t maximum_at(const att_call *call, int in, const pool *p, int64_t window, int64_t channel)
{
    int64_t sample = window / (p->out_h * p->out_w), best = -1;
    span rows = span_of(p->attrs, window / p->out_w % p->out_h, p->height);
    span columns = span_of(p->attrs, window % p->out_w, p->width);
    for (int64_t i = rows.begin; i < rows.end; i++)
        for (int64_t j = columns.begin; j < columns.end; j++) {
            int64_t e = ((sample * p->height + i) * p->width + j) * p->channels + channel;
            double x = ref_in(call, in, e);
            if (best < 0 || x > ref_in(call, in, best) || isnan(x))
                best = e;
        }
    return best;
}

static att_status run_max_pool(const att_call *call)
{
    pool p = pool_of(call, &call->problem->in[0], &call->problem->out[0]);
    ref_range windows = ref_share(call, call->problem->group * p.out_h * p.out_w);
    for (int64_t window = windows.begin; window < windows.end; window++)
        for (int64_t c = 0; c < p.channels; c++)
            ref_out(call, 0, window * p.channels + c, ref_in(call, 0, maximum_at(call, 0, &p, window, c)));
    return ATT_OK;
}

const att_kernel att_ref_max_pool = {.op = "max_pool", .name = "ref", .run = run_max_pool};

/* Range of windows that may contain row (or column) `at`. */
static ref_range windows_around(const att_pool_attrs *attrs, int64_t at, int64_t windows)
{
    int64_t first = at + attrs->padding - attrs->kernel + 1, last = (at + attrs->padding) / attrs->stride + 1;
    return (ref_range){first > 0 ? (first + attrs->stride - 1) / attrs->stride : 0, last < windows ? last : windows};
}

typedef double (*share_of_window)(const att_call *call, const pool *p, int64_t window, int64_t channel, int64_t e);

/* Computes dx for the part's pixels: the sum over all windows that contain the pixel. */
static void spread(const att_call *call, share_of_window share)
{
    pool p = pool_of(call, &call->problem->out[0], &call->problem->in[0]);
    ref_range pixels = ref_share(call, call->problem->group * p.height * p.width);
    for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel++) {
        int64_t sample = pixel / (p.height * p.width);
        ref_range rows = windows_around(p.attrs, pixel / p.width % p.height, p.out_h);
        ref_range columns = windows_around(p.attrs, pixel % p.width, p.out_w);
        for (int64_t c = 0; c < p.channels; c++) {
            double sum = 0;
            for (int64_t i = rows.begin; i < rows.end; i++)
                for (int64_t j = columns.begin; j < columns.end; j++)
                    sum += share(call, &p, (sample * p.out_h + i) * p.out_w + j, c, pixel * p.channels + c);
            ref_out(call, 0, pixel * p.channels + c, sum);
        }
    }
}

enum { DY, X };

static double share_of_maximum(const att_call *call, const pool *p, int64_t window, int64_t channel, int64_t e)
{
    return maximum_at(call, X, p, window, channel) == e ? ref_in(call, DY, window * p->channels + channel) : 0;
}

static att_status run_max_pool_grad(const att_call *call)
{
    spread(call, share_of_maximum);
    return ATT_OK;
}

const att_kernel att_ref_max_pool_grad = {.op = "max_pool_grad", .name = "ref", .run = run_max_pool_grad};

static att_status run_avg_pool(const att_call *call)
{
    pool p = pool_of(call, &call->problem->in[0], &call->problem->out[0]);
    ref_range windows = ref_share(call, call->problem->group * p.out_h * p.out_w);
    for (int64_t window = windows.begin; window < windows.end; window++) {
        int64_t sample = window / (p.out_h * p.out_w);
        span rows = span_of(p.attrs, window / p.out_w % p.out_h, p.height);
        span columns = span_of(p.attrs, window % p.out_w, p.width);
        for (int64_t c = 0; c < p.channels; c++) {
            double sum = 0;
            for (int64_t i = rows.begin; i < rows.end; i++)
                for (int64_t j = columns.begin; j < columns.end; j++)
                    sum += ref_in(call, 0, ((sample * p.height + i) * p.width + j) * p.channels + c);
            ref_out(call, 0, window * p.channels + c, sum / elements_of(&p, rows, columns));
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_avg_pool = {.op = "avg_pool", .name = "ref", .run = run_avg_pool};

static double share_of_mean(const att_call *call, const pool *p, int64_t window, int64_t channel, int64_t e)
{
    (void)e;
    span rows = span_of(p->attrs, window / p->out_w % p->out_h, p->height);
    span columns = span_of(p->attrs, window % p->out_w, p->width);
    return ref_in(call, DY, window * p->channels + channel) / elements_of(p, rows, columns);
}

static att_status run_avg_pool_grad(const att_call *call)
{
    spread(call, share_of_mean);
    return ATT_OK;
}

const att_kernel att_ref_avg_pool_grad = {.op = "avg_pool_grad", .name = "ref", .run = run_avg_pool_grad};

/* --- adaptive ----------------------------------------------------------------------------------------------------- */

static ref_range adaptive_range(int64_t i, int64_t size, int64_t places)
{
    return (ref_range){i * size / places, ((i + 1) * size + places - 1) / places};
}

static att_status run_adaptive_avg_pool(const att_call *call)
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    ref_range places = ref_share(call, call->problem->group * y[0] * y[1]);
    for (int64_t place = places.begin; place < places.end; place++) {
        ref_range rows = adaptive_range(place / y[1] % y[0], x[0], y[0]);
        ref_range columns = adaptive_range(place % y[1], x[1], y[1]);
        int64_t sample = place / (y[0] * y[1]);
        for (int64_t c = 0; c < x[2]; c++) {
            double sum = 0;
            for (int64_t i = rows.begin; i < rows.end; i++)
                for (int64_t j = columns.begin; j < columns.end; j++)
                    sum += ref_in(call, 0, ((sample * x[0] + i) * x[1] + j) * x[2] + c);
            int64_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
            ref_out(call, 0, place * x[2] + c, sum / (double)count);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_adaptive_avg_pool = {.op = "adaptive_avg_pool", .name = "ref", .run = run_adaptive_avg_pool};

/* Weight of window i of `places` for row (or column) `at` of `size`: 1 / elements, or 0 outside the window. */
static double adaptive_share(int64_t i, int64_t places, int64_t at, int64_t size)
{
    ref_range range = adaptive_range(i, size, places);
    return at >= range.begin && at < range.end ? 1 / (double)(range.end - range.begin) : 0;
}

static att_status run_adaptive_avg_pool_grad(const att_call *call)
{
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    ref_range pixels = ref_share(call, call->problem->group * x[0] * x[1]);
    for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel++) {
        int64_t sample = pixel / (x[0] * x[1]), row = pixel / x[1] % x[0], column = pixel % x[1];
        for (int64_t c = 0; c < x[2]; c++) {
            double sum = 0;
            for (int64_t i = 0; i < y[0]; i++)
                for (int64_t j = 0; j < y[1]; j++) {
                    double share = adaptive_share(i, y[0], row, x[0]) * adaptive_share(j, y[1], column, x[1]);
                    if (share > 0)
                        sum += share * ref_in(call, DY, ((sample * y[0] + i) * y[1] + j) * x[2] + c);
                }
            ref_out(call, 0, pixel * x[2] + c, sum);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_adaptive_avg_pool_grad = {
    .op = "adaptive_avg_pool_grad", .name = "ref", .run = run_adaptive_avg_pool_grad};
