#include "engine/ops/pool.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

/* One axis of a pool: `places` windows over `size` elements. kernel: elements per window; 0: adaptive, the windows
 * divide `size`. */
typedef struct axis {
    int64_t size, places, kernel, stride, padding;
    bool counted; /* padding counts in means */
} axis;

/* x [group, down.size, across.size, channels], y [group, down.places, across.places, channels], or their gradients. */
typedef struct pool {
    axis down, across;
    int64_t group, channels;
} pool;

static pool pool_of(const att_call *call, const att_desc *x, const att_desc *y, bool adaptive)
{
    const att_pool_attrs *attrs = call->problem->attrs;
    pool p = {.group = call->problem->group, .channels = att_columns(x)};
    axis *axes[] = {&p.down, &p.across};
    for (int i = 0; i < 2; i++) {
        *axes[i] = (axis){.size = x->shape.dims[i], .places = y->shape.dims[i]};
        if (adaptive)
            continue;
        axes[i]->kernel = attrs->kernel;
        axes[i]->stride = attrs->stride;
        axes[i]->padding = attrs->padding;
        axes[i]->counted = attrs->count_padding;
    }
    return p;
}

/* Elements [begin, end) of a window. count: the divisor of a mean. */
typedef struct span {
    int64_t begin, end, count;
} span;

static span span_of(const axis *a, int64_t place)
{
    if (a->kernel == 0) {
        int64_t begin = place * a->size / a->places, end = ((place + 1) * a->size + a->places - 1) / a->places;
        return (span){begin, end, end - begin};
    }
    int64_t first = place * a->stride - a->padding, last = first + a->kernel, limit = a->size + a->padding;
    span s = {first > 0 ? first : 0, last < a->size ? last : a->size, 0};
    s.count = a->counted ? (last < limit ? last : limit) - first : s.end - s.begin;
    return s;
}

/* The windows [begin, end) that contain element `at`. */
static att_range places_of(const axis *a, int64_t at)
{
    if (a->kernel == 0)
        return (att_range){at * a->places / a->size, ((at + 1) * a->places + a->size - 1) / a->size};
    int64_t first = at + a->padding - a->kernel + 1, end = (at + a->padding) / a->stride + 1;
    return (att_range){first > 0 ? (first + a->stride - 1) / a->stride : 0, end < a->places ? end : a->places};
}

/* Sample, rows and columns of a window. Windows are counted over all samples. */
typedef struct place {
    int64_t sample;
    span rows, columns;
} place;

static place place_of(const pool *p, int64_t window)
{
    int64_t row = window / p->across.places;
    return (place){row / p->down.places, span_of(&p->down, row % p->down.places),
                   span_of(&p->across, window % p->across.places)};
}

static int64_t pixel_of(const pool *p, int64_t sample, int64_t row, int64_t column)
{
    return ((sample * p->down.size + row) * p->across.size + column) * p->channels;
}

/* Vectors of channels for which a window is read at once: pixels are far apart in memory. */
enum { VECTORS = 8 };

/* --- maximum ------------------------------------------------------------------------------------------------------ */

ATT_INLINE vf choose(vi first, vf a, vf b)
{
    return (vf)((first & (vi)a) | (~first & (vi)b));
}

/* Lanes in which x replaces the maximum so far. NaN replaces every number and is not replaced. */
ATT_INLINE vi replaces(vf x, vf best)
{
    return (vi)(x > best) | (vi)(x != x);
}

