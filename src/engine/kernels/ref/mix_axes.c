#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/attention.h"

/* One channel of one head of a sample. */
typedef struct channel {
    const att_call *call;
    const att_attention_attrs *attrs;
    int first; /* the node's input v */
    int64_t sample, head, value, number, width;
} channel;

static channel choose(const att_call *call, int first, int64_t sample, int64_t head, int64_t number)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    int64_t width = ref_dim(call, first, 1) / attrs->value_heads;
    return (channel){call, attrs, first, sample, head, head / (attrs->heads / attrs->value_heads), number, width};
}

/* Index of a token's number in values with `heads` heads. */
static int64_t at(const channel *c, int64_t y, int64_t x, int64_t heads, int64_t head)
{
    int64_t h = c->attrs->grid_h, w = c->attrs->grid_w;
    return (((c->sample * h + y) * w + x) * heads + head) * c->width + c->number;
}

static double value_at(const channel *c, int64_t y, int64_t x)
{
    return ref_in(c->call, c->first, at(c, y, x, c->attrs->value_heads, c->value));
}

static double row_weight(const channel *c, int64_t y, int64_t key)
{
    return ref_in(c->call, c->first + 1, (c->head * c->attrs->grid_h + y) * c->attrs->grid_h + key);
}

static double column_weight(const channel *c, int64_t x, int64_t key)
{
    return ref_in(c->call, c->first + 2, (c->head * c->attrs->grid_w + x) * c->attrs->grid_w + key);
}

/* sum over x' of c_xx' v_y'x' */
static double along_row(const channel *c, int64_t key_row, int64_t x)
{
    double sum = 0;
    for (int64_t key = 0; key < c->attrs->grid_w; key++)
        sum += column_weight(c, x, key) * value_at(c, key_row, key);
    return sum;
}

static att_status prepare_axes(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)((const att_attention_attrs *)problem->attrs)->grid_h * sizeof(double);
    return ATT_OK;
}

static att_status run_axes(const att_call *call)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    int64_t heads = attrs->heads, width = ref_dim(call, 0, 1) / attrs->value_heads;
    double *of_rows = call->scratch;
    ref_range share = ref_share(call, call->problem->group * heads * width);
    for (int64_t i = share.begin; i < share.end; i++) {
        channel c = choose(call, 0, i / width / heads, i / width % heads, i % width);
        for (int64_t x = 0; x < attrs->grid_w; x++) {
            for (int64_t key = 0; key < attrs->grid_h; key++)
                of_rows[key] = along_row(&c, key, x);
            for (int64_t y = 0; y < attrs->grid_h; y++) {
                double sum = 0;
                for (int64_t key = 0; key < attrs->grid_h; key++)
                    sum += row_weight(&c, y, key) * of_rows[key];
                ref_out(call, 0, at(&c, y, x, heads, c.head), sum);
            }
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_axes = {.op = "mix_axes", .name = "ref", .prepare = prepare_axes, .run = run_axes};

enum { GRAD_V = 1 };

/* Gradients of one sample, and numbers of one channel for each token. */
typedef struct gradients {
    double *of[3];               /* of v and the maps */
    double *along_rows, *of_key; /* sum over x' of c_xx' v_y'x'; sum over y of r_yy' do_yx */
} gradients;

static int64_t count_of(const att_problem *problem, int input)
{
    return att_shape_count(problem->in[GRAD_V + input].shape);
}

/* Fills both numbers of all tokens of a channel. */
static void prepare_channel(const channel *c, const gradients *g)
{
    int64_t h = c->attrs->grid_h, w = c->attrs->grid_w;
    for (int64_t key = 0; key < h; key++)
        for (int64_t x = 0; x < w; x++) {
            double sum = 0;
            for (int64_t y = 0; y < h; y++)
                sum += row_weight(c, y, key) * ref_in(c->call, 0, at(c, y, x, c->attrs->heads, c->head));
            g->of_key[key * w + x] = sum;
            g->along_rows[key * w + x] = along_row(c, key, x);
        }
}

static void add_gradients(const channel *c, const gradients *g)
{
    int64_t h = c->attrs->grid_h, w = c->attrs->grid_w;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            double dy = ref_in(c->call, 0, at(c, y, x, c->attrs->heads, c->head));
            for (int64_t key = 0; key < h; key++)
                g->of[1][(c->head * h + y) * h + key] += dy * g->along_rows[key * w + x];
            for (int64_t key = 0; key < w; key++) {
                g->of[2][(c->head * w + x) * w + key] += g->of_key[y * w + x] * value_at(c, y, key);
                int64_t begin = c->sample * h * w * c->attrs->value_heads * c->width;
                g->of[0][at(c, y, key, c->attrs->value_heads, c->value) - begin] +=
                    column_weight(c, x, key) * g->of_key[y * w + x];
            }
        }
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    const att_attention_attrs *attrs = problem->attrs;
    int64_t count = 2 * (int64_t)attrs->grid_h * attrs->grid_w;
    for (int i = 0; i < 3; i++)
        count += count_of(problem, i);
    prepared->scratch_bytes = (size_t)count * sizeof(double);
    return ATT_OK;
}

static gradients divide_scratch(const att_call *call)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    gradients g = {.along_rows = call->scratch};
    double *next = g.of_key = g.along_rows + (int64_t)attrs->grid_h * attrs->grid_w;
    next += (int64_t)attrs->grid_h * attrs->grid_w;
    for (int i = 0; i < 3; next += count_of(call->problem, i++)) {
        g.of[i] = next;
        memset(next, 0, (size_t)count_of(call->problem, i) * sizeof *next);
    }
    return g;
}

static att_status run_grad(const att_call *call)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    int64_t width = ref_dim(call, GRAD_V, 1) / attrs->value_heads;
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        gradients g = divide_scratch(call);
        for (int64_t i = 0; i < attrs->heads * width; i++) {
            channel c = choose(call, GRAD_V, sample, i / width, i % width);
            prepare_channel(&c, &g);
            add_gradients(&c, &g);
        }
        for (int i = 0; i < 3; i++)
            for (int64_t e = 0; e < count_of(call->problem, i); e++)
                ref_out(call, i, sample * count_of(call->problem, i) + e, g.of[i][e]);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_axes_grad = {
    .op = "mix_axes_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
