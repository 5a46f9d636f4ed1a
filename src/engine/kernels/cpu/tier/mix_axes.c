#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/attention.h"

/* Some channels of all tokens of a head are computed at once: a slab [h, w, padded], which the products along the
 * columns and along the rows read from cache. Forward, a slab is as wide as the second-level cache allows, so that each
 * token of the output is written in long runs. The gradient reads its slabs more often, and takes three vectors of
 * channels. */
enum { FORWARD_SLAB = 1 << 17 /* elements */, GRADIENT_SLAB = GEMM_VECTORS * VW /* channels */ };

typedef struct axes {
    const att_call *call;
    const float *row_map, *column_map;
    int64_t h, w, tokens;
    int64_t heads, values, width; /* width: of a head */
    int64_t slab;                 /* channels of a slab, whole vectors */
} axes;

/* v: the node's input v. channels: of a slab, at most. */
static axes axes_of(const att_problem *problem, int v, int64_t channels)
{
    const att_attention_attrs *attrs = problem->attrs;
    const int64_t *dims = problem->in[v].shape.dims;
    int64_t width = dims[1] / attrs->value_heads;
    return (axes){.h = attrs->grid_h,
                  .w = attrs->grid_w,
                  .tokens = dims[0],
                  .heads = attrs->heads,
                  .values = attrs->value_heads,
                  .width = width,
                  .slab = channels < width ? channels : whole_vectors(width)};
}

static axes axes_forward(const att_problem *problem)
{
    int64_t channels = FORWARD_SLAB / problem->in[0].shape.dims[0] / GRADIENT_SLAB * GRADIENT_SLAB;
    return axes_of(problem, 0, channels > GRADIENT_SLAB ? channels : GRADIENT_SLAB);
}

static axes axes_at(axes a, const att_call *call, int v)
{
    a.call = call, a.row_map = call->in[v + 1], a.column_map = call->in[v + 2];
    return a;
}

static int64_t slab_elements(const axes *a)
{
    return a->tokens * a->slab;
}

/* Channels [begin, begin + padded) of a head, of which the head has those before `width`. */
typedef struct slab {
    int64_t begin, padded;
} slab;

static slab slab_from(const axes *a, int64_t begin)
{
    int64_t left = whole_vectors(a->width - begin);
    return (slab){begin, left < a->slab ? left : a->slab};
}

/* Index of the slab's first channel of a token. */
static int64_t slab_at(const axes *a, const slab *s, int64_t sample, int64_t token, int64_t heads, int64_t head)
{
    return ((sample * a->tokens + token) * heads + head) * a->width + s->begin;
}

/* The channels of a token that are read next are far from those of the token before, where processors fetch nothing in
 * advance. So each row asks for its cache lines of the slab that follows: the same channels of the next head. */
static void read_slab(const axes *a, const slab *s, int input, int64_t sample, int64_t heads, int64_t head, float *to)
{
    bool is_bf16 = att_is_bf16(&a->call->problem->in[input]);
    const char *x = a->call->in[input];
    int64_t size = is_bf16 ? 2 : 4, ahead = head + 1 < heads ? a->width : s->padded - head * a->width;
    for (int64_t token = 0; token < a->tokens; token++) {
        int64_t at = slab_at(a, s, sample, token, heads, head), end = at + a->width - s->begin;
        for (int64_t i = 0; i < s->padded; i += VW, to += VW) {
            __builtin_prefetch(x + (at + i + ahead) * size);
            v_store(to, v_get_until(a->call->in[input], at + i, end, is_bf16));
        }
    }
}

static void write_slab(const axes *a, const slab *s, int64_t sample, int64_t heads, int64_t head, const float *from)
{
    bool is_bf16 = att_is_bf16(&a->call->problem->out[0]);
    for (int64_t token = 0; token < a->tokens; token++) {
        int64_t at = slab_at(a, s, sample, token, heads, head), end = at + a->width - s->begin;
        for (int64_t i = 0; i < s->padded; i += VW, from += VW)
            v_put_until(a->call->out[0], at + i, end, v_load(from), is_bf16);
    }
}

static gemm_a map_of(const float *maps, int64_t head, int64_t length, bool transposed)
{
    const float *map = maps + head * length * length;
    return transposed ? (gemm_a){map, 1, length} : (gemm_a){map, length, 1};
}

/* to_yx = sum over x' of c_xx' from_yx'; c transposed in the gradient. add: to to. */
static void mix_columns(const axes *a, const slab *s, int64_t head, bool transposed, const float *from, float *to,
                        bool add)
{
    int64_t row = a->w * s->padded;
    gemm_a map = map_of(a->column_map, head, a->w, transposed);
    for (int64_t y = 0; y < a->h; y++)
        gemm(GEMM_F32, a->w, s->padded, a->w, map, (gemm_b){from + y * row, s->padded},
             (gemm_c){to + y * row, s->padded, 1, add});
}

