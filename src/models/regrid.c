#include "models/regrid.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "data/filter.h"

/* The lines of a pass: `count` of them, each of samples `stride` blocks of `block` numbers apart. */
typedef struct pass {
    int lines;
    int64_t block;                   /* numbers that are weighted alike */
    int64_t line_in, line_out, step; /* numbers from line to line, and from sample to sample */
} pass;

static void weigh(const double *in, int64_t step, const double *weights, int count, double *out, int64_t block)
{
    memset(out, 0, (size_t)block * sizeof *out);
    for (int i = 0; i < count; i++)
        for (int64_t n = 0; n < block; n++)
            out[n] += weights[i] * in[i * step + n];
}

/* Each of p->lines lines of grid->from samples becomes one of grid->to. */
static void resize_lines(const att_regrid *grid, const pass *p, double *weights, const double *in, double *out)
{
    for (int x = 0; x < grid->to; x++) {
        int first, count = att_filter_weights(ATT_BICUBIC, grid->from, grid->to, x, &first, weights);
        for (int line = 0; line < p->lines; line++)
            weigh(in + line * p->line_in + first * p->step, p->step, weights, count,
                  out + line * p->line_out + x * p->step, p->block);
    }
}

att_status att_regrid_table(att_context *context, const att_regrid *grid, const double *in, double *out)
{
    int64_t width = grid->width, kept = grid->prefix * width;
    size_t room = (size_t)att_filter_room(ATT_BICUBIC, grid->from, grid->to);
    size_t between = att_size_product((size_t)grid->from * (size_t)grid->to, (size_t)width);
    double *weights = att_allocate_array(context, room, sizeof *weights);
    double *half = att_allocate_array(context, between, sizeof *half);
    att_status status = ATT_OK;
    if (weights && half) {
        const pass across = {grid->from, width, grid->from * width, grid->to * width, width};
        const pass down = {1, grid->to * width, 0, 0, grid->to * width};
        memcpy(out, in, (size_t)kept * sizeof *out);
        resize_lines(grid, &across, weights, in + kept, half);
        resize_lines(grid, &down, weights, half, out + kept);
    } else {
        status = att_fail_memory(context, att_size_product(between, sizeof *half), "position embeddings");
    }
    att_free(context, weights);
    att_free(context, half);
    return status;
}
