#include "engine/ops/rotary.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

ATT_INLINE vf v_swap(vf x)
{
    return __builtin_shufflevector(x, x, V_SWAPPED);
}

typedef struct turn {
    const void *x;
    void *y;
    const float *table;
    att_rotary_shape shape;
    int64_t heads, prefix;
    bool halves, back; /* back: by the negative angles */
} turn;

/* Vectors of neighbouring pairs, with cosines c and sines s of each pair. */
ATT_INLINE void turn_vectors(vf x[2], vf c, vf s)
{
    x[0] = v_fma(x[0], v_interleave_low(c, c), v_swap(x[0]) * v_interleave_low(-s, s));
    x[1] = v_fma(x[1], v_interleave_high(c, c), v_swap(x[1]) * v_interleave_high(-s, s));
}

/* Turns a head whose pairs are neighbours. */
ATT_INLINE void turn_pairs(const turn *t, int64_t at, const float *entry, bool x_is_bf16, bool y_is_bf16)
{
    int64_t width = t->shape.width, half = width / 2;
    float sign = t->back ? -1 : 1;
    int64_t i = 0;
    for (; i + 2 * VW <= width; i += 2 * VW) {
        vf x[2] = {v_get(t->x, at + i, x_is_bf16), v_get(t->x, at + i + VW, x_is_bf16)};
        turn_vectors(x, v_load(entry + i / 2), v_load(entry + half + i / 2) * sign);
        v_put_pair(t->y, at + i, x[0], x[1], y_is_bf16);
    }
    if (i == width)
        return;
    int64_t count = width - i, first = count < VW ? count : VW;
    vf x[2] = {v_get_part(t->x, at + i, first, x_is_bf16)};
    if (count > VW)
        x[1] = v_get_part(t->x, at + i + VW, count - VW, x_is_bf16);
    turn_vectors(x, v_load_part(entry + i / 2, count / 2), v_load_part(entry + half + i / 2, count / 2) * sign);
    v_put_part(t->y, at + i, x[0], first, y_is_bf16);
    if (count > VW)
        v_put_part(t->y, at + i + VW, x[1], count - VW, y_is_bf16);
}

/* Turns a head whose pairs lie half a head apart. */
ATT_INLINE void turn_halves(const turn *t, int64_t at, const float *entry, bool x_is_bf16, bool y_is_bf16)
{
    int64_t half = t->shape.width / 2, middle = at + half;
    float sign = t->back ? -1 : 1;
    for (int64_t i = 0; i < half; i += VW) {
        vf c = v_get_until(entry, i, half, false), s = v_get_until(entry, half + i, 2 * half, false) * sign;
        vf a = v_get_until(t->x, at + i, middle, x_is_bf16);
        vf b = v_get_until(t->x, middle + i, middle + half, x_is_bf16);
        v_put_until(t->y, at + i, middle, v_fma(a, c, -(b * s)), y_is_bf16);
        v_put_until(t->y, middle + i, middle + half, v_fma(b, c, a * s), y_is_bf16);
    }
}

ATT_INLINE void turn_row(const turn *t, int64_t row, bool x_is_bf16, bool y_is_bf16)
{
    const att_rotary_shape *s = &t->shape;
    int64_t token = row % s->tokens, turned = token < t->prefix ? 0 : t->heads, at = row * s->columns;
    const float *entries = t->table + (token - t->prefix) * s->entries * s->width;
    for (int64_t h = 0; h < turned; h++) {
        const float *entry = entries + h % s->entries * s->width;
        if (t->halves)
            turn_halves(t, at + h * s->width, entry, x_is_bf16, y_is_bf16);
        else
            turn_pairs(t, at + h * s->width, entry, x_is_bf16, y_is_bf16);
    }
    int64_t copied = at + turned * s->width;
    att_float_move(t->x, copied, x_is_bf16, t->y, copied, y_is_bf16, at + s->columns - copied);
}