/* to_yx = sum over y' of r_yy' from_y'x; r transposed in the gradient. */
static void mix_rows(const axes *a, const slab *s, int64_t head, bool transposed, const float *from, float *to)
{
    int64_t row = a->w * s->padded;
    gemm(GEMM_F32, a->h, row, a->h, map_of(a->row_map, head, a->h, transposed), (gemm_b){from, row},
         (gemm_c){to, row, 1, false});
}

/* The same, into the output of a head: `to` is the first token's first channel of the slab there. */
static void mix_rows_apart(const axes *a, const slab *s, int64_t head, const float *from, float *to)
{
    int64_t token = a->heads * a->width;
    gemm_a map = map_of(a->row_map, head, a->h, false);
    for (int64_t x = 0; x < a->w; x++)
        gemm(GEMM_F32, a->h, s->padded, a->h, map, (gemm_b){from + x * s->padded, a->w * s->padded},
             (gemm_c){to + x * token, a->w * token, 1, false});
}

/* Writes a head's output for a slab of its values. scratch: two slabs. */
static void mix_head(const axes *a, const slab *s, int64_t sample, int64_t head, const float *v, float *scratch)
{
    float *mixed = scratch, *y = mixed + slab_elements(a);
    mix_columns(a, s, head, false, v, mixed, false);
    if (!att_is_bf16(&a->call->problem->out[0]) && s->begin + s->padded <= a->width) {
        mix_rows_apart(a, s, head, mixed, (float *)a->call->out[0] + slab_at(a, s, sample, 0, a->heads, head));
    } else {
        mix_rows(a, s, head, false, mixed, y);
        write_slab(a, s, sample, a->heads, head, y);
    }
}

/* Parts share the heads of values of all samples. */
static att_status axes_run(const att_call *call)
{
    axes a = axes_at(axes_forward(call->problem), call, 0);
    int64_t sharing = a.heads / a.values;
    float *v = call->scratch, *others = v + slab_elements(&a);
    att_range part = att_part_of(call, call->problem->group * a.values, 1);
    for (int64_t i = part.begin; i < part.end; i++)
        for (slab s = slab_from(&a, 0); s.begin < a.width; s = slab_from(&a, s.begin + s.padded)) {
            int64_t sample = i / a.values, value = i % a.values;
            read_slab(&a, &s, 0, sample, a.values, value, v);
            for (int64_t head = value * sharing; head < (value + 1) * sharing; head++)
                mix_head(&a, &s, sample, head, v, others);
        }
    return ATT_OK;
}

