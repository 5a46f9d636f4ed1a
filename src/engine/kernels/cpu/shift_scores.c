#include "engine/ops/shift_scores.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Parts share the heads of all samples. For a query in row y and column x of the grid, the keys of row y' have
 * consecutive numbers, in descending order. */

/* Shift between the query and the first key of row y' of the grid; shifts of the keys after it are smaller by 1 each.
 * query: its place on the grid. */
static int64_t first_shift(const att_shift_scores_attrs *attrs, int64_t query, int64_t row)
{
    int64_t w = attrs->width;
    return (query / w - row + attrs->height - 1) * (2 * w - 1) + query % w + w - 1;
}

/* The table of a sample, from which one head is read. */
typedef struct head_table {
    const float *numbers;
    int64_t heads, rows;
} head_table;

static float number_at(const head_table *table, int64_t shift)
{
    return shift < table->rows ? table->numbers[shift * table->heads] : 0;
}

static void put_scores(const att_shift_scores_attrs *attrs, const head_table *table, int64_t i, float *scores)
{
    int64_t prefix = attrs->prefix, w = attrs->width;
    if (i < prefix) {
        for (int64_t j = 0; j < att_shift_tokens(attrs); j++)
            scores[j] = number_at(table, att_shift_between(attrs, i, j));
        return;
    }
    for (int64_t j = 0; j < prefix; j++)
        scores[j] = number_at(table, att_shift_between(attrs, i, j));
    for (int64_t row = 0; row < attrs->height; row++) {
        const float *from = table->numbers + first_shift(attrs, i - prefix, row) * table->heads;
        for (int64_t x = 0; x < w; x++)
            scores[prefix + row * w + x] = from[-x * table->heads];
    }
}

static att_status scores_run(const att_call *call)
{
    const att_shift_scores_attrs *attrs = call->problem->attrs;
    const int64_t *dims = call->problem->in[0].shape.dims;
    int64_t tokens = att_shift_tokens(attrs), rows = dims[0], heads = dims[1];
    att_range part = att_part_of(call, call->problem->group * heads, 1);
    for (int64_t number = part.begin; number < part.end; number++) {
        const head_table table = {(const float *)call->in[0] + number / heads * rows * heads + number % heads, heads,
                                  rows};
        for (int64_t i = 0; i < tokens; i++)
            put_scores(attrs, &table, i, (float *)call->out[0] + (number * tokens + i) * tokens);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(shift_scores, .run = scores_run);

/* Adds the gradients of the scores of query i to those of the head's column of the table. */
static void add_scores(const att_shift_scores_attrs *attrs, const float *dy, int64_t i, float *column, int64_t heads)
{
    int64_t prefix = attrs->prefix, w = attrs->width;
    for (int64_t j = 0; j < (i < prefix ? att_shift_tokens(attrs) : prefix); j++) {
        int64_t shift = att_shift_between(attrs, i, j);
        if (shift < attrs->rows)
            column[shift * heads] += dy[j];
    }
    for (int64_t row = 0; i >= prefix && row < attrs->height; row++) {
        float *to = column + first_shift(attrs, i - prefix, row) * heads;
        for (int64_t x = 0; x < w; x++)
            to[-x * heads] += dy[prefix + row * w + x];
    }
}

static att_status grad_run(const att_call *call)
{
    const att_shift_scores_attrs *attrs = call->problem->attrs;
    int64_t tokens = att_shift_tokens(attrs), heads = call->problem->in[0].shape.dims[0];
    att_range part = att_part_of(call, call->problem->group * heads, 1);
    for (int64_t number = part.begin; number < part.end; number++) {
        float *column = (float *)call->out[0] + number / heads * attrs->rows * heads + number % heads;
        for (int64_t shift = 0; shift < attrs->rows; shift++)
            column[shift * heads] = 0;
        for (int64_t i = 0; i < tokens; i++)
            add_scores(attrs, (const float *)call->in[0] + (number * tokens + i) * tokens, i, column, heads);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(shift_scores_grad, .run = grad_run);
