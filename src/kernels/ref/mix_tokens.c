#include "kernels/ref/call.h"
#include "kernels/ref/list.h"
#include "ops/attention.h"

typedef struct mixing {
    int64_t count, sharing; /* of maps; of maps that share a value */
    int64_t tokens, width;  /* width: of a value */
} mixing;

/* columns: of input 0, which are U e or, if of_heads, H e. */
static mixing mixing_of(const att_call *call, int64_t columns, bool of_heads)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    return (mixing){attrs->heads, attrs->heads / attrs->value_heads, ref_dim(call, 0, 0),
                    columns / (of_heads ? attrs->heads : attrs->value_heads)};
}

/* Index of channel c of a token and head, in rows of `heads` heads. */
static int64_t at(const mixing *h, int64_t token, int64_t heads, int64_t head, int64_t c)
{
    return (token * heads + head) * h->width + c;
}

static att_status run_mix(const att_call *call)
{
    mixing h = mixing_of(call, ref_dim(call, 0, 1), false);
    ref_range share = ref_share(call, call->problem->group * h.tokens * h.count);
    for (int64_t row = share.begin; row < share.end; row++) {
        int64_t head = row % h.count, token = row / h.count, sample = token / h.tokens;
        for (int64_t c = 0; c < h.width; c++) {
            double sum = 0;
            for (int64_t j = 0; j < h.tokens; j++)
                sum += ref_in(call, 1, (head * h.tokens + token % h.tokens) * h.tokens + j) *
                       ref_in(call, 0, at(&h, sample * h.tokens + j, h.count / h.sharing, head / h.sharing, c));
            ref_out(call, 0, row * h.width + c, sum);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_tokens = {.op = "mix_tokens", .name = "ref", .run = run_mix};

static att_status run_values_grad(const att_call *call)
{
    mixing h = mixing_of(call, ref_dim(call, 0, 1), true);
    int64_t values = h.count / h.sharing;
    ref_range share = ref_share(call, call->problem->group * h.tokens * values);
    for (int64_t row = share.begin; row < share.end; row++) {
        int64_t value = row % values, token = row / values, sample = token / h.tokens;
        for (int64_t c = 0; c < h.width; c++) {
            double sum = 0;
            for (int64_t head = value * h.sharing; head < (value + 1) * h.sharing; head++)
                for (int64_t i = 0; i < h.tokens; i++)
                    sum += ref_in(call, 1, (head * h.tokens + i) * h.tokens + token % h.tokens) *
                           ref_in(call, 0, at(&h, sample * h.tokens + i, h.count, head, c));
            ref_out(call, 0, row * h.width + c, sum);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_tokens_values_grad = {
    .op = "mix_tokens_values_grad", .name = "ref", .run = run_values_grad};

static att_status run_map_grad(const att_call *call)
{
    mixing h = mixing_of(call, ref_dim(call, 0, 1), true);
    ref_range share = ref_share(call, h.count * h.tokens * h.tokens);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t head = e / h.tokens / h.tokens, i = e / h.tokens % h.tokens, j = e % h.tokens;
        double sum = 0;
        for (int64_t sample = 0; sample < call->problem->group; sample++)
            for (int64_t c = 0; c < h.width; c++)
                sum += ref_in(call, 0, at(&h, sample * h.tokens + i, h.count, head, c)) *
                       ref_in(call, 1, at(&h, sample * h.tokens + j, h.count / h.sharing, head / h.sharing, c));
        ref_sum(call, 0, e, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_tokens_map_grad = {.op = "mix_tokens_map_grad", .name = "ref", .run = run_map_grad};
