/* Heads that attend by position: their shapes, and the convolution nearest to a layer. */
#include "networks/models/position_heads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/family.h"

/* --- reading ------------------------------------------------------------------------------------------------------ */

int att_position_layers(const att_model *model)
{
    const att_position_family *positions = att_model_family(model)->positions;
    return positions ? positions->layers(att_model_settings(model)) : 0;
}

att_status att_position_parameter(const att_position_heads *heads, const att_model *model, const att_weights *weights,
                                  const char *name, int64_t count, double **values)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", heads->scope, name);
    const int index = att_weights_find(weights, full);
    if (index < 0)
        return att_fail(heads->context, ATT_ERR_NOT_FOUND, "the weights have no parameter \"%s\"", full);
    if (att_shape_count(att_weights_at(weights, index).shape) != count)
        return att_fail(heads->context, ATT_ERR_MISMATCH, "parameter \"%s\" should have %lld elements", full,
                        (long long)count);
    double *read;
    ATT_TRY(att_new(heads->context, &read, (size_t)count, "the parameters of heads"));
    att_status status = att_model_parameter(model, weights, index, count, read);
    for (int64_t i = 0; i < count && status == ATT_OK; i++)
        if (!isfinite(read[i]))
            status = att_fail(heads->context, ATT_ERR_NONFINITE, "parameter \"%s\": element %lld is not finite", full,
                              (long long)i);
    if (status == ATT_OK)
        *values = read;
    else
        att_free(heads->context, read);
    return status;
}

/* -1/2 |(d - Delta) S|^2 */
static double score_of_form(const att_position_form *form, double row, double column)
{
    const double from[2] = {row - form->center[0], column - form->center[1]};
    double sum = 0;
    for (int j = 0; j < 2; j++) {
        const double along = from[0] * form->factors[0][j] + from[1] * form->factors[1][j];
        sum += along * along;
    }
    return -sum / 2;
}

static att_status score_forms(att_position_heads *heads)
{
    const int rows = 2 * heads->grid[0] - 1, columns = 2 * heads->grid[1] - 1;
    const size_t count = (size_t)heads->count * (size_t)rows * (size_t)columns;
    ATT_TRY(att_new(heads->context, &heads->scores, count, "the scores of a layer"));
    double *score = heads->scores;
    for (int h = 0; h < heads->count; h++)
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < columns; x++)
                *score++ = score_of_form(&heads->forms[h], y - heads->grid[0] + 1, x - heads->grid[1] + 1);
    return ATT_OK;
}

att_status att_position_heads_read(const att_model *model, const att_weights *weights, int layer,
                                   att_position_heads **out)
{
    att_context *context = att_graph_context(att_model_graph(model));
    const att_position_family *positions = att_model_family(model)->positions;
    const int layers = att_position_layers(model);
    if (layer < 0 || layer >= layers)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s has %d layers of attention by position, there is no layer %d",
                        att_model_name(model), layers, layer);
    att_position_heads *heads;
    ATT_TRY(att_new(context, &heads, 1, "the heads of a layer"));
    heads->context = context;
    heads->count = positions->heads(att_model_settings(model), layer);
    att_status status = positions->read(att_model_settings(model), model, weights, layer, heads);
    if (status == ATT_OK && heads->forms)
        status = score_forms(heads);
    if (status == ATT_OK)
        *out = heads;
    else
        att_position_heads_destroy(&heads);
    return status;
}

void att_position_heads_destroy(att_position_heads **heads)
{
    att_position_heads *h = *heads;
    if (!h)
        return;
    void *const blocks[] = {h->forms, h->scores, h->value, h->proj, h->value_bias, h->proj_bias, h->maps};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        att_free(h->context, blocks[i]);
    att_free(h->context, h);
    *heads = NULL;
}

att_position_heads_info att_position_heads_describe(const att_position_heads *heads)
{
    return (att_position_heads_info){.scope = heads->scope,
                                     .count = heads->count,
                                     .grid_h = heads->grid[0],
                                     .grid_w = heads->grid[1],
                                     .inputs = heads->inputs,
                                     .outputs = heads->outputs};
}

/* --- one head ----------------------------------------------------------------------------------------------------- */

static int64_t count_tokens(const att_position_heads *heads)
{
    return (int64_t)heads->grid[0] * heads->grid[1];
}

static int64_t middle_query(const att_position_heads *heads)
{
    return (int64_t)(heads->grid[0] / 2) * heads->grid[1] + heads->grid[1] / 2;
}

/* Weights of one query, row[N]: the softmax of its scores. */
static void attend(const att_position_heads *heads, int head, int64_t query, double *row)
{
    const int height = heads->grid[0], width = heads->grid[1], columns = 2 * width - 1;
    const int y = (int)(query / width), x = (int)(query % width);
    const double *scores = heads->scores + (int64_t)head * (2 * height - 1) * columns;
    double greatest = -INFINITY, sum = 0;
    for (int i = 0; i < height * width; i++) {
        row[i] = scores[(int64_t)(i / width - y + height - 1) * columns + i % width - x + width - 1];
        greatest = fmax(greatest, row[i]);
    }
    for (int i = 0; i < height * width; i++)
        sum += row[i] = exp(row[i] - greatest);
    for (int i = 0; i < height * width; i++)
        row[i] /= sum;
}

