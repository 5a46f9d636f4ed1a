#include "engine/ops/axis_terms.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { ROWS, COLUMNS, AXES };
enum { Q, TABLE }; /* inputs; the table of axis a is input TABLE + a */

/* One axis of one head of a sample. */
typedef struct line {
    const att_call *call;
    const att_axis_terms_attrs *attrs;
    int first; /* the node's input q */
    int axis;
    int64_t sample, head, length; /* length: of the axis */
} line;

static int64_t tokens_of(const line *l)
{
    return ref_dim(l->call, l->first + Q, 0);
}

static int64_t numbers_of(const line *l)
{
    return ref_dim(l->call, l->first + TABLE + l->axis, 1);
}

static line choose(const att_call *call, int first, int64_t sample, int64_t head, int axis)
{
    const att_axis_terms_attrs *attrs = call->problem->attrs;
    return (line){call, attrs, first, axis, sample, head, axis == ROWS ? attrs->grid_h : attrs->grid_w};
}

/* Row of the table for a token and row, or column, `key` of keys; -1 for a prefix token. */
static int64_t shift_of(const line *l, int64_t token, int64_t key)
{
    int64_t place = token - l->attrs->prefix;
    if (place < 0)
        return -1;
    return (l->axis == ROWS ? place / l->attrs->grid_w : place % l->attrs->grid_w) - key + l->length - 1;
}

/* Index of number c of a token's part of q; the table of columns belongs to the last numbers of a head. */
static int64_t q_index(const line *l, int64_t token, int64_t c)
{
    int64_t begin = l->axis == ROWS ? 0 : l->attrs->width - numbers_of(l);
    return (l->sample * tokens_of(l) + token) * ref_dim(l->call, l->first + Q, 1) + l->head * l->attrs->width + begin +
           c;
}

/* Index in rows or columns, and in their gradients. */
static int64_t term_index(const line *l, int64_t token, int64_t key)
{
    return ((l->sample * tokens_of(l) + token) * l->attrs->heads + l->head) * l->length + key;
}

static void put_terms(const line *l)
{
    for (int64_t token = 0; token < tokens_of(l); token++)
        for (int64_t key = 0; key < l->length; key++) {
            int64_t shift = shift_of(l, token, key);
            double sum = 0;
            for (int64_t c = 0; c < numbers_of(l) && shift >= 0; c++)
                sum += ref_in(l->call, l->first + Q, q_index(l, token, c)) *
                       ref_in(l->call, l->first + TABLE + l->axis, shift * numbers_of(l) + c);
            ref_out(l->call, l->axis, term_index(l, token, key), l->attrs->scale * sum);
        }
}

static att_status run_terms(const att_call *call)
{
    int64_t heads = ((const att_axis_terms_attrs *)call->problem->attrs)->heads;
    ref_range share = ref_share(call, call->problem->group * heads);
    for (int64_t i = share.begin; i < share.end; i++)
        for (int axis = 0; axis < AXES; axis++) {
            line l = choose(call, 0, i / heads, i % heads, axis);
            put_terms(&l);
        }
    return ATT_OK;
}

const att_kernel att_ref_axis_terms = {.op = "axis_terms", .name = "ref", .run = run_terms};

enum { GRAD_Q = 2 };

/* The gradients of one sample, in f64. */
typedef struct gradients {
    double *q, *table[AXES];
} gradients;

static void add_gradients(const line *l, const gradients *g)
{
    int64_t q_begin = l->sample * tokens_of(l) * ref_dim(l->call, l->first + Q, 1);
    for (int64_t token = 0; token < tokens_of(l); token++)
        for (int64_t key = 0; key < l->length; key++) {
            int64_t shift = shift_of(l, token, key);
            double dt = l->attrs->scale * ref_in(l->call, l->axis, term_index(l, token, key));
            for (int64_t c = 0; c < numbers_of(l) && shift >= 0; c++) {
                int64_t q = q_index(l, token, c), at = shift * numbers_of(l) + c;
                g->q[q - q_begin] += dt * ref_in(l->call, l->first + TABLE + l->axis, at);
                g->table[l->axis][at] += dt * ref_in(l->call, l->first + Q, q);
            }
        }
}

static int64_t count_of(const att_problem *problem, int input)
{
    return att_shape_count(problem->in[GRAD_Q + input].shape);
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    int64_t count = count_of(problem, Q) + count_of(problem, TABLE) + count_of(problem, TABLE + 1);
    prepared->scratch_bytes = (size_t)count * sizeof(double);
    return ATT_OK;
}

static void put_gradient(const att_call *call, int out, int64_t sample, const double *from)
{
    int64_t count = count_of(call->problem, out);
    for (int64_t e = 0; e < count; e++)
        ref_out(call, out, sample * count + e, from[e]);
}

static att_status run_grad(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t heads = ((const att_axis_terms_attrs *)problem->attrs)->heads;
    gradients g = {.q = call->scratch};
    g.table[ROWS] = g.q + count_of(problem, Q);
    g.table[COLUMNS] = g.table[ROWS] + count_of(problem, TABLE);
    size_t bytes = (size_t)(g.table[COLUMNS] + count_of(problem, TABLE + 1) - g.q) * sizeof(double);
    ref_range share = ref_share(call, problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        memset(g.q, 0, bytes);
        for (int64_t i = 0; i < heads * AXES; i++) {
            line l = choose(call, GRAD_Q, sample, i / AXES, (int)(i % AXES));
            if (ref_has(call, l.axis))
                add_gradients(&l, &g);
        }
        put_gradient(call, Q, sample, g.q);
        put_gradient(call, TABLE + ROWS, sample, g.table[ROWS]);
        put_gradient(call, TABLE + COLUMNS, sample, g.table[COLUMNS]);
    }
    return ATT_OK;
}

const att_kernel att_ref_axis_terms_grad = {
    .op = "axis_terms_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