/* `vectors` vectors of channels from c on, of one window. */
ATT_INLINE void maximum_of(const att_call *call, const pool *p, int64_t window, place at, int64_t c, int vectors,
                           bool x_is_bf16, bool y_is_bf16)
{
    vf best[VECTORS];
    int64_t to = window * p->channels;
    for (int v = 0; v < vectors; v++)
        best[v] = v_set(-__builtin_inff());
    for (int64_t i = at.rows.begin; i < at.rows.end; i++)
        for (int64_t j = at.columns.begin; j < at.columns.end; j++) {
            int64_t pixel = pixel_of(p, at.sample, i, j);
            for (int v = 0; v < vectors; v++) {
                vf x = v_get_until(call->in[0], pixel + c + v * VW, pixel + p->channels, x_is_bf16);
                best[v] = choose(replaces(x, best[v]), x, best[v]);
            }
        }
    for (int v = 0; v < vectors; v++)
        v_put_until(call->out[0], to + c + v * VW, to + p->channels, best[v], y_is_bf16);
}

ATT_INLINE void max_pool_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    pool p = pool_of(call, &call->problem->in[0], &call->problem->out[0], false);
    att_range part = att_part_of(call, p.group * p.down.places * p.across.places, 1);
    for (int64_t window = part.begin; window < part.end; window++) {
        place at = place_of(&p, window);
        int64_t c = 0;
        for (; c + VECTORS * VW <= p.channels; c += VECTORS * VW)
            maximum_of(call, &p, window, at, c, VECTORS, x_is_bf16, y_is_bf16);
        for (; c < p.channels; c += VW)
            maximum_of(call, &p, window, at, c, 1, x_is_bf16, y_is_bf16);
    }
}

static att_status max_pool_run(const att_call *call)
{
    return run_for_types(call, max_pool_as, &call->problem->in[0], &call->problem->out[0]);
}

ATT_SIMD_KERNEL(max_pool, .bf16_in = 3, .bf16_out = 1, .run = max_pool_run);

enum { DY, X };

/* For up to VW channels from c on: adds dy [window] to dx [h, w, channels] of one sample, at the position of the first
 * maximum of x. */
ATT_INLINE void add_to_maximum(const att_call *call, const pool *p, int64_t window, int64_t c, float *dx,
                               bool x_is_bf16, bool dy_is_bf16)
{
    place at = place_of(p, window);
    int64_t end = p->channels - c;
    vf best = v_set(-__builtin_inff());
    vi index = {0}, number = {0}; /* index 0, the first element, stays if all elements are minus infinity */
    for (int64_t i = at.rows.begin; i < at.rows.end; i++)
        for (int64_t j = at.columns.begin; j < at.columns.end; j++, number += 1) {
            int64_t pixel = pixel_of(p, at.sample, i, j) + c;
            vf x = v_get_until(call->in[X], pixel, pixel + end, x_is_bf16);
            vi better = replaces(x, best);
            best = choose(better, x, best);
            index = (better & number) | (~better & index);
        }
    int64_t from = window * p->channels + c;
    vf dy = v_get_until(call->in[DY], from, from + end, dy_is_bf16);
    number = (vi){0};
    for (int64_t i = at.rows.begin; i < at.rows.end; i++)
        for (int64_t j = at.columns.begin; j < at.columns.end; j++, number += 1) {
            int64_t pixel = pixel_of(p, 0, i, j) + c;
            vf old = v_get_until(dx, pixel, pixel + end, false);
            v_put_until(dx, pixel, pixel + end, old + v_where((vi)(index == number), dy), false);
        }
}

/* Channels [begin, end) of one sample. A bf16 gradient is summed in f32 in scratch. */
ATT_INLINE void max_grad_of_sample(const att_call *call, const pool *p, int64_t sample, att_range channels,
                                   bool x_is_bf16, bool dy_is_bf16, bool dx_is_bf16)
{
    int64_t pixels = p->down.size * p->across.size, windows = p->down.places * p->across.places;
    float *dx = dx_is_bf16 ? call->scratch : (float *)call->out[0] + sample * pixels * p->channels;
    size_t width = (size_t)(channels.end - channels.begin);
    for (int64_t pixel = 0; pixel < pixels; pixel++)
        memset(dx + pixel * p->channels + channels.begin, 0, width * sizeof *dx);
    for (int64_t window = sample * windows; window < (sample + 1) * windows; window++)
        for (int64_t c = channels.begin; c < channels.end; c += VW)
            add_to_maximum(call, p, window, c, dx, x_is_bf16, dy_is_bf16);
    for (int64_t pixel = 0; dx_is_bf16 && pixel < pixels; pixel++)
        for (int64_t c = channels.begin; c < channels.end; c += VW) {
            int64_t from = pixel * p->channels, to = (sample * pixels + pixel) * p->channels;
            v_put_until(call->out[0], to + c, to + channels.end, v_get_until(dx, from + c, from + channels.end, false),
                        true);
        }
}

