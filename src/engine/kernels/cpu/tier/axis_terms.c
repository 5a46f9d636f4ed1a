#include "engine/ops/axis_terms.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"

/* The queries of one row of the grid see the same part of the table of rows, so their terms are one matrix product; so
 * are those of a column. Tables are reversed: then the numbers of all keys follow one another. */
enum { ROWS, COLUMNS, AXES };
enum { Q, TABLE }; /* inputs; the table of axis a is input TABLE + a */

/* One axis. */
typedef struct axis {
    int64_t length, lines;  /* keys of a query, and queries of a line: tokens that share their numbers */
    int64_t next, start;    /* distance in tokens between queries of a line, and between the first queries of lines */
    int64_t numbers, begin; /* channels that the table has, and the first of them in a head */
    int64_t padded;         /* `length` as whole vectors */
    int64_t stride;         /* of the packed table, which is transposed */
} axis;

/* first: the node's input q */
static axis axis_of(const att_problem *problem, int first, int which)
{
    const att_axis_terms_attrs *attrs = problem->attrs;
    int64_t h = attrs->grid_h, w = attrs->grid_w, numbers = problem->in[first + TABLE + which].shape.dims[1];
    axis a = {.length = h, .lines = w, .next = 1, .start = w, .numbers = numbers};
    if (which == COLUMNS)
        a = (axis){.length = w, .lines = h, .next = w, .start = 1, .numbers = numbers, .begin = attrs->width - numbers};
    a.padded = whole_vectors(a.length);
    a.stride = whole_vectors(2 * a.length - 1) + a.padded;
    return a;
}

/* Packed copies of both tables. forward: transposed, zero-padded: [numbers, stride]; else rows: [2 length - 1, numbers
 * as whole vectors]. */
static int64_t packed_count(const axis *a, bool forward)
{
    return forward ? a->numbers * a->stride : (2 * a->length - 1) * whole_vectors(a->numbers);
}

static void pack_table(const axis *a, bool forward, const float *table, float *to)
{
    int64_t shifts = 2 * a->length - 1, row = forward ? 1 : whole_vectors(a->numbers), column = forward ? a->stride : 1;
    memset(to, 0, (size_t)packed_count(a, forward) * sizeof *to);
    for (int64_t s = 0; s < shifts; s++)
        for (int64_t c = 0; c < a->numbers; c++)
            to[s * row + c * column] = table[(shifts - 1 - s) * a->numbers + c];
}

static att_status pack(const att_problem *problem, int first, const void *const *in, float *packed)
{
    for (int which = 0; which < AXES; which++) {
        axis a = axis_of(problem, first, which);
        pack_table(&a, first == 0, in[first + TABLE + which], packed);
        packed += packed_count(&a, first == 0);
    }
    return ATT_OK;
}

static size_t packed_bytes(const att_problem *problem, int first)
{
    axis rows = axis_of(problem, first, ROWS), columns = axis_of(problem, first, COLUMNS);
    return (size_t)(packed_count(&rows, first == 0) + packed_count(&columns, first == 0)) * sizeof(float);
}

/* One head of one sample. */
typedef struct head {
    const att_call *call;
    const att_axis_terms_attrs *attrs;
    int first;                              /* the node's input q */
    int64_t sample, number, tokens, stride; /* stride: of q */
} head;

static head head_of(const att_call *call, int first, int64_t number)
{
    const att_axis_terms_attrs *attrs = call->problem->attrs;
    const int64_t *dims = call->problem->in[first + Q].shape.dims;
    return (head){call, attrs, first, number / attrs->heads, number % attrs->heads, dims[0], dims[1]};
}

/* The first query of a line. */
static int64_t token_at(const head *h, const axis *a, int64_t line)
{
    return h->attrs->prefix + line * a->start;
}

/* Index of the first term of a token. */
static int64_t term_at(const head *h, const axis *a, int64_t token)
{
    return ((h->sample * h->tokens + token) * h->attrs->heads + h->number) * a->length;
}

/* Copies the queries of a line, with the channels of the axis, to rows of whole vectors. */
static void copy_line(const head *h, const axis *a, int64_t line, float *to)
{
    gemm_source q = {.x = h->call->in[h->first + Q],
                     .from = (h->sample * h->tokens + token_at(h, a, line)) * h->stride + h->number * h->attrs->width +
                             a->begin,
                     .stride = a->next * h->stride};
    gemm_copy_rows(gemm_elements_of(att_is_bf16(&h->call->problem->in[h->first + Q]), false), q, a->lines, a->numbers,
                   to, whole_vectors(a->numbers));
}