static void describe_attention(const att_position_heads *heads, const double *row, att_position_head *found)
{
    const int width = heads->grid[1], y = heads->grid[0] / 2, x = width / 2;
    double square = 0;
    for (int i = 0; i < heads->grid[0] * width; i++) {
        const int shift[2] = {i / width - y, i % width - x};
        for (int axis = 0; axis < 2; axis++)
            found->shift[axis] += row[i] * shift[axis];
        if (row[i] > found->most) {
            found->most = row[i];
            found->most_at[0] = shift[0], found->most_at[1] = shift[1];
        }
    }
    for (int i = 0; i < heads->grid[0] * width; i++)
        square += row[i] * (pow(i / width - y - found->shift[0], 2) + pow(i % width - x - found->shift[1], 2));
    found->spread = sqrt(square);
}

/* Eigenvalues of P = S S'. The smaller one is det(P) over the larger one, which is exact for ill-conditioned S. */
static void describe_form(const att_position_form *form, att_position_head *found)
{
    const double(*s)[2] = form->factors;
    const double rows = s[0][0] * s[0][0] + s[0][1] * s[0][1], columns = s[1][0] * s[1][0] + s[1][1] * s[1][1];
    const double across = s[0][0] * s[1][0] + s[0][1] * s[1][1], determinant = s[0][0] * s[1][1] - s[0][1] * s[1][0];
    const double large = (rows + columns) / 2 + hypot((rows - columns) / 2, across);
    found->quadratic = true;
    memcpy(found->center, form->center, sizeof found->center);
    found->precision[1] = large;
    found->precision[0] = large > 0 ? determinant * (determinant / large) : 0;
    found->degenerate = !(large >= ATT_LEAST_PRECISION) || !(large <= ATT_MOST_CONDITION * found->precision[0]);
}

att_status att_position_heads_at(const att_position_heads *heads, int head, att_position_head *found)
{
    const size_t tokens = (size_t)count_tokens(heads);
    if (head < 0 || head >= heads->count)
        return att_fail(heads->context, ATT_ERR_ARGUMENT, "%s has %d heads, there is no head %d", heads->scope,
                        heads->count, head);
    double *row;
    ATT_TRY(att_new(heads->context, &row, tokens, "the attention of a query"));
    *found = (att_position_head){0};
    attend(heads, head, middle_query(heads), row);
    describe_attention(heads, row, found);
    if (heads->forms)
        describe_form(&heads->forms[head], found);
    att_free(heads->context, row);
    return ATT_OK;
}

/* --- the nearest convolution ---------------------------------------------------------------------------------------
 */

/* W_h' = proj value_h of all heads. */
static att_status multiply_maps(att_position_heads *heads)
{
    const int64_t inputs = heads->inputs, all = inputs * heads->count;
    const size_t count = (size_t)(all * heads->outputs);
    if (heads->maps)
        return ATT_OK;
    ATT_TRY(att_new(heads->context, &heads->maps, count, "the linear maps of heads"));
    for (int h = 0; h < heads->count; h++)
        for (int64_t o = 0; o < heads->outputs; o++) {
            double *row = heads->maps + (h * heads->outputs + o) * inputs;
            for (int64_t m = 0; m < heads->middle; m++) {
                const double factor = heads->proj[o * heads->middle + m];
                const double *value = heads->value + m * all + h * inputs;
                for (int64_t i = 0; i < inputs; i++)
                    row[i] += factor * value[i];
            }
        }
    return ATT_OK;
}

/* The search for one convolution. All matrices M are combinations of the W_h, so that numbers for the heads stand for
 * them: |sum_h m_h W_h|^2 = m' G m with the Gram matrix G of the W_h. */
typedef struct fit {
    const att_position_heads *heads;
    int kernel;
    double *gram; /* [H, H] */
    double *rows; /* [H, N]: maps of one query */
    double *taps; /* [kernel, kernel, H]: the kernel's combination of the W_h at each shift */
} fit;

static void fill_gram(const fit *f)
{
    const att_position_heads *heads = f->heads;
    const int64_t size = heads->inputs * heads->outputs;
    for (int a = 0; a < heads->count; a++)
        for (int b = 0; b <= a; b++) {
            const double *left = heads->maps + a * size, *right = heads->maps + b * size;
            double sum = 0;
            for (int64_t i = 0; i < size; i++)
                sum += left[i] * right[i];
            f->gram[a * heads->count + b] = f->gram[b * heads->count + a] = sum;
        }
}

/* Returns the tap for a key of a query, -1 if the kernel does not reach it. */
static int64_t tap_of(const fit *f, int64_t query, int64_t key)
{
    const int64_t width = f->heads->grid[1], reach = f->kernel / 2;
    const int64_t y = key / width - query / width + reach, x = key % width - query % width + reach;
    return y >= 0 && y < f->kernel && x >= 0 && x < f->kernel ? y * f->kernel + x : -1;
}

