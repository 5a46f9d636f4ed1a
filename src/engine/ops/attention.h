/* ops/attention.h - attributes of attention and its gradient. */
#ifndef ATT_OPS_ATTENTION_H
#define ATT_OPS_ATTENTION_H

#include <attscope/tensor.h>

#include "engine/graph/op.h"

/* Columns of the attention statistics, which have one row per head and query. a is the query's row of the attention
 * map. */
typedef enum att_attention_stat {
    ATT_STAT_ENTROPY, /* -sum_j a_j ln a_j, nats */
    /* Sums of a_j, a_j^2 and a_j^3 over all keys except that of ATT_STAT_ARGMAX. They keep their digits in a sharp row,
       which 1 - a_max loses. */
    ATT_STAT_OTHERS,
    ATT_STAT_OTHERS2,
    ATT_STAT_OTHERS3,
    ATT_STAT_DISTANCE, /* sum over spatial j != i of a_j ||p_i - p_j||, with places in the window if there are windows;
                          0 for prefix queries */
    ATT_STAT_PREFIX,   /* sum over prefix tokens (class token, registers) of a_j */
    ATT_STAT_SELF,     /* a_i */
    ATT_STAT_MAX,      /* max_j a_j */
    ATT_STAT_ARGMAX,   /* the smallest j with the maximum */
    /* Moments of the shift d = p_j - p_i, counted in rows (y) and columns (x) of the grid or window. Y and X: sums over
       spatial j of a_j d. YY, XX and YX: sums over spatial j of a_j times the named product of d - m, with the query's
       own mean shift m = (sum a_j d) / (sum a_j). They keep their digits in a sharp row, which sums of a_j d^2 lose. 0
       for prefix queries, without a grid, and if no spatial key has a weight. */
    ATT_STAT_Y,
    ATT_STAT_X,
    ATT_STAT_YY,
    ATT_STAT_XX,
    ATT_STAT_YX,
    ATT_STAT_COUNT
} att_attention_stat;

/* Adds the next weight of a row to the largest one and to the sums of the others. Returns whether it is the largest so
 * far. Begin with zeros. */
static inline bool att_stat_add_weight(double stat[ATT_STAT_COUNT], double a)
{
    bool is_largest = a > stat[ATT_STAT_MAX];
    double other = is_largest ? stat[ATT_STAT_MAX] : a;
    stat[ATT_STAT_MAX] = is_largest ? a : stat[ATT_STAT_MAX];
    stat[ATT_STAT_OTHERS] += other;
    stat[ATT_STAT_OTHERS2] += other * other;
    stat[ATT_STAT_OTHERS3] += other * other * other;
    return is_largest;
}

/* Tokens 0..prefix-1 are not on the grid. The others fill grid_h x grid_w, row by row (0 x 0: no grid), with distance
 * step_h between adjacent rows and step_w between adjacent columns. */
typedef struct att_attention_attrs {
    int32_t heads, key_heads, value_heads; /* the last two divide heads: h / (heads / key_heads) is the key head of h */
    int32_t prefix, grid_h, grid_w;
    int32_t window_h, window_w, shift_h, shift_w; /* 0: no windows */
    int64_t causal;                               /* a bool; as wide as the numbers after it, without padding bytes */
    double step_h, step_w;
    double scale;         /* factor of q . k, usually 1/sqrt(d) */
    double drop_rate;     /* of the weights of the map in training, see att_attention_options */
    uint64_t drop_stream; /* key of the draws that decide */
    int64_t drops;        /* a bool: the node drops. Set in training plans only */
} att_attention_attrs;

/* Number of the draw that decides about the first key of a row of the map, whose keys have consecutive draws. row:
 * query i of head h of a sample is row h N + i. keys: of a row, or of a window. A row begins with a block of draws. */
static inline int64_t att_attention_first_draw(int64_t row, int64_t keys)
{
    return row * ((keys + 3) / 4 * 4);
}

/* Whether the node is an attention layer, with or without content; if so, its attributes are att_attention_attrs. A
 * derived attention, which is computed for a probe of scores without content, is none, and neither is a copy
 * (att_node.copy). */
bool att_is_attention(const struct att_node *node);

/* For att_is_attention(): how many keys a query has, all tokens or those of its window; zero tokens around a map
 * (att_pair_attention()) count. */
int64_t att_attention_keys(const struct att_graph *graph, const struct att_node *node);

/* The largest possible entropy, as a mean over queries: ln N for N keys; with causality a query has 1, 2, ... keys. */
double att_attention_entropy_bound(const struct att_graph *graph, const struct att_node *node);

/* The map of an attention node, [H, N, M] as att_graph_probe_attention_map() describes it, a value of each sample. May
 * add nodes. The scope of the graph becomes that of the node. */
att_value att_attention_map(struct att_graph *graph, const struct att_node *node);

/* att_map_statistic() of the map of an attention node, a value of each sample. As att_attention_map(), and for scores
 * without content it is computed once, not for each sample. kind: an att_map_statistic_kind. */