static void line_terms(const head *h, const axis *a, int which, int64_t line, const float *packed, float *scratch)
{
    float *q = scratch, *terms = q + a->lines * whole_vectors(a->numbers), *out = h->call->out[which];
    copy_line(h, a, line, q);
    gemm(GEMM_F32, a->lines, a->padded, a->numbers, (gemm_a){q, whole_vectors(a->numbers), 1},
         (gemm_b){packed + a->length - 1 - line, a->stride}, (gemm_c){terms, a->padded, (float)h->attrs->scale, false});
    for (int64_t i = 0; i < a->lines; i++)
        memcpy(out + term_at(h, a, token_at(h, a, line) + i * a->next), terms + i * a->padded,
               (size_t)a->length * sizeof *out);
}

static int64_t forward_scratch(const axis *a)
{
    return a->lines * (whole_vectors(a->numbers) + a->padded);
}

static att_status axis_terms_prepare(const att_problem *problem, att_prepared *prepared)
{
    axis rows = axis_of(problem, 0, ROWS), columns = axis_of(problem, 0, COLUMNS);
    int64_t count =
        forward_scratch(&rows) > forward_scratch(&columns) ? forward_scratch(&rows) : forward_scratch(&columns);
    prepared->scratch_bytes = (size_t)count * sizeof(float);
    prepared->packed_bytes = packed_bytes(problem, 0);
    return ATT_OK;
}

static att_status axis_terms_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    return pack(problem, 0, in, packed);
}

