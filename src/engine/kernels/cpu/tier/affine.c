#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"
#include "engine/ops/gate.h"

/* Products of rows with a matrix of the batch. The matrix is packed in each call, as pairs of bf16 if the rows are
 * bf16. A tile of rows and a panel of columns (gemm.h) is summed in registers over the whole inner dimension, and
 * finished before it is stored. */

enum { TILE = 8, CHUNK_BYTES = 16 << 10 /* bytes of the rows that every panel reads */ };

/* --- products ----------------------------------------------------------------------------------------------------- */

/* y [rows, columns] = max((x B) scale + shift + residual, least); NaN stays NaN. */
typedef struct product {
    gemm_elements elements;
    int64_t inputs, inner, columns; /* inner: inputs, counted in elements of the product */
    const float *packed;            /* B in panels */
    const float *scale, *shift;     /* padded to whole vectors; both NULL if unused */
    const void *x, *residual;
    void *y;
    bool x_is_bf16, residual_is_bf16, y_is_bf16;
    float least;
    float *rows; /* scratch for copies of rows, if product_copies() */
} product;

/* Whether rows must be copied because gemm() cannot read them in place. */
static bool product_copies(const product *p)
{
    return p->elements == GEMM_WIDENED || (p->elements == GEMM_PAIRS && p->inputs % 2);
}

static int64_t product_stride(const product *p)
{
    return product_copies(p) ? whole_vectors(p->inner) : p->inner;
}

static int64_t product_chunk(const product *p)
{
    int64_t rows = CHUNK_BYTES / (whole_vectors(p->inner) * (int64_t)sizeof(float)) / TILE * TILE;
    return rows > TILE ? rows : TILE;
}

/* Compile-time constants of a product. */
typedef struct form {
    bool pairs, scaled, added, residual_is_bf16, y_is_bf16;
} form;

/* Finishes the sums of `rows` rows and stores columns [column, column + vectors VW) of y. If not `whole`, columns past
 * the last are left out. */
ATT_INLINE void finish_tile(const product *p, form f, bool whole, int rows, int vectors, vf sum[][GEMM_VECTORS],
                            int64_t row, int64_t column)
{
    const void *residual = p->residual;
    void *y = p->y;
    vf scale[GEMM_VECTORS] = {{0}}, shift[GEMM_VECTORS] = {{0}}, least = v_set(p->least);
    for (int v = 0; f.scaled && v < vectors; v++) {
        scale[v] = v_load(p->scale + column + v * VW);
        shift[v] = v_load(p->shift + column + v * VW);
    }
    int64_t i = row * p->columns + column, end = (row + 1) * p->columns;
    for (int r = 0; r < rows; r++, i += p->columns, end += p->columns) {
        for (int v = 0; v < vectors; v++) {
            vf value = f.scaled ? v_fma(sum[r][v], scale[v], shift[v]) : sum[r][v];
            if (f.added)
                value += whole ? v_get(residual, i + v * VW, f.residual_is_bf16)
                               : v_get_until(residual, i + v * VW, end, f.residual_is_bf16);
            sum[r][v] = v_max(least, value);
        }
        if (whole && vectors >= 2)
            v_put_pair(y, i, sum[r][0], sum[r][1], f.y_is_bf16);
        if (whole && vectors != 2)
            v_put(y, i + (vectors - 1) * VW, sum[r][vectors - 1], f.y_is_bf16);
        for (int v = 0; !whole && v < vectors; v++)
            v_put_until(y, i + v * VW, end, sum[r][v], f.y_is_bf16);
    }
}

/* finish_tile() of a panel that has columns past the last. Its code is not repeated for each form. */
static __attribute__((noinline)) void finish_edge(const product *p, form f, int rows, int vectors,
                                                  vf sum[][GEMM_VECTORS], int64_t row, int64_t column)
{
    finish_tile(p, f, false, rows, vectors, sum, row, column);
}

/* A pair of bf16 is only aligned to two bytes. */
ATT_INLINE float element_at(const void *x)
{
    float element;
    memcpy(&element, x, sizeof element);
    return element;
}