att_value att_attention_map_statistic(struct att_graph *graph, const struct att_node *node, int kind, double parameter);

/* |dL/ds_i| [H, N], the norms of the gradient of the scores of each query of an attention node with content, from the
 * gradient of its output: ds_ij = a_ij (do_i . v_j - do_i . o_i), over all keys j. Adds an attention_grad. */
att_value att_score_gradient_norms(struct att_graph *graph, const struct att_node *node, att_value gradient);

/* A copy of a shared value for each sample, as probes must be. sample: any value of the samples. */
att_value att_shared_for_samples(struct att_graph *graph, att_value shared, att_value sample);

/* As many heads of keys and values as of queries. */
#define ATT_ATTENTION_HEADS(count) .heads = (count), .key_heads = (count), .value_heads = (count)

/* The queries, keys and values of an attention, which its inputs q, k and v hold. An absent k or v lies in the rows of
 * the input before it, to the right: q alone holds q, k and v side by side. */
enum { ATT_ATTENTION_Q, ATT_ATTENTION_K, ATT_ATTENTION_V, ATT_ATTENTION_OPERANDS };

/* The terms of the scores are three more inputs, which a node without terms lacks. The terms of keys, which have no
 * gradient, are one more input after these, which a node without them lacks. */
enum {
    ATT_ATTENTION_RELATIVE = ATT_ATTENTION_OPERANDS,
    ATT_ATTENTION_ROWS,
    ATT_ATTENTION_COLUMNS,
    ATT_ATTENTION_INPUTS, /* the inputs that have a gradient */
    ATT_ATTENTION_KEYS = ATT_ATTENTION_INPUTS,
    ATT_ATTENTION_MOST_INPUTS
};

typedef struct att_attention_operand {
    int64_t input;          /* which of the inputs q, k, v holds it */
    int64_t tokens, stride; /* rows of that input, and elements of a row */
    int64_t offset;         /* of the first head in a row */
    int64_t heads, width;   /* width of one head */
} att_attention_operand;

/* Divides the columns of the inputs among heads. in: q, k, v. Returns false if they do not divide; the result then has
 * no meaning. */
bool att_attention_divide(const att_desc in[ATT_ATTENTION_OPERANDS], const att_attention_attrs *attrs,
                          att_attention_operand operand[ATT_ATTENTION_OPERANDS]);
/* The same for a node "attention". */
ATT_FOR_LAB void att_attention_operands(const att_graph *graph, const att_node *node,
                                        att_attention_operand operand[ATT_ATTENTION_OPERANDS]);

enum { ATT_ATTENTION_PREFIX_SHIFTS = 3 }; /* of a prefix token as query, as key, as both: the last rows of `relative` */

/* Whether a table `relative`, of rank 2, fits the heads and the grid of the terms. */
bool att_attention_fits_shifts(const att_attention_attrs *attrs, att_shape relative);

/* Windows are numbered row by row. Without windows all tokens are window 0. */
static inline int64_t att_attention_windows(const att_attention_attrs *attrs)
{
    return attrs->window_h ? (int64_t)(attrs->grid_h / attrs->window_h) * (attrs->grid_w / attrs->window_w) : 1;
}

/* The grid on which scores with terms, and distances, have their places: the window, else the whole grid. */
static inline int64_t att_attention_height(const att_attention_attrs *attrs)
{
    return attrs->window_h ? attrs->window_h : attrs->grid_h;
}

static inline int64_t att_attention_width(const att_attention_attrs *attrs)
{
    return attrs->window_h ? attrs->window_w : attrs->grid_w;
}

/* A token of a window. */
typedef struct att_attention_token {
    int64_t index;  /* of the token in the sample */
    int64_t region; /* tokens of different regions only share a window because the grid was rolled, and are masked */
} att_attention_token;

/* Token i of a window. */
att_attention_token att_attention_token_at(const att_attention_attrs *attrs, int64_t window, int64_t i);

/* Row of the table `relative`, which has `rows` rows, for query i and key j, counted in the window if there are
 * windows; -1: none. */
static inline int64_t att_attention_shift_of(const att_attention_attrs *attrs, int64_t rows, int64_t i, int64_t j)
{
    int64_t height = att_attention_height(attrs), width = att_attention_width(attrs), prefix = attrs->prefix;
    int64_t shifts = (2 * height - 1) * (2 * width - 1), shift;
    bool of_query = i < prefix, of_key = j < prefix;
    i -= prefix, j -= prefix;
    if (of_query || of_key)
        shift = shifts + (of_query && of_key ? 2 : of_key);
    else
        shift = (i / width - j / width + height - 1) * (2 * width - 1) + i % width - j % width + width - 1;
    return shift < rows ? shift : -1;
}

/* A query none of whose scores is greater attends to no key. Its logarithm of the sum of exponentials counts as
 * infinite, so that its weights are 0. */
#define ATT_ATTENTION_NO_SCORE (-1e30)

/* Added to the score of tokens of different regions, as Swin's implementation does. (Liu et al., ICCV 2021) */
#define ATT_ATTENTION_MASK (-100.0)

#endif