/* Parts share the heads of all samples. */
static att_status axis_terms_run(const att_call *call)
{
    const att_axis_terms_attrs *attrs = call->problem->attrs;
    att_range part = att_part_of(call, call->problem->group * attrs->heads, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        head h = head_of(call, 0, i);
        const float *packed = call->packed;
        for (int which = 0; which < AXES; which++) {
            axis a = axis_of(call->problem, 0, which);
            float *out = call->out[which];
            for (int64_t token = 0; out && token < attrs->prefix; token++)
                memset(out + term_at(&h, &a, token), 0, (size_t)a.length * sizeof *out);
            for (int64_t line = 0; out && line < a.length; line++)
                line_terms(&h, &a, which, line, packed, call->scratch);
            packed += packed_count(&a, true);
        }
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(axis_terms, .bf16_in = 1u << Q, .prepare = axis_terms_prepare, .pack = axis_terms_pack,
                .run = axis_terms_run);

enum { GRAD_Q = 2 };

/* Scratch of the gradient. */
typedef struct workspace {
    float *dq;             /* [tokens, whole vectors of a head and one more]: of the current head */
    float *line, *product; /* of a line: its queries, and its part of dq */
    float *table[AXES];    /* gradients of the reversed tables, in rows of whole vectors */
    int64_t dq_stride, elements;
} workspace;

static workspace workspace_of(const att_problem *problem, float *scratch)
{
    const att_axis_terms_attrs *attrs = problem->attrs;
    axis rows = axis_of(problem, GRAD_Q, ROWS), columns = axis_of(problem, GRAD_Q, COLUMNS);
    int64_t tokens = problem->in[GRAD_Q].shape.dims[0], widest = whole_vectors(attrs->width);
    int64_t longest = rows.lines > columns.lines ? rows.lines : columns.lines;
    workspace w = {.dq_stride = widest};
    int64_t dq = tokens * w.dq_stride, line = longest * widest, table = packed_count(&rows, false);
    w.elements = dq + 2 * line + table + packed_count(&columns, false);
    if (scratch) {
        w.dq = scratch;
        w.line = w.dq + dq;
        w.product = w.line + line;
        w.table[ROWS] = w.product + line;
        w.table[COLUMNS] = w.table[ROWS] + table;
    }
    return w;
}

/* Adds rows [lines, numbers] to dq. The channels behind them, padding of the product, are left out. */
static void add_to_dq(const axis *a, const float *from, float *dq, int64_t stride)
{
    for (int64_t i = 0; i < a->lines; i++, from += whole_vectors(a->numbers), dq += stride)
        for (int64_t c = 0; c < a->numbers; c += VW)
            v_put_until(dq, c, a->numbers, v_get_until(dq, c, a->numbers, false) + v_load(from + c), false);
}

/* Adds a line's contribution to dq and to the gradient of the reversed table. */
static void line_gradient(const head *h, const axis *a, int which, int64_t line, const float *packed,
                          const workspace *w)
{
    int64_t padded = whole_vectors(a->numbers), shift = a->length - 1 - line;
    int64_t next = a->next * h->attrs->heads * a->length;
    const float *dt = (const float *)h->call->in[which] + term_at(h, a, token_at(h, a, line));
    float scale = (float)h->attrs->scale;
    copy_line(h, a, line, w->line);
    gemm(GEMM_F32, a->lines, padded, a->length, (gemm_a){dt, next, 1}, (gemm_b){packed + shift * padded, padded},
         (gemm_c){w->product, padded, scale, false});
    add_to_dq(a, w->product, w->dq + token_at(h, a, line) * w->dq_stride + a->begin, a->next * w->dq_stride);
    gemm(GEMM_F32, a->length, padded, a->lines, (gemm_a){dt, 1, next}, (gemm_b){w->line, padded},
         (gemm_c){w->table[which] + shift * padded, padded, scale, true});
}

/* Writes dq of the current head; head 0 also clears the columns behind all heads. */
static void write_dq(const head *h, const workspace *w)
{
    const att_problem *problem = h->call->problem;
    void *out = h->call->out[Q];
    bool is_bf16 = out && att_is_bf16(&problem->out[Q]);
    int64_t width = h->attrs->width, heads = h->attrs->heads * width;
    for (int64_t token = 0; out && token < h->tokens; token++) {
        int64_t row = (h->sample * h->tokens + token) * h->stride, to = row + h->number * width;
        for (int64_t i = 0; i < width; i += VW)
            v_put_until(out, to + i, to + width, v_load(w->dq + token * w->dq_stride + i), is_bf16);
        for (int64_t i = heads; h->number == 0 && i < h->stride; i += VW)
            v_put_until(out, row + i, row + h->stride, (vf){0}, is_bf16);
    }
}

/* Writes the sample's gradient of a table. */
static void write_table(const head *h, const axis *a, int which, const float *from)
{
    float *out = h->call->out[TABLE + which];
    int64_t shifts = 2 * a->length - 1, padded = whole_vectors(a->numbers);
    for (int64_t s = 0; out && s < shifts; s++)
        memcpy(out + (h->sample * shifts + s) * a->numbers, from + (shifts - 1 - s) * padded,
               (size_t)a->numbers * sizeof *out);
}

static void sample_gradient(const att_call *call, int64_t sample, const workspace *w)
{
    const att_problem *problem = call->problem;
    const att_axis_terms_attrs *attrs = problem->attrs;
    axis axes[AXES] = {axis_of(problem, GRAD_Q, ROWS), axis_of(problem, GRAD_Q, COLUMNS)};
    const float *packed[AXES] = {call->packed, (const float *)call->packed + packed_count(&axes[ROWS], false)};
    head h = head_of(call, GRAD_Q, sample * attrs->heads);
    for (int which = 0; which < AXES; which++)
        memset(w->table[which], 0, (size_t)packed_count(&axes[which], false) * sizeof(float));
    for (h.number = 0; h.number < attrs->heads; h.number++) {
        memset(w->dq, 0, (size_t)(h.tokens * w->dq_stride) * sizeof(float));
        for (int which = 0; which < AXES; which++)
            for (int64_t line = 0; call->in[which] && line < axes[which].length; line++)
                line_gradient(&h, &axes[which], which, line, packed[which], w);
        write_dq(&h, w);
    }
    for (int which = 0; which < AXES; which++)
        write_table(&h, &axes[which], which, w->table[which]);
}

/* Parts share the samples, because the heads of a sample share its gradient of the tables. */
static att_status axis_terms_grad_run(const att_call *call)
{
    workspace w = workspace_of(call->problem, call->scratch);
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++)
        sample_gradient(call, sample, &w);
    return ATT_OK;
}

static att_status axis_terms_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)workspace_of(problem, NULL).elements * sizeof(float);
    prepared->packed_bytes = packed_bytes(problem, GRAD_Q);
    return ATT_OK;
}

static att_status axis_terms_grad_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    return pack(problem, GRAD_Q, in, packed);
}

ATT_SIMD_KERNEL(axis_terms_grad, .bf16_in = 1u << GRAD_Q, .bf16_out = 1u << Q, .prepare = axis_terms_grad_prepare,
                .pack = axis_terms_grad_pack, .run = axis_terms_grad_run);
