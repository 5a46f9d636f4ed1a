/* ops/attention.h - attributes of attention and its gradient. */
#ifndef ATT_OPS_ATTENTION_H
#define ATT_OPS_ATTENTION_H

#include <attscope/tensor.h>

#include "graph/op.h"

/* Columns of the attention statistics, which have one row per head and query. a is the query's row of the attention
 * map. */
typedef enum att_attention_stat {
    ATT_STAT_ENTROPY,  /* -sum_j a_j ln a_j, nats */
    ATT_STAT_SUM2,     /* sum_j a_j^2 */
    ATT_STAT_SUM3,     /* sum_j a_j^3 */
    ATT_STAT_DISTANCE, /* sum over spatial j != i of a_j ||p_i - p_j||; 0 for prefix queries */
    ATT_STAT_PREFIX,   /* sum over prefix tokens (class token, registers) of a_j */
    ATT_STAT_SELF,     /* a_i */
    ATT_STAT_MAX,      /* max_j a_j */
    ATT_STAT_ARGMAX,   /* the smallest j with the maximum */
    ATT_STAT_COUNT
} att_attention_stat;

/* Tokens 0..prefix-1 are not on the grid. The others fill grid_h x grid_w, row by row (0 x 0: no grid), with distance
 * step_h between adjacent rows and step_w between adjacent columns. */
typedef struct att_attention_attrs {
    int32_t heads, key_heads, value_heads; /* the last two divide heads: h / (heads / key_heads) is the key head of h */
    int32_t prefix, grid_h, grid_w;
    double step_h, step_w;
    double scale; /* factor of q . k, usually 1/sqrt(d) */
} att_attention_attrs;

/* As many heads of keys and values as of queries. */
#define ATT_ATTENTION_HEADS(count) .heads = (count), .key_heads = (count), .value_heads = (count)

/* The queries, keys and values of an attention, which its inputs q, k and v hold. An absent k or v lies in the rows of
 * the input before it, to the right: q alone holds q, k and v side by side. */
enum { ATT_ATTENTION_Q, ATT_ATTENTION_K, ATT_ATTENTION_V, ATT_ATTENTION_OPERANDS };

typedef struct att_attention_operand {
    int64_t input;          /* which of the inputs q, k, v holds it */
    int64_t tokens, stride; /* rows of that input, and elements of a row */
    int64_t offset;         /* of the first head in a row */
    int64_t heads, width;   /* width of one head */
} att_attention_operand;

/* Divides the columns of the inputs among heads. in: q, k, v. Returns false if they do not divide; the result then has
 * no meaning. */
ATT_FOR_LAB bool att_attention_divide(const att_desc in[ATT_ATTENTION_OPERANDS], const att_attention_attrs *attrs,
                                      att_attention_operand operand[ATT_ATTENTION_OPERANDS]);

#endif