/* Parts share vectors of channels of all samples. */
ATT_INLINE void max_pool_grad_as(const att_call *call, bool x_is_bf16, bool dy_is_bf16, bool dx_is_bf16)
{
    pool p = pool_of(call, &call->problem->out[0], &call->problem->in[DY], false);
    int64_t vectors = (p.channels + VW - 1) / VW;
    att_range part = att_part_of(call, p.group * vectors, 1);
    for (int64_t unit = part.begin, next; unit < part.end; unit = next) {
        int64_t sample = unit / vectors, last = (sample + 1) * vectors;
        next = last < part.end ? last : part.end;
        att_range channels = {unit % vectors * VW, (next - sample * vectors) * VW};
        channels.end = channels.end < p.channels ? channels.end : p.channels;
        max_grad_of_sample(call, &p, sample, channels, x_is_bf16, dy_is_bf16, dx_is_bf16);
    }
}

static att_status max_pool_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    bool dy = att_is_bf16(&problem->in[DY]), x = att_is_bf16(&problem->in[X]), dx = att_is_bf16(problem->out);
    if (!dy && !x && !dx)
        max_pool_grad_as(call, false, false, false);
    else if (dy && x && dx)
        max_pool_grad_as(call, true, true, true);
    else
        max_pool_grad_as(call, x, dy, dx);
    return ATT_OK;
}

static att_status max_pool_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    if (att_is_bf16(&problem->out[0]))
        prepared->scratch_bytes =
            (size_t)(att_problem_count(problem, &problem->out[0]) / problem->group) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(max_pool_grad, .bf16_in = 3, .bf16_out = 1, .prepare = max_pool_grad_prepare, .run = max_pool_grad_run);

/* --- mean --------------------------------------------------------------------------------------------------------- */

/* `vectors` vectors of channels from c on, of one window. */
ATT_INLINE void mean_of(const att_call *call, const pool *p, int64_t window, place at, int64_t c, int vectors,
                        bool x_is_bf16, bool y_is_bf16)
{
    vf sum[VECTORS] = {0}, share = v_set(1 / (float)(at.rows.count * at.columns.count));
    int64_t to = window * p->channels;
    for (int64_t i = at.rows.begin; i < at.rows.end; i++)
        for (int64_t j = at.columns.begin; j < at.columns.end; j++) {
            int64_t pixel = pixel_of(p, at.sample, i, j);
            for (int v = 0; v < vectors; v++)
                sum[v] += v_get_until(call->in[0], pixel + c + v * VW, pixel + p->channels, x_is_bf16);
        }
    for (int v = 0; v < vectors; v++)
        v_put_until(call->out[0], to + c + v * VW, to + p->channels, sum[v] * share, y_is_bf16);
}

ATT_INLINE void mean_as(const att_call *call, const pool *p, bool x_is_bf16, bool y_is_bf16)
{
    att_range part = att_part_of(call, p->group * p->down.places * p->across.places, 1);
    for (int64_t window = part.begin; window < part.end; window++) {
        place at = place_of(p, window);
        int64_t c = 0;
        for (; c + VECTORS * VW <= p->channels; c += VECTORS * VW)
            mean_of(call, p, window, at, c, VECTORS, x_is_bf16, y_is_bf16);
        for (; c < p->channels; c += VW)
            mean_of(call, p, window, at, c, 1, x_is_bf16, y_is_bf16);
    }
}

