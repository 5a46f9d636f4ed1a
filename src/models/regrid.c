#include "models/regrid.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "data/filter.h"

/* One pass of the separable resize: resamples `lines` lines from `from` to `to` samples each. */
typedef struct pass {
    int from, to, lines;
    int64_t block;                   /* numbers per sample, which share a weight */
    int64_t line_in, line_out, step; /* strides between lines and between samples */
} pass;

static void weigh(const double *in, int64_t step, const double *weights, int count, double *out, int64_t block)
{
    memset(out, 0, (size_t)block * sizeof *out);
    for (int i = 0; i < count; i++)
        for (int64_t n = 0; n < block; n++)
            out[n] += weights[i] * in[i * step + n];
}

static void resize_lines(const pass *p, double *weights, const double *in, double *out)
{
    for (int x = 0; x < p->to; x++) {
        int first, count = att_filter_weights(ATT_BICUBIC, p->from, p->to, x, &first, weights);
        for (int line = 0; line < p->lines; line++)
            weigh(in + line * p->line_in + first * p->step, p->step, weights, count,
                  out + line * p->line_out + x * p->step, p->block);
    }
}

att_status att_regrid_table(att_context *context, const att_regrid *grid, const double *in, double *out)
{
    int64_t width = grid->width, kept = grid->prefix * width;
    const int *from = grid->from, *to = grid->to;
    size_t rooms[2];
    for (int i = 0; i < 2; i++)
        rooms[i] = (size_t)att_filter_max_weights(ATT_BICUBIC, from[i], to[i]);
    size_t between = att_size_product((size_t)from[0] * (size_t)to[1], (size_t)width);
    double *weights = att_allocate_array(context, rooms[0] > rooms[1] ? rooms[0] : rooms[1], sizeof *weights);
    double *half = att_allocate_array(context, between, sizeof *half);
    att_status status = ATT_OK;
    if (weights && half) {
        const pass across = {from[1], to[1], from[0], width, from[1] * width, to[1] * width, width};
        const pass down = {from[0], to[0], 1, to[1] * width, 0, 0, to[1] * width};
        memcpy(out, in, (size_t)kept * sizeof *out);
        resize_lines(&across, weights, in + kept, half);
        resize_lines(&down, weights, half, out + kept);
    } else {
        status = att_fail_memory(context, att_size_product(between, sizeof *half), "position embeddings");
    }
    att_free(context, weights);
    att_free(context, half);
    return status;
}