/* Computes `rows` rows from row `row` on, whose elements begin at x. */
ATT_INLINE void product_tile(const product *p, form f, int rows, int vectors, const float *x, const float *b,
                             int64_t row, int64_t column)
{
    vf sum[2 * TILE][GEMM_VECTORS];
    int64_t stride = product_stride(p);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vf){0};
    for (int64_t k = 0; k < p->inner; k++, x++, b += vectors * VW) {
        vf columns[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++)
            columns[v] = v_load(b + v * VW);
        for (int r = 0; r < rows; r++) {
            vf element = v_set(element_at(x + r * stride));
            for (int v = 0; v < vectors; v++)
                sum[r][v] = f.pairs ? v_dot(element, columns[v], sum[r][v]) : v_fma(element, columns[v], sum[r][v]);
        }
    }
    if (column + vectors * VW <= p->columns) {
        finish_tile(p, f, true, rows, vectors, sum, row, column);
        return;
    }
    vf edge[2 * TILE][GEMM_VECTORS]; /* a copy, so that the sums can stay in registers */
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            edge[r][v] = sum[r][v];
    finish_edge(p, f, rows, vectors, edge, row, column);
}

/* product_tile() with a constant number of rows, so that its sums are in registers. */
#define TILES(n)                             \
    for (; done + (n) <= count; done += (n)) \
        product_tile(p, f, n, vectors, x + done * product_stride(p), b, row + done, column);

ATT_INLINE void product_panel(const product *p, form f, int vectors, const float *x, const float *b, int64_t row,
                              int64_t count, int64_t column)
{
    int64_t done = 0;
    if (vectors == 1)
        TILES(16)
    TILES(8)
    TILES(4)
    TILES(2)
    TILES(1)
}

#undef TILES

ATT_INLINE void product_rows_as(const product *p, form f, const float *x, int64_t row, int64_t count)
{
    const float *b = p->packed;
    int64_t whole = (p->columns + VW - 1) / VW;
    for (int64_t done = 0, panel; done < whole; done += panel, b += panel * VW * p->inner) {
        panel = gemm_panel(whole - done);
        if (panel == 3)
            product_panel(p, f, 3, x, b, row, count, done * VW);
        else if (panel == 2)
            product_panel(p, f, 2, x, b, row, count, done * VW);
        else
            product_panel(p, f, 1, x, b, row, count, done * VW);
    }
}

static void product_rows(const product *p, const float *x, int64_t row, int64_t count)
{
    form f = {p->elements == GEMM_PAIRS, p->scale != NULL, p->residual != NULL, p->residual_is_bf16, p->y_is_bf16};
    bool is_bf16 = f.y_is_bf16 && (f.residual_is_bf16 || !f.added);
    if (f.pairs && is_bf16 && f.scaled && f.added)
        product_rows_as(p, (form){true, true, true, true, true}, x, row, count);
    else if (f.pairs && is_bf16 && f.scaled)
        product_rows_as(p, (form){true, true, false, false, true}, x, row, count);
    else if (f.pairs && is_bf16 && f.added)
        product_rows_as(p, (form){true, false, true, true, true}, x, row, count);
    else
        product_rows_as(p, f, x, row, count);
}

/* Computes rows [begin, end). */
static void product_run(const product *p, int64_t begin, int64_t end)
{
    int64_t chunk = product_chunk(p);
    for (int64_t row = begin; row < end; row += chunk) {
        int64_t count = end - row < chunk ? end - row : chunk;
        const float *x = (const float *)att_float_at(p->x, row * p->inputs, p->x_is_bf16);
        if (product_copies(p)) {
            gemm_copy_rows(p->elements, (gemm_source){p->x, row * p->inputs, p->inputs, NULL}, count, p->inputs,
                           p->rows, product_stride(p));
            x = p->rows;
        }
        product_rows(p, x, row, count);
    }
}

static gemm_elements elements_of(const att_desc *x)
{
    return gemm_elements_of(att_is_bf16(x), V_MULTIPLIES_PAIRS);
}

static product product_of(const att_problem *problem, int64_t columns)
{
    const att_desc *x = &problem->in[0];
    gemm_elements elements = elements_of(x);
    return (product){.elements = elements,
                     .inputs = att_columns(x),
                     .inner = gemm_count(elements, att_columns(x)),
                     .columns = columns,
                     .x_is_bf16 = att_is_bf16(x),
                     .y_is_bf16 = att_is_bf16(&problem->out[0]),
                     .least = -INFINITY};
}