/* Turns the tokens [tokens.begin, tokens.end) of each sample. */
ATT_INLINE void turn_tokens(const turn *t, int64_t group, att_range tokens, bool x_is_bf16, bool y_is_bf16)
{
    for (int64_t sample = 0; sample < group; sample++)
        for (int64_t token = tokens.begin; token < tokens.end; token++)
            turn_row(t, sample * t->shape.tokens + token, x_is_bf16, y_is_bf16);
}

static turn turn_of(const att_call *call, bool back)
{
    const att_problem *problem = call->problem;
    const att_rotary_attrs *attrs = problem->attrs;
    return (turn){.x = call->in[0],
                  .y = call->out[0],
                  .table = call->in[1],
                  .shape = att_rotary_shape_of(&problem->in[0], &problem->in[1]),
                  .heads = attrs->heads,
                  .prefix = attrs->prefix,
                  .halves = attrs->halves,
                  .back = back};
}

/* Samples of a derived value: one. */
static int64_t samples_of(const att_call *call)
{
    return att_elements(call, &call->problem->in[0]) / att_shape_count(call->problem->in[0].shape);
}

static void turn_share(const att_call *call, const turn *t, att_range tokens)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    int64_t samples = samples_of(call);
    if (x && y)
        turn_tokens(t, samples, tokens, true, true);
    else if (!x && !y)
        turn_tokens(t, samples, tokens, false, false);
    else
        turn_tokens(t, samples, tokens, x, y);
}

static att_status rotary_run(const att_call *call)
{
    turn t = turn_of(call, false);
    turn_share(call, &t, att_part_of(call, t.shape.tokens, 1));
    return ATT_OK;
}

ATT_SIMD_KERNEL(rotary, .bf16_in = 1, .bf16_out = 1, .run = rotary_run);

enum { DY, TABLE, X };

/* Adds a head to its entry of the table's gradient. */
ATT_INLINE void add_head(const turn *t, const void *x, int64_t at, float *entry, bool dy_is_bf16, bool x_is_bf16)
{
    int64_t half = t->shape.width / 2, step = t->halves ? 1 : 2, apart = t->halves ? half : 1;
    for (int64_t i = 0; i < half; i++) {
        int64_t first = at + i * step;
        float da = att_float_get(t->x, first, dy_is_bf16), db = att_float_get(t->x, first + apart, dy_is_bf16);
        float a = att_float_get(x, first, x_is_bf16), b = att_float_get(x, first + apart, x_is_bf16);
        entry[i] += da * a + db * b;
        entry[half + i] += db * a - da * b;
    }
}

static void add_to_table(const att_call *call, const turn *t, att_range tokens)
{
    const att_rotary_shape *s = &t->shape;
    float *dtable = call->out[1];
    bool dy = att_is_bf16(&call->problem->in[DY]), x = att_is_bf16(&call->problem->in[X]);
    for (int64_t sample = 0; sample < samples_of(call); sample++)
        for (int64_t token = tokens.begin < t->prefix ? t->prefix : tokens.begin; token < tokens.end; token++)
            for (int64_t h = 0; h < t->heads; h++)
                add_head(t, call->in[X], (sample * s->tokens + token) * s->columns + h * s->width,
                         dtable + ((token - t->prefix) * s->entries + h % s->entries) * s->width, dy, x);
}

/* Parts share the tokens, which have entries of their own in the table. */
static att_status rotary_grad_run(const att_call *call)
{
    turn t = turn_of(call, true);
    att_range tokens = att_part_of(call, t.shape.tokens, 1);
    if (call->out[0])
        turn_share(call, &t, tokens);
    if (call->in[X] && call->out[1])
        add_to_table(call, &t, tokens);
    return ATT_OK;
}

ATT_SIMD_KERNEL(rotary_grad, .bf16_in = 1 << DY | 1 << X, .bf16_out = 1, .run = rotary_grad_run);
