#include "base/core/error.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/attention.h"

/* Numbers are read once for a head, because the sums have N N e terms. */

typedef struct mixing {
    const att_call *call;
    int64_t heads, values;  /* of maps; of values */
    int64_t tokens, width;  /* width: of a head */
    double *x, *y, *weight; /* scratch: [tokens, width], [tokens, width] and [tokens] */
} mixing;

/* of_heads: whether rows of input 0 hold all heads, else those of values. */
static mixing mixing_of(const att_problem *problem, bool of_heads)
{
    const att_attention_attrs *attrs = problem->attrs;
    const int64_t *dims = problem->in[0].shape.dims;
    return (mixing){.heads = attrs->heads,
                    .values = attrs->value_heads,
                    .tokens = dims[0],
                    .width = dims[1] / (of_heads ? attrs->heads : attrs->value_heads)};
}

static mixing mixing_at(const att_call *call, bool of_heads)
{
    mixing m = mixing_of(call->problem, of_heads);
    m.call = call;
    m.x = call->scratch, m.y = m.x + m.tokens * m.width, m.weight = m.y + m.tokens * m.width;
    return m;
}

static att_status prepare_of(const att_problem *problem, bool of_heads, att_prepared *prepared)
{
    mixing m = mixing_of(problem, of_heads);
    prepared->scratch_bytes = (size_t)((2 * m.width + 1) * m.tokens) * sizeof(double);
    return ATT_OK;
}

/* Index of channel c of a token in rows of `heads` heads. */
static int64_t at(const mixing *m, int64_t sample, int64_t token, int64_t heads, int64_t head, int64_t c)
{
    return ((sample * m->tokens + token) * heads + head) * m->width + c;
}

/* Reads one head of input i. */
static void read_head(const mixing *m, int i, int64_t sample, int64_t heads, int64_t head, double *to)
{
    for (int64_t token = 0; token < m->tokens; token++)
        for (int64_t c = 0; c < m->width; c++)
            *to++ = ref_in(m->call, i, at(m, sample, token, heads, head, c));
}

/* Reads row i of a head's map. */
static void read_weights(const mixing *m, int64_t head, int64_t i)
{
    for (int64_t j = 0; j < m->tokens; j++)
        m->weight[j] = ref_in(m->call, 1, (head * m->tokens + i) * m->tokens + j);
}

static void write_head(const mixing *m, int64_t sample, int64_t heads, int64_t head)
{
    for (int64_t token = 0; token < m->tokens; token++)
        for (int64_t c = 0; c < m->width; c++)
            ref_out(m->call, 0, at(m, sample, token, heads, head, c), m->y[token * m->width + c]);
}

/* y += factor x, of one token. */
static void add_token(const mixing *m, int64_t to, double factor, int64_t from)
{
    for (int64_t c = 0; c < m->width; c++)
        m->y[to * m->width + c] += factor * m->x[from * m->width + c];
}

static void clear(const mixing *m)
{
    memset(m->y, 0, (size_t)(m->tokens * m->width) * sizeof *m->y);
}

static att_status prepare_mix(const att_problem *problem, att_prepared *prepared)
{
    return prepare_of(problem, false, prepared);
}

static att_status run_mix(const att_call *call)
{
    mixing m = mixing_at(call, false);
    ref_range share = ref_share(call, call->problem->group * m.heads);
    for (int64_t unit = share.begin; unit < share.end; unit++) {
        int64_t sample = unit / m.heads, head = unit % m.heads;
        read_head(&m, 0, sample, m.values, head / (m.heads / m.values), m.x);
        clear(&m);
        for (int64_t i = 0; i < m.tokens; i++) {
            read_weights(&m, head, i);
            for (int64_t j = 0; j < m.tokens; j++)
                add_token(&m, i, m.weight[j], j);
        }
        write_head(&m, sample, m.heads, head);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_tokens = {.op = "mix_tokens", .name = "ref", .prepare = prepare_mix, .run = run_mix};

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    return prepare_of(problem, true, prepared);
}

static att_status run_values_grad(const att_call *call)
{
    mixing m = mixing_at(call, true);
    int64_t sharing = m.heads / m.values;
    ref_range share = ref_share(call, call->problem->group * m.values);
    for (int64_t unit = share.begin; unit < share.end; unit++) {
        int64_t sample = unit / m.values, value = unit % m.values;
        clear(&m);
        for (int64_t head = value * sharing; head < (value + 1) * sharing; head++) {
            read_head(&m, 0, sample, m.heads, head, m.x);
            for (int64_t i = 0; i < m.tokens; i++) {
                read_weights(&m, head, i);
                for (int64_t j = 0; j < m.tokens; j++)
                    add_token(&m, j, m.weight[j], i);
            }
        }
        write_head(&m, sample, m.values, value);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_tokens_values_grad = {
    .op = "mix_tokens_values_grad", .name = "ref", .prepare = prepare_grad, .run = run_values_grad};

/* The sums of all samples take the place of the weights. */
static att_status prepare_map_grad(const att_problem *problem, att_prepared *prepared)
{
    ATT_TRY(prepare_of(problem, true, prepared));
    int64_t tokens = problem->in[0].shape.dims[0];
    prepared->scratch_bytes += (size_t)(tokens * tokens) * sizeof(double);
    return ATT_OK;
}

/* Adds dy_i . v_j of one sample to the sums. */
static void add_products(const mixing *m)
{
    for (int64_t i = 0; i < m->tokens; i++)
        for (int64_t j = 0; j < m->tokens; j++) {
            double sum = 0;
            for (int64_t c = 0; c < m->width; c++)
                sum += m->x[i * m->width + c] * m->y[j * m->width + c];
            m->weight[i * m->tokens + j] += sum;
        }
}

static att_status run_map_grad(const att_call *call)
{
    mixing m = mixing_at(call, true);
    int64_t count = m.tokens * m.tokens;
    ref_range share = ref_share(call, m.heads);
    for (int64_t head = share.begin; head < share.end; head++) {
        memset(m.weight, 0, (size_t)count * sizeof *m.weight);
        for (int64_t sample = 0; sample < call->problem->group; sample++) {
            read_head(&m, 0, sample, m.heads, head, m.x);
            read_head(&m, 1, sample, m.values, head / (m.heads / m.values), m.y);
            add_products(&m);
        }
        for (int64_t e = 0; e < count; e++)
            ref_sum(call, 0, head * count + e, m.weight[e]);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_tokens_map_grad = {
    .op = "mix_tokens_map_grad", .name = "ref", .prepare = prepare_map_grad, .run = run_map_grad};