/* Floats of scratch: for B, and for copied rows. */
static int64_t packed_numbers(const product *p)
{
    return p->inner * whole_vectors(p->columns);
}

static int64_t rows_numbers(const product *p)
{
    return product_copies(p) ? product_chunk(p) * product_stride(p) : 0;
}

/* The part's rows of each sample. Without a gate, all samples are treated as one. */
typedef struct samples {
    int64_t count, rows;
    att_range part;
} samples;

static samples samples_of(const att_call *call, bool gated)
{
    int64_t count = gated ? call->problem->group : 1, rows = att_rows(call, &call->problem->in[0]) / count;
    return (samples){count, rows, att_part_of(call, rows, TILE)};
}

/* --- affine ------------------------------------------------------------------------------------------------------- */

enum { X, MATRIX, GATE, RESIDUAL };

static product affine_of(const att_problem *problem)
{
    return product_of(problem, problem->in[MATRIX].shape.dims[1]);
}

static att_status affine_prepare(const att_problem *problem, att_prepared *prepared)
{
    product p = affine_of(problem);
    int64_t numbers = packed_numbers(&p) + rows_numbers(&p) + 2 * whole_vectors(p.columns);
    prepared->scratch_bytes = (size_t)numbers * sizeof(float);
    return ATT_OK;
}

/* Row `row` of the matrix from `column` on; zeros past the last row or column. */
ATT_INLINE vf matrix_at(const float *matrix, const product *p, int64_t row, int64_t column)
{
    return row < p->inputs && column < p->columns
               ? v_get_until(matrix, row * p->columns + column, (row + 1) * p->columns, false)
               : (vf){0};
}

static void pack_matrix(const float *matrix, const product *p, float *to)
{
    int64_t whole = (p->columns + VW - 1) / VW;
    for (int64_t done = 0, panel; done < whole; done += panel) {
        panel = gemm_panel(whole - done);
        for (int64_t k = 0; k < p->inner; k++)
            for (int64_t v = 0; v < panel; v++, to += VW) {
                int64_t column = (done + v) * VW;
                v_store(to, p->elements == GEMM_PAIRS
                                ? v_pair(matrix_at(matrix, p, 2 * k, column), matrix_at(matrix, p, 2 * k + 1, column))
                                : matrix_at(matrix, p, k, column));
            }
    }
}

/* (x B + b) gate = (x B) gate + b gate. */
static void fill_vectors(const float *addend, const float *gate, int64_t columns, float *scale, float *shift)
{
    for (int64_t i = 0; i < columns; i++) {
        scale[i] = gate ? gate[i] : 1;
        shift[i] = addend[i] * scale[i];
    }
}

