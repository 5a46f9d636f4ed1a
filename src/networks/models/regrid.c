#include "networks/models/regrid.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "data/filter.h"

/* One pass of the separable resize: resamples `lines` lines from `from` to `to` samples each. */
typedef struct pass {
    int from, to, lines;
    int64_t block;                   /* numbers per sample, which share a weight */
    int64_t line_in, line_out, step; /* strides between lines and between samples */
    att_regrid_way way;
} pass;

static void weigh(const double *in, int64_t step, const double *weights, int count, double *out, int64_t block)
{
    memset(out, 0, (size_t)block * sizeof *out);
    for (int i = 0; i < count; i++)
        for (int64_t n = 0; n < block; n++)
            out[n] += weights[i] * in[i * step + n];
}

/* Distance of the shift `steps` from shift 0 among old shifts with ratio q: 1 + q + q^2 + .. */
static double distance_of(int steps, double q)
{
    double sum = 0, term = 1;
    for (int i = 0; i < steps; i++, term *= q)
        sum += term;
    return sum;
}

/* The ratio with which `from` old shifts span `to` new ones, by bisection as in timm. */
static double ratio_of(int from, int to)
{
    double low = 1.01, high = 1.5, q = low;
    while (high - low > 1e-6) {
        q = (low + high) / 2;
        if (distance_of(from / 2, q) > to / 2)
            high = q;
        else
            low = q;
    }
    return q;
}

static double place_of(int shift, int from, double q)
{
    int steps = shift - from / 2;
    return steps < 0 ? -distance_of(-steps, q) : distance_of(steps, q);
}

/* Weights of the two old shifts beside new shift x, of which the first is *first. */
static int weigh_shifts(int from, int to, int x, int *first, double weights[2])
{
    double q = ratio_of(from, to), at = x - to / 2;
    int right = 0;
    while (right < from - 1 && place_of(right, from, q) < at)
        right++;
    *first = right > 0 ? right - 1 : 0;
    double left = place_of(*first, from, q), span = place_of(right, from, q) - left;
    weights[0] = span > 0 && at > left ? fmax(0, left + span - at) / span : 1;
    weights[1] = 1 - weights[0];
    return right > *first ? 2 : 1;
}

/* Weights of the two old patches beside new patch x, of which the first is *first. */
static int weigh_neighbours(bool corners, int from, int to, int x, int *first, double weights[2])
{
    double at = corners ? (to > 1 ? (double)x * (from - 1) / (to - 1) : 0) : (x + 0.5) * from / to - 0.5;
    at = fmin(fmax(at, 0), from - 1);
    *first = (int)at;
    weights[1] = at - *first;
    weights[0] = 1 - weights[1];
    return *first + 1 < from ? 2 : 1;
}

/* Keys' cubic convolution with a = -0.75, at a distance. */
static double keys(double distance)
{
    static const double a = -0.75;
    const double d = fabs(distance);
    return d < 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? a * (((d - 5) * d + 8) * d - 4) : 0;
}

/* Weights of the four old patches around new patch x. Those beyond the edge are the patch at the edge. */
static int weigh_four(int from, int to, int x, int *first, double weights[4])
{
    enum { NEAREST = 4 };
    const double at = (x + 0.5) * from / to - 0.5;
    const int left = (int)floor(at) - 1, last = from - 1;
    *first = left < 0 ? 0 : left > last ? last : left;
    const int right = left + NEAREST - 1, count = (right < 0 ? 0 : right > last ? last : right) - *first + 1;
    for (int i = 0; i < count; i++)
        weights[i] = 0;
    for (int i = 0; i < NEAREST; i++) {
        const int old = left + i < 0 ? 0 : left + i > last ? last : left + i;
        weights[old - *first] += keys(at - (left + i));
    }
    return count;
}

static int weigh_old(const pass *p, int x, int *first, double *weights)
{
    if (p->way == ATT_REGRID_SHIFTS)
        return weigh_shifts(p->from, p->to, x, first, weights);
    if (p->way == ATT_REGRID_BICUBIC || p->way == ATT_REGRID_BILINEAR_ANTIALIASED)
        return att_filter_weights(p->way == ATT_REGRID_BICUBIC ? ATT_BICUBIC : ATT_BILINEAR, p->from, p->to, x, first,
                                  weights);
    if (p->way == ATT_REGRID_PLAIN_BICUBIC)
        return weigh_four(p->from, p->to, x, first, weights);
    return weigh_neighbours(p->way == ATT_REGRID_CORNERS, p->from, p->to, x, first, weights);
}

static void resize_lines(const pass *p, double *weights, const double *in, double *out)
{
    for (int x = 0; x < p->to; x++) {
        int first, count = weigh_old(p, x, &first, weights);
        for (int line = 0; line < p->lines; line++)
            weigh(in + line * p->line_in + first * p->step, p->step, weights, count,
                  out + line * p->line_out + x * p->step, p->block);
    }
}

void att_regrid_sines(const int grid[2], int64_t width, double *out)
{
    enum { TEMPERATURE = 10000 };
    const int64_t quarter = width / 4;
    for (int p = 0; p < grid[0] * grid[1]; p++)
        for (int64_t k = 0; k < quarter; k++) {
            const double omega = pow(TEMPERATURE, -(double)k / (double)(quarter - 1));
            const double x = omega * (p % grid[1]), y = omega * (p / grid[1]);
            double *row = out + p * width + k;
            row[0] = sin(x), row[quarter] = cos(x), row[2 * quarter] = sin(y), row[3 * quarter] = cos(y);
        }
}

att_status att_regrid_table(att_context *context, const att_regrid *grid, const double *in, double *out)
{
    if (grid->way == ATT_REGRID_SINES) {
        memcpy(out, in, (size_t)(grid->extra * grid->width) * sizeof *out);
        att_regrid_sines(grid->to, grid->width, out + grid->extra * grid->width);
        return ATT_OK;
    }
    int64_t width = grid->width, extra = grid->extra * width;
    const int *from = grid->from, *to = grid->to;
    /* First numbers of the extra rows and of the others. */
    bool shifts = grid->way == ATT_REGRID_SHIFTS;
    int64_t extra_in = shifts ? width * from[0] * from[1] : 0, first = shifts ? 0 : extra;
    int64_t extra_out = shifts ? width * to[0] * to[1] : 0;
    size_t rooms[2];
    for (int i = 0; i < 2; i++)
        rooms[i] = (size_t)att_filter_max_weights(ATT_BICUBIC, from[i], to[i]);
    size_t between = att_size_product((size_t)from[0] * (size_t)to[1], (size_t)width);
    double *weights = att_allocate_array(context, rooms[0] > rooms[1] ? rooms[0] : rooms[1], sizeof *weights);
    double *half = att_allocate_array(context, between, sizeof *half);
    att_status status = ATT_OK;
    if (weights && half) {
        const pass across = {from[1], to[1], from[0], width, from[1] * width, to[1] * width, width, grid->way};
        const pass down = {from[0], to[0], 1, to[1] * width, 0, 0, to[1] * width, grid->way};
        memcpy(out + extra_out, in + extra_in, (size_t)extra * sizeof *out);
        resize_lines(&across, weights, in + first, half);
        resize_lines(&down, weights, half, out + first);
    } else {
        status = att_fail_memory(context, att_size_product(between, sizeof *half), "position embeddings");
    }
    att_free(context, weights);
    att_free(context, half);
    return status;
}