static att_status axes_prepare(const att_problem *problem, att_prepared *prepared)
{
    axes a = axes_forward(problem);
    prepared->scratch_bytes = (size_t)(3 * slab_elements(&a)) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(mix_axes, .bf16_in = 1, .bf16_out = 1, .prepare = axes_prepare, .run = axes_run);

enum { GRAD_DY, GRAD_V };
enum { OUT_V, OUT_ROW_MAP, OUT_COLUMN_MAP };

/* Products of vectors whose sums stay in registers. */
enum { DOT_ROWS = 4, DOT_COLUMNS = V_REGISTERS / 8 };

/* Rows of one operand of add_dots(): row i consists of `steps` runs of `length` elements, which begin at x + i row +
 * step next. */
typedef struct runs {
    int64_t row, steps, next, length;
} runs;

/* sums_ij += the element by element products of rows i of a and j of b, one vector each, for a block of them. Rows
 * beyond `count` are replaced by the last one, and their sums are dropped. */
ATT_INLINE void add_block_of_dots(const float *a, const float *b, runs r, int64_t count, int64_t i, int64_t j,
                                  float *sums)
{
    const float *row[DOT_ROWS], *column[DOT_COLUMNS];
    vf sum[DOT_ROWS][DOT_COLUMNS];
    for (int m = 0; m < DOT_ROWS; m++)
        row[m] = a + (i + m < count ? i + m : count - 1) * r.row;
    for (int n = 0; n < DOT_COLUMNS; n++)
        column[n] = b + (j + n < count ? j + n : count - 1) * r.row;
    for (int m = 0; m < DOT_ROWS; m++)
        for (int n = 0; n < DOT_COLUMNS; n++)
            sum[m][n] = (vf){0};
    for (int64_t step = 0; step < r.steps; step++)
        for (int64_t k = step * r.next; k < step * r.next + r.length; k += VW) {
            vf of_column[DOT_COLUMNS];
            for (int n = 0; n < DOT_COLUMNS; n++)
                of_column[n] = v_load(column[n] + k);
            for (int m = 0; m < DOT_ROWS; m++) {
                vf of_row = v_load(row[m] + k);
                for (int n = 0; n < DOT_COLUMNS; n++)
                    sum[m][n] = v_fma(of_row, of_column[n], sum[m][n]);
            }
        }
    for (int m = 0; m < DOT_ROWS && i + m < count; m++)
        for (int n = 0; n < DOT_COLUMNS && j + n < count; n++) {
            float *to = sums + ((i + m) * count + j + n) * VW;
            v_store(to, v_load(to) + sum[m][n]);
        }
}

/* sums [count, count, VW] */
static void add_dots(const float *a, const float *b, runs r, int64_t count, float *sums)
{
    for (int64_t i = 0; i < count; i += DOT_ROWS)
        for (int64_t j = 0; j < count; j += DOT_COLUMNS)
            add_block_of_dots(a, b, r, count, i, j, sums);
}

/* Scratch of the gradient: slabs, and vectors of sums of the maps' gradients for the heads that share a value. */
typedef struct workspace {
    float *v, *dy, *mixed; /* mixed: v along the columns */
    float *of_keys, *dv;   /* dy along the rows; the gradient of v */
    float *sums;           /* for each head [h, h, VW], then [w, w, VW] */
    int64_t sums_of_head, elements;
} workspace;

static workspace workspace_of(const axes *a, float *scratch)
{
    int64_t of_slab = slab_elements(a), of_head = (a->h * a->h + a->w * a->w) * VW;
    workspace w = {.sums_of_head = of_head, .elements = 5 * of_slab + a->heads / a->values * of_head};
    if (scratch) {
        w.v = scratch;
        w.dy = w.v + of_slab, w.mixed = w.dy + of_slab, w.of_keys = w.mixed + of_slab;
        w.dv = w.of_keys + of_slab, w.sums = w.dv + of_slab;
    }
    return w;
}

/* Adds the contribution of a slab of a head; the first head that shares a value begins its gradient. */
static void head_gradient(const axes *a, const slab *s, int64_t head, const workspace *w)
{
    int64_t shared = head % (a->heads / a->values), row = a->w * s->padded;
    float *sums = w->sums + shared * w->sums_of_head;
    mix_rows(a, s, head, true, w->dy, w->of_keys);
    if (a->call->out[OUT_ROW_MAP]) {
        mix_columns(a, s, head, false, w->v, w->mixed, false);
        add_dots(w->dy, w->mixed, (runs){row, 1, 0, row}, a->h, sums);
    }
    if (a->call->out[OUT_COLUMN_MAP])
        add_dots(w->of_keys, w->v, (runs){s->padded, a->h, row, s->padded}, a->w, sums + a->h * a->h * VW);
    if (a->call->out[OUT_V])
        mix_columns(a, s, head, true, w->of_keys, w->dv, shared > 0);
}

static void write_map(const float *sums, int64_t count, float *to)
{
    for (int64_t i = 0; to && i < count; i++)
        to[i] = v_sum(v_load(sums + i * VW));
}

static void write_maps(const axes *a, int64_t sample, int64_t head, const float *sums)
{
    float *rows = a->call->out[OUT_ROW_MAP], *columns = a->call->out[OUT_COLUMN_MAP];
    int64_t of_rows = a->h * a->h, of_columns = a->w * a->w, matrix = sample * a->heads + head;
    write_map(sums, of_rows, rows ? rows + matrix * of_rows : NULL);
    write_map(sums + of_rows * VW, of_columns, columns ? columns + matrix * of_columns : NULL);
}

/* The gradients of one head of values, and of the maps of all heads that share it. */
static void value_gradient(const axes *a, int64_t sample, int64_t value, const workspace *w)
{
    int64_t sharing = a->heads / a->values;
    memset(w->sums, 0, (size_t)(sharing * w->sums_of_head) * sizeof(float));
    for (slab s = slab_from(a, 0); s.begin < a->width; s = slab_from(a, s.begin + s.padded)) {
        read_slab(a, &s, GRAD_V, sample, a->values, value, w->v);
        for (int64_t head = value * sharing; head < (value + 1) * sharing; head++) {
            read_slab(a, &s, GRAD_DY, sample, a->heads, head, w->dy);
            head_gradient(a, &s, head, w);
        }
        if (a->call->out[OUT_V])
            write_slab(a, &s, sample, a->values, value, w->dv);
    }
    for (int64_t shared = 0; shared < sharing; shared++)
        write_maps(a, sample, value * sharing + shared, w->sums + shared * w->sums_of_head);
}

/* Parts share the heads of values of all samples. */
static att_status axes_grad_run(const att_call *call)
{
    axes a = axes_at(axes_of(call->problem, GRAD_V, GRADIENT_SLAB), call, GRAD_V);
    workspace w = workspace_of(&a, call->scratch);
    att_range part = att_part_of(call, call->problem->group * a.values, 1);
    for (int64_t i = part.begin; i < part.end; i++)
        value_gradient(&a, i / a.values, i % a.values, &w);
    return ATT_OK;
}

static att_status axes_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    axes a = axes_of(problem, GRAD_V, GRADIENT_SLAB);
    prepared->scratch_bytes = (size_t)workspace_of(&a, NULL).elements * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(mix_axes_grad, .bf16_in = 1u << GRAD_DY | 1u << GRAD_V, .bf16_out = 1u << OUT_V,
                .prepare = axes_grad_prepare, .run = axes_grad_run);