/* Parts share the rows of each sample. */
static att_status affine_run(const att_call *call)
{
    product p = affine_of(call->problem);
    const float *matrix = call->in[MATRIX], *gate = call->in[GATE];
    float *packed = call->scratch, *scale = packed + packed_numbers(&p), *shift = scale + whole_vectors(p.columns);
    p.rows = shift + whole_vectors(p.columns);
    p.packed = packed;
    p.scale = scale;
    p.shift = shift;
    p.x = call->in[X];
    p.residual = call->in[RESIDUAL];
    p.residual_is_bf16 = p.residual && att_is_bf16(&call->problem->in[RESIDUAL]);
    p.y = call->out[0];
    p.least = ATT_ATTRS(call->problem, gate)->activation == ATT_ACT_RELU ? 0 : -INFINITY;
    pack_matrix(matrix, &p, packed);
    samples s = samples_of(call, gate != NULL);
    for (int64_t sample = 0; sample < s.count; sample++) {
        fill_vectors(matrix + p.inputs * p.columns, gate ? gate + sample * p.columns : NULL, p.columns, scale, shift);
        product_run(&p, sample * s.rows + s.part.begin, sample * s.rows + s.part.end);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(affine, .bf16_in = 1u << X | 1u << RESIDUAL, .bf16_out = 1, .prepare = affine_prepare,
                .run = affine_run);

/* --- affine_data_grad --------------------------------------------------------------------------------------------- */

static product data_grad_of(const att_problem *problem)
{
    return product_of(problem, problem->in[MATRIX].shape.dims[0] - 1);
}

static int64_t transposed_numbers(const product *p)
{
    return p->inputs * whole_vectors(p->columns);
}

static att_status data_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    product p = data_grad_of(problem);
    int64_t numbers = packed_numbers(&p) + transposed_numbers(&p) + rows_numbers(&p);
    prepared->scratch_bytes = (size_t)numbers * sizeof(float);
    return ATT_OK;
}

/* Packs panels of the transposed matrix as elements, each row multiplied with its gate. */
static void pack_gated(const float *transposed, const float *gate, const product *p, float *to)
{
    int64_t whole = (p->columns + VW - 1) / VW;
    for (int64_t done = 0, panel; done < whole; done += panel, transposed += panel * VW * p->inputs) {
        panel = gemm_panel(whole - done);
        for (int64_t k = 0; k < p->inner; k++)
            for (int64_t v = 0; v < panel; v++, to += VW) {
                int64_t first = p->elements == GEMM_PAIRS ? 2 * k : k;
                const float *from = transposed + (first * panel + v) * VW;
                vf one = v_load(from) * v_set(gate ? gate[first] : 1);
                if (p->elements == GEMM_PAIRS) {
                    vf other = {0};
                    if (first + 1 < p->inputs)
                        other = v_load(from + panel * VW) * v_set(gate ? gate[first + 1] : 1);
                    one = v_pair(one, other);
                }
                v_store(to, one);
            }
    }
}

/* Parts share the rows of each sample. */
static att_status data_grad_run(const att_call *call)
{
    product p = data_grad_of(call->problem);
    const float *gate = call->in[GATE];
    float *packed = call->scratch, *transposed = packed + packed_numbers(&p);
    p.rows = transposed + transposed_numbers(&p);
    p.packed = packed;
    p.x = call->in[0];
    p.residual = call->in[RESIDUAL];
    p.residual_is_bf16 = p.residual && att_is_bf16(&call->problem->in[RESIDUAL]);
    p.y = call->out[0];
    gemm_pack_transposed(GEMM_F32, (gemm_source){call->in[MATRIX], 0, p.inputs, NULL}, p.columns, p.inputs, transposed);
    samples s = samples_of(call, gate != NULL);
    for (int64_t sample = 0; sample < s.count; sample++) {
        pack_gated(transposed, gate ? gate + sample * p.inputs : NULL, &p, packed);
        product_run(&p, sample * s.rows + s.part.begin, sample * s.rows + s.part.end);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(affine_data_grad, .bf16_in = 1u << X | 1u << RESIDUAL, .bf16_out = 1, .prepare = data_grad_prepare,
                .run = data_grad_run);

/* --- affine_sums -------------------------------------------------------------------------------------------------- */

enum { SUMS_X = 1, SUMS_MATRIX, SUMS_GATE, SUMS_RESIDUAL };

/* Rows, or pairs of rows, per pass: few, so that f32 sums are accurate and both operands stay in cache. */
enum { DEPTH = 128 };

typedef struct sums {
    gemm_elements dy, x; /* both are pairs, or neither */
    int64_t rows, inputs, outputs, left_stride, right_stride;
    float *left, *right, *sum; /* scratch: x with a column of ones, dy, [x 1]' dy */
} sums;

/* scratch: NULL while only sizes are needed. */
static sums sums_of(const att_problem *problem, float *scratch)
{
    const att_desc *dy = &problem->in[0], *x = &problem->in[SUMS_X];
    bool pairs = V_MULTIPLIES_PAIRS && att_is_bf16(dy) && att_is_bf16(x);
    int64_t outputs = att_columns(dy);
    sums s = {.dy = gemm_elements_of(att_is_bf16(dy), pairs),
              .x = gemm_elements_of(att_is_bf16(x), pairs),
              .rows = att_shape_count(dy->shape) / outputs,
              .inputs = att_columns(x),
              .outputs = outputs,
              .left_stride = whole_vectors(att_columns(x) + 1),
              .right_stride = whole_vectors(outputs)};
    if (scratch) {
        s.left = scratch;
        s.right = s.left + DEPTH * s.left_stride;
        s.sum = s.right + DEPTH * s.right_stride;
    }
    return s;
}

static att_status sums_prepare(const att_problem *problem, att_prepared *prepared)
{
    sums s = sums_of(problem, NULL);
    int64_t numbers = DEPTH * (s.left_stride + s.right_stride) + (s.inputs + 1) * s.right_stride;
    prepared->scratch_bytes = (size_t)numbers * sizeof(float);
    return ATT_OK;
}

/* Writes a column of ones after x's columns; zero in place of a missing second row of a pair. */
static void put_ones(const sums *s, int64_t rows)
{
    int64_t depth = gemm_count(s->dy, rows);
    for (int64_t k = 0; k < depth; k++) {
        vf one = v_set(1);
        if (s->dy == GEMM_PAIRS)
            one = v_pair(one, v_set(2 * k + 1 < rows ? 1 : 0));
        s->left[k * s->left_stride + s->inputs] = one[0];
    }
}

/* Columns [begin, end) of [x 1]' dy of a sample. */
static void add_rows(const att_call *call, const sums *s, int64_t sample, att_range part)
{
    int64_t pass = s->dy == GEMM_PAIRS ? 2 * DEPTH : DEPTH, width = part.end - part.begin;
    for (int64_t row = 0; row < s->rows; row += pass) {
        int64_t count = s->rows - row < pass ? s->rows - row : pass, at = sample * s->rows + row;
        gemm_copy_columns(s->x, (gemm_source){call->in[SUMS_X], at * s->inputs, s->inputs, NULL}, count, s->inputs,
                          s->left, s->left_stride);
        gemm_copy_columns(s->dy, (gemm_source){call->in[0], at * s->outputs + part.begin, s->outputs, NULL}, count,
                          width, s->right, s->right_stride);
        put_ones(s, count);
        gemm(s->dy, s->inputs + 1, whole_vectors(width), gemm_count(s->dy, count), (gemm_a){s->left, 1, s->left_stride},
             (gemm_b){s->right, s->right_stride}, (gemm_c){s->sum, s->right_stride, 1, row > 0});
    }
}

/* Stores columns [column, column + VW) of both outputs, of which those before `until` exist. `sum` points to the first
 * of these columns. */
ATT_INLINE void put_sums(const att_call *call, const sums *s, int64_t sample, int64_t column, int64_t until,
                         const float *sum)
{
    const float *matrix = call->in[SUMS_MATRIX], *gate = call->in[SUMS_GATE], *residual = call->in[SUMS_RESIDUAL];
    float *to = call->out[0], *dgate = call->out[1];
    int64_t first = sample * (s->inputs + 1) * s->outputs;
    vf dot = {0},
       times = gate ? v_get_until(gate, sample * s->outputs + column, sample * s->outputs + until, false) : v_set(1);
    for (int64_t j = 0; j <= s->inputs; j++, sum += s->right_stride) {
        int64_t i = j * s->outputs + column, end = j * s->outputs + until;
        vf value = v_load(sum);
        dot = dgate ? v_fma(value, v_get_until(matrix, i, end, false), dot) : dot;
        value *= times;
        if (residual)
            value += v_get_until(residual, first + i, first + end, false);
        if (to)
            v_put_until(to, first + i, first + end, value, false);
    }
    if (dgate)
        v_put_until(dgate, sample * s->outputs + column, sample * s->outputs + until, dot, false);
}

/* Parts share the columns. */
static att_status sums_run(const att_call *call)
{
    sums s = sums_of(call->problem, call->scratch);
    att_range part = att_part_of(call, s.outputs, VW);
    for (int64_t sample = 0; sample < call->problem->group && part.begin < part.end; sample++) {
        add_rows(call, &s, sample, part);
        for (int64_t column = part.begin; column < part.end; column += VW)
            put_sums(call, &s, sample, column, part.end, s.sum + column - part.begin);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(affine_sums, .bf16_in = 1u << 0 | 1u << SUMS_X, .prepare = sums_prepare, .run = sums_run);