static att_status mean_run(const att_call *call, bool adaptive)
{
    pool p = pool_of(call, &call->problem->in[0], &call->problem->out[0], adaptive);
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!x && !y)
        mean_as(call, &p, false, false);
    else
        mean_as(call, &p, x, y);
    return ATT_OK;
}

/* sum [channels] += share dy, or = if `first`. */
ATT_INLINE void add_share(const void *dy, int64_t from, int64_t channels, float share, bool first, float *sum,
                          bool dy_is_bf16)
{
    for (int64_t c = 0; c < channels; c += VW) {
        vf old = first ? (vf){0} : v_get_until(sum, c, channels, false);
        v_put_until(sum, c, channels, v_fma(v_get_until(dy, from + c, from + channels, dy_is_bf16), v_set(share), old),
                    false);
    }
}

/* Parts share the pixels of dx. Each is the sum over the windows that contain it, in scratch if dx is bf16. */
ATT_INLINE void mean_grad_as(const att_call *call, const pool *p, bool dy_is_bf16, bool dx_is_bf16)
{
    att_range part = att_part_of(call, p->group * p->down.size * p->across.size, 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        int64_t row = pixel / p->across.size, sample = row / p->down.size;
        att_range down = places_of(&p->down, row % p->down.size);
        att_range across = places_of(&p->across, pixel % p->across.size);
        float *sum = dx_is_bf16 ? call->scratch : (float *)call->out[0] + pixel * p->channels;
        bool none = down.begin >= down.end || across.begin >= across.end;
        if (none)
            memset(sum, 0, (size_t)p->channels * sizeof *sum);
        for (int64_t i = down.begin; i < down.end; i++)
            for (int64_t j = across.begin; j < across.end; j++) {
                int64_t window = (sample * p->down.places + i) * p->across.places + j;
                int64_t count = span_of(&p->down, i).count * span_of(&p->across, j).count;
                add_share(call->in[0], window * p->channels, p->channels, 1 / (float)count,
                          i == down.begin && j == across.begin, sum, dy_is_bf16);
            }
        for (int64_t c = 0; dx_is_bf16 && c < p->channels; c += VW)
            v_put_until(call->out[0], pixel * p->channels + c, (pixel + 1) * p->channels,
                        v_get_until(sum, c, p->channels, false), true);
    }
}

static att_status mean_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    if (att_is_bf16(&problem->out[0]))
        prepared->scratch_bytes = (size_t)att_columns(&problem->out[0]) * sizeof(float);
    return ATT_OK;
}

static att_status mean_grad_run(const att_call *call, bool adaptive)
{
    pool p = pool_of(call, &call->problem->out[0], &call->problem->in[0], adaptive);
    bool dy = att_is_bf16(&call->problem->in[0]), dx = att_is_bf16(&call->problem->out[0]);
    if (!dy && !dx)
        mean_grad_as(call, &p, false, false);
    else
        mean_grad_as(call, &p, dy, dx);
    return ATT_OK;
}

static att_status avg_pool_run(const att_call *call)
{
    return mean_run(call, false);
}

static att_status avg_pool_grad_run(const att_call *call)
{
    return mean_grad_run(call, false);
}

static att_status adaptive_avg_pool_run(const att_call *call)
{
    return mean_run(call, true);
}

static att_status adaptive_avg_pool_grad_run(const att_call *call)
{
    return mean_grad_run(call, true);
}

#define MEAN(op, prepare_) ATT_SIMD_KERNEL(op, .bf16_in = 1, .bf16_out = 1, .prepare = prepare_, .run = op##_run);
MEAN(avg_pool, NULL)
MEAN(avg_pool_grad, mean_grad_prepare)
MEAN(adaptive_avg_pool, NULL)
MEAN(adaptive_avg_pool_grad, mean_grad_prepare)
