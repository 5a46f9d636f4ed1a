#include "engine/ops/rotary.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* A pair of channels of a head. */
typedef struct pair {
    int64_t a, b;         /* their elements in x */
    int64_t cosine, sine; /* the elements of the table */
} pair;

static pair pair_of(const att_call *call, const att_rotary_shape *s, int64_t row, int64_t head, int64_t i)
{
    const att_rotary_attrs *attrs = call->problem->attrs;
    bool halves = attrs->halves;
    int64_t at = row * s->columns + head * s->width;
    int64_t entry = ((row % s->tokens - attrs->prefix) * s->entries + head % s->entries) * s->width;
    return (pair){.a = at + (halves ? i : 2 * i),
                  .b = at + (halves ? i + s->width / 2 : 2 * i + 1),
                  .cosine = entry + i,
                  .sine = entry + s->width / 2 + i};
}

/* Writes a row turned by the angles, or back. */
static void turn_row(const att_call *call, const att_rotary_shape *s, int64_t row, double sign)
{
    const att_rotary_attrs *attrs = call->problem->attrs;
    int64_t turned = row % s->tokens < attrs->prefix ? 0 : attrs->heads;
    for (int64_t c = turned * s->width; c < s->columns; c++)
        ref_out(call, 0, row * s->columns + c, ref_in(call, 0, row * s->columns + c));
    for (int64_t h = 0; h < turned; h++)
        for (int64_t i = 0; i < s->width / 2; i++) {
            pair p = pair_of(call, s, row, h, i);
            double a = ref_in(call, 0, p.a), b = ref_in(call, 0, p.b);
            double cosine = ref_in(call, 1, p.cosine), sine = sign * ref_in(call, 1, p.sine);
            ref_out(call, 0, p.a, a * cosine - b * sine);
            ref_out(call, 0, p.b, b * cosine + a * sine);
        }
}

static att_status run_rotary(const att_call *call)
{
    att_rotary_shape s = att_rotary_shape_of(&call->problem->in[0], &call->problem->in[1]);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++)
        turn_row(call, &s, row, 1);
    return ATT_OK;
}

const att_kernel att_ref_rotary = {.op = "rotary", .name = "ref", .run = run_rotary};

enum { DY, TABLE, X };

static void add_to_table(const att_call *call, const att_rotary_shape *s, int64_t row)
{
    for (int64_t h = 0; h < ATT_ATTRS(call->problem, rotary)->heads; h++)
        for (int64_t i = 0; i < s->width / 2; i++) {
            pair p = pair_of(call, s, row, h, i);
            double da = ref_in(call, DY, p.a), db = ref_in(call, DY, p.b);
            double a = ref_in(call, X, p.a), b = ref_in(call, X, p.b);
            ref_sum(call, 1, p.cosine, da * a + db * b);
            ref_sum(call, 1, p.sine, db * a - da * b);
        }
}

/* Parts share the tokens, which have entries of their own in the table. */
static att_status run_grad(const att_call *call)
{
    att_rotary_shape s = att_rotary_shape_of(&call->problem->in[DY], &call->problem->in[TABLE]);
    ref_range tokens = ref_share(call, s.tokens);
    for (int64_t row = 0; row < ref_rows(call, DY); row++) {
        int64_t token = row % s.tokens;
        if (token < tokens.begin || token >= tokens.end)
            continue;
        turn_row(call, &s, row, -1);
        if (ref_has(call, X) && token >= ATT_ATTRS(call->problem, rotary)->prefix)
            add_to_table(call, &s, row);
    }
    return ATT_OK;
}

const att_kernel att_ref_rotary_grad = {.op = "rotary_grad", .name = "ref", .run = run_grad};