static void attend_all(const fit *f, int64_t query)
{
    for (int h = 0; h < f->heads->count; h++)
        attend(f->heads, h, query, f->rows + h * count_tokens(f->heads));
}

static void fill_taps(const fit *f)
{
    const int64_t tokens = count_tokens(f->heads), heads = f->heads->count, query = middle_query(f->heads);
    attend_all(f, query);
    for (int64_t key = 0; key < tokens; key++) {
        const int64_t tap = tap_of(f, query, key);
        for (int64_t h = 0; h < heads && tap >= 0; h++)
            f->taps[tap * heads + h] = f->rows[h * tokens + key];
    }
}

/* |sum_h (rows_h(key) - taps_h) W_h|^2; taps NULL: 0. */
static double square_of(const fit *f, int64_t key, const double *taps)
{
    const int64_t tokens = count_tokens(f->heads), heads = f->heads->count;
    double sum = 0;
    for (int64_t a = 0; a < heads; a++) {
        const double left = f->rows[a * tokens + key] - (taps ? taps[a] : 0);
        for (int64_t b = 0; b < heads; b++)
            sum += left * f->gram[a * heads + b] * (f->rows[b * tokens + key] - (taps ? taps[b] : 0));
    }
    return fmax(sum, 0);
}

/* The error and the whole of one query, as squares. */
typedef struct squares {
    double missed, all;
} squares;

static squares compare_query(const fit *f, int64_t query)
{
    squares sum = {0};
    attend_all(f, query);
    for (int64_t key = 0; key < count_tokens(f->heads); key++) {
        const int64_t tap = tap_of(f, query, key);
        sum.all += square_of(f, key, NULL);
        sum.missed += square_of(f, key, tap < 0 ? NULL : f->taps + tap * f->heads->count);
    }
    return sum;
}

/* 0 if there is nothing to miss: all W_h are 0. */
static double relative(squares sum)
{
    return sum.all > 0 ? sqrt(sum.missed / sum.all) : 0;
}

static att_nearest_convolution measure_fit(const fit *f)
{
    squares sum = {0};
    att_nearest_convolution found = {0};
    for (int64_t query = 0; query < count_tokens(f->heads); query++) {
        const squares of_query = compare_query(f, query);
        sum.missed += of_query.missed;
        sum.all += of_query.all;
        if (query == middle_query(f->heads))
            found.error = relative(of_query);
    }
    found.grid_error = relative(sum);
    return found;
}

static void write_weight(const fit *f, float *weight)
{
    const att_position_heads *heads = f->heads;
    const int64_t size = heads->inputs * heads->outputs, taps = (int64_t)f->kernel * f->kernel;
    for (int64_t i = 0; i < size; i++)
        for (int64_t tap = 0; tap < taps; tap++) {
            double sum = 0;
            for (int64_t h = 0; h < heads->count; h++)
                sum += f->taps[tap * heads->count + h] * heads->maps[h * size + i];
            weight[i * taps + tap] = (float)sum;
        }
}

/* The rows of a map have the sum 1, so that the bias of the values passes through it unchanged. */
static void write_bias(const att_position_heads *heads, float *bias)
{
    for (int64_t o = 0; o < heads->outputs; o++) {
        double sum = heads->proj_bias[o];
        for (int64_t m = 0; m < heads->middle; m++)
            sum += heads->proj[o * heads->middle + m] * heads->value_bias[m];
        bias[o] = (float)sum;
    }
}

static att_status fit_convolution(fit *f, float *weight, float *bias, att_nearest_convolution *found)
{
    att_context *context = f->heads->context;
    const size_t heads = (size_t)f->heads->count, tokens = (size_t)count_tokens(f->heads);
    const size_t taps = (size_t)f->kernel * (size_t)f->kernel;
    f->gram = att_allocate_array(context, heads * heads, sizeof *f->gram);
    f->rows = att_allocate_array(context, heads * tokens, sizeof *f->rows);
    f->taps = att_allocate_array(context, heads * taps, sizeof *f->taps);
    if (!f->gram || !f->rows || !f->taps)
        return att_fail_memory(context, heads * (heads + tokens + taps) * sizeof *f->rows, "a convolution");
    fill_gram(f);
    fill_taps(f);
    *found = measure_fit(f);
    if (weight)
        write_weight(f, weight);
    if (bias)
        write_bias(f->heads, bias);
    return ATT_OK;
}

att_status att_position_heads_convolution(att_position_heads *heads, int kernel, float *weight, float *bias,
                                          att_nearest_convolution *found)
{
    fit f = {.heads = heads, .kernel = kernel};
    if (kernel < 1 || kernel > 255 || kernel % 2 == 0)
        return att_fail(heads->context, ATT_ERR_ARGUMENT, "the kernel's size is %d, must be odd and from 1 to 255",
                        kernel);
    ATT_TRY(multiply_maps(heads));
    att_status status = fit_convolution(&f, weight, bias, found);
    att_free(heads->context, f.gram);
    att_free(heads->context, f.rows);
    att_free(heads->context, f.taps);
    return status;
}
