/* What keeps the tokens of a network apart: the rank residual along the network with parts of it switched off. Each
 * variant is a copy of the network's residual stream (measure/clone.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "measure/clone.h"
#include "measure/list.h"
#include "ops/attention.h"
#include "ops/combine.h"

enum { NORMS };        /* options */
enum { ON, OFF, ALL }; /* of NORMS */
static const char *const norms_choices[] = {"on", "off", "all", NULL};
static const att_detail options[] = {{.name = "norms",
                                      .meaning = "the norms in the blocks: as they are, switched off, or both",
                                      .high = ALL,
                                      .choices = norms_choices}};

typedef struct variant {
    bool skip, mlp, norms;
    const char *composite, *frobenius, *rate; /* names of the statistics */
} variant;

#define VARIANT(skip, mlp, norms, name)                                      \
    {                                                                        \
        skip, mlp, norms, "composite " name, "frobenius " name, "rate " name \
    }
#define NAMES(X)                                \
    X(false, false, true, "attention")          \
    X(true, false, true, "skip")                \
    X(false, true, true, "mlp")                 \
    X(true, true, true, "both")                 \
    X(false, false, false, "attention_no_norm") \
    X(true, false, false, "skip_no_norm")       \
    X(false, true, false, "mlp_no_norm")        \
    X(true, true, false, "both_no_norm")
#define AS_VARIANT(skip, mlp, norms, name) VARIANT(skip, mlp, norms, name),
#define AS_NAME(skip, mlp, norms, name) name,
static const variant variants[] = {NAMES(AS_VARIANT)};
static const char *const readings[] = {NAMES(AS_NAME) NULL};
enum { VARIANTS = sizeof variants / sizeof *variants };

static bool is_chosen(const att_requests *requests, const variant *v)
{
    const double choice = att_requests_option(requests, NORMS);
    return choice == ALL || v->norms == (choice == ON);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* What the way from the stream x of a step to a value contains; 0 for values that do not depend on x. */
enum { STREAM = 1, ATTENTION = 2, ACTIVATION = 4 };

typedef struct step {
    att_residual_step at;
    att_value sum, branch; /* the output of the addition, and what it adds to the stream */
    unsigned *content;     /* of each value, up to the branch */
    bool attends;
    bool selected;   /* by the user's pattern */
    bool ends_layer; /* the next step attends, or there is none */
} step;

typedef struct network {
    att_requests *requests;
    att_graph *graph;
    att_arena arena;
    step *steps;
    int count;
    /* While a variant is copied: */
    const variant *variant;
    const step *copied; /* whose branch is copied; NULL: the way between two steps */
    bool within_stage;  /* that way changes no shapes */
} network;

static bool is_one_of(const att_node *node, const char *const *ops)
{
    while (*ops && strcmp(*ops, node->op->name) != 0)
        ops++;
    return *ops != NULL;
}

static unsigned content_of(const att_node *node, const unsigned *content)
{
    static const char *const activations[] = {"gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "swiglu", NULL};
    unsigned all = 0;
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE)
            all |= content[node->in[j]];
    if (all && att_is_attention(node))
        all |= ATTENTION;
    if (all && is_one_of(node, activations))
        all |= ACTIVATION;
    return all;
}

/* A step without attention and without an activation stands in the place of attention: it mixes tokens in another way,
 * such as by their mean. */
static bool find_content(network *n, step *s)
{
    const att_graph *graph = n->graph;
    s->content = att_arena_allocate(&n->arena, (size_t)graph->values.count * sizeof *s->content);
    if (!s->content)
        return false;
    s->content[s->at.before] = STREAM;
    for (int i = 0; i < s->at.node; i++) {
        const att_node *node = &graph->nodes.items[i];
        unsigned content = content_of(node, s->content);
        for (int j = 0; j < node->out_count; j++)
            s->content[node->out[j]] |= content;
    }
    unsigned branch = s->content[s->branch];
    s->attends = branch & ATTENTION || !(branch & ACTIVATION);
    return true;
}

static att_status fail_memory(const network *n)
{
    return att_fail_memory(n->graph->context, sizeof *n->steps, "an instrument");
}

/* Lists the residual additions of tokens. */
static att_status find_steps(network *n)
{
    att_graph *graph = n->graph;
    att_residual_step at = {.node = -1};
    int found = 0, attending = 0;
    while (att_residual_step_next(graph, at.node, &at))
        found++;
    n->steps = att_arena_allocate(&n->arena, ((size_t)found + 1) * sizeof *n->steps);
    if (!n->steps)
        return fail_memory(n);
    for (at.node = -1; att_residual_step_next(graph, at.node, &at);) {
        step *s = &n->steps[n->count++];
        *s = (step){.at = at,
                    .sum = graph->nodes.items[at.node].out[0],
                    .branch = graph->nodes.items[at.node].in[1],
                    .selected = att_requests_node(n->requests, "add", at.node - 1) == at.node};
        if (!find_content(n, s))
            return fail_memory(n);
        attending += (s->content[s->branch] & ATTENTION) != 0;
    }
    int kept = 0;
    for (int i = 0; i < n->count; i++)
        if (att_value_shape(graph, n->steps[i].at.before).rank == 2)
            n->steps[kept++] = n->steps[i];
    n->count = kept;
    for (int i = 0; i < kept; i++)
        n->steps[i].ends_layer = i + 1 == kept || n->steps[i + 1].attends;
    return attending > 0 && kept > 0
               ? ATT_OK
               : att_requests_fail(n->requests, "the network has no residual addition of attention between tokens");
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static bool is_norm(const att_graph *graph, const att_node *node)
{
    static const char *const norms[] = {"layer_norm", "rms_norm", NULL};
    return is_one_of(node, norms) && att_value_shape(graph, node->in[0]).rank == 2;
}

/* Index of the operand that is the MLP of a branch with attention beside it; -1 if there is none. */
static int find_mlp(const step *s, const att_node *node)
{
    static const char *const joins[] = {"add", "combine", "concat", NULL};
    if (!is_one_of(node, joins) || node->in_count < 2 || node->in[1] == ATT_NONE)
        return -1;
    unsigned a = s->content[node->in[0]], b = s->content[node->in[1]];
    if (a & ATTENTION && !(b & ATTENTION) && b & ACTIVATION)
        return 1;
    return b & ATTENTION && !(a & ATTENTION) && a & ACTIVATION ? 0 : -1;
}

/* The node without its operand `mlp`. */
static att_value without_mlp(att_graph *graph, const att_node *node, const att_value *in, int mlp)
{
    att_value rest[2] = {in[0], in[1]};
    if (strcmp(node->op->name, "add") == 0)
        return in[!mlp];
    if (strcmp(node->op->name, "combine") == 0) {
        const att_combine_attrs *attrs = ATT_ATTRS(node, combine);
        return att_combine(graph, mlp ? attrs->a : attrs->b, in[!mlp], 0, ATT_NONE);
    }
    rest[mlp] = att_combine(graph, 0, in[mlp], 0, ATT_NONE);
    return att_concat(graph, rest[0], rest[1]);
}

static att_value rule(void *user, att_graph *graph, const att_node *node, const att_value *in)
{
    const network *n = user;
    if (!n->variant->norms && (n->copied || n->within_stage) && is_norm(graph, node))
        return in[0];
    int mlp = n->copied && !n->variant->mlp ? find_mlp(n->copied, node) : -1;
    return mlp >= 0 ? without_mlp(graph, node, in, mlp) : ATT_NONE;
}

/* The stream after step s with the switches of the variant. x: the stream before. */
static att_value take_step(network *n, att_clone *clone, const step *s, att_value x)
{
    n->copied = s;
    att_value branch = att_clone_value(clone, s->branch);
    n->copied = NULL;
    if (!n->variant->skip)
        return branch;
    if (x == s->at.before && branch == s->branch)
        return s->sum;
    att_graph_scope(n->graph, s->at.scope);
    return att_add(n->graph, x, branch);
}

static bool is_left_out(const network *n, const step *s)
{
    return !s->attends && !n->variant->mlp;
}

/* Copies without norms may have any scale, beyond the range of F32 to which the rows of a graph in F64 are rounded:
 * such a copy is divided by its norm. */
static att_value norms_of(att_graph *graph, att_value x, bool copied)
{
    const att_shape shape = att_value_shape(graph, x);
    if (copied && graph->dtype == ATT_F64) {
        x = att_reshape(graph, x, att_shape_of(1, att_shape_count(shape)));
        x = att_reshape(graph, att_l2_norm(graph, x, 1e-300), shape);
    }
    return att_residual_norms(graph, x, false);
}

/* A row's constant: index of the variant, plus flags. */
enum { VARIANT_BITS = 7, SELECTED = 8, ENDS_LAYER = 16, WIDE = 32 };

static void request_row(const network *n, const step *s, const char *label, att_value x, bool ends_layer)
{
    att_graph *graph = n->graph;
    char name[256];
    bool original = x == s->at.before || x == s->at.after;
    int constant = (int)(n->variant - variants) | (s->selected ? SELECTED : 0) | (ends_layer ? ENDS_LAYER : 0) |
                   (graph->dtype == ATT_F64 ? WIDE : 0);
    snprintf(name, sizeof name, "%s.%s.%s", s->at.scope, label, readings[n->variant - variants]);
    att_graph_scope(graph, s->at.scope);
    att_requests_value(n->requests, name, norms_of(graph, x, !original), constant);
}

/* Copies the network's stream for the variant and requests the rows of its residuals. */
static void request_variant(network *n, att_clone *clone)
{
    const step *first = n->steps;
    att_clone_replace(clone, first->at.before, first->at.before); /* the rule is asked for all that depends on it */
    request_row(n, first, "collapse_before", first->at.before, true);
    for (int i = 0; i < n->count; i++) {
        const step *s = &n->steps[i];
        n->within_stage = !s->at.begins;
        att_value x = att_clone_value(clone, s->at.before);
        att_value sum = is_left_out(n, s) ? x : take_step(n, clone, s, x);
        att_clone_replace(clone, s->sum, sum);
        if (!is_left_out(n, s)) {
            n->within_stage = true;
            request_row(n, s, "collapse", att_clone_value(clone, s->at.after), !n->variant->mlp || s->ends_layer);
        } else if (i + 1 < n->count && !s[1].at.begins)
            att_clone_replace(clone, s[1].at.before, x); /* without the norm that may follow the addition */
    }
}

static void add_series(const network *n, const variant *v, const char *statistic)
{
    att_requests_series(n->requests, "input", -1, statistic);
    for (int i = 0; i < n->count; i++)
        if (n->steps[i].selected && (n->steps[i].attends || v->mlp))
            att_requests_series(n->requests, n->steps[i].at.scope, -1, statistic);
}

static att_status request_rows(network *n)
{
    bool found = false;
    for (int i = 0; i < n->count; i++)
        found |= n->steps[i].selected;
    if (!found)
        return att_requests_found_nothing(n->requests, "residual addition of tokens");
    for (int v = 0; v < VARIANTS; v++) {
        att_clone clone;
        if (!is_chosen(n->requests, &variants[v]))
            continue;
        n->variant = &variants[v];
        ATT_TRY(att_clone_begin(n->graph, rule, n, &clone));
        request_variant(n, &clone);
        att_clone_end(&clone);
    }
    for (int v = 0; v < VARIANTS; v++)
        if (is_chosen(n->requests, &variants[v]))
            add_series(n, &variants[v], variants[v].composite);
    for (int v = 0; v < VARIANTS; v++)
        if (is_chosen(n->requests, &variants[v]))
            add_series(n, &variants[v], variants[v].frobenius);
    for (int v = 0; v < VARIANTS; v++)
        if (is_chosen(n->requests, &variants[v]))
            att_requests_series(n->requests, "", -1, variants[v].rate);
    return n->graph->status;
}

static att_status request(att_requests *requests)
{
    network n = {.requests = requests, .graph = att_requests_graph(requests)};
    n.arena.context = n.graph->context;
    att_status status = find_steps(&n);
    if (status == ATT_OK)
        status = request_rows(&n);
    att_arena_free(&n.arena);
    return status;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Sums over the pairs (ln r_l, ln r_{l+1}) of a variant's layers. */
typedef struct fit {
    double last; /* ln r_l of the last layer; NaN: at the rounding floor */
    double n, x, y, xx, xy;
} fit;

/* Rounding leaves a composite residual of about 13 times the machine precision (measured with DeiT-Tiny: 1.2e-6 to
 * 1.6e-6 in f32, 2.5e-15 to 3.1e-15 in f64). Values below 64 times that precision are not fitted. */
static double least_fitted(int constant)
{
    return 64 * (constant & WIDE ? 0x1p-52 : 0x1p-23);
}

static void add_layer(fit *f, double residual, double floor)
{
    double y = residual > floor ? log(residual) : NAN, x = f->last;
    f->last = y;
    if (isnan(x) || isnan(y))
        return;
    f->n++;
    f->x += x;
    f->y += y;
    f->xx += x * x;
    f->xy += x * y;
}

/* The slope of the least-squares line; NaN for fewer than two pairs, or if all ln r_l are equal. */
static double slope_of(const fit *f)
{
    double variance = f->xx - f->x * f->x / f->n, covariance = f->xy - f->x * f->y / f->n;
    return f->n >= 2 && variance > 0 ? covariance / variance : NAN;
}

static void observe(const att_observed *observed, double *values)
{
    fit fits[VARIANTS] = {0};
    bool used[VARIANTS] = {false};
    int count = 0, at = 0;
    for (int i = 0; i < observed->count; i++)
        count += ((int)observed->constants[i] & SELECTED) != 0;
    for (int i = 0; i < observed->count; i++) {
        const int constant = (int)observed->constants[i], v = constant & VARIANT_BITS;
        double composite = att_residual_composite(observed->rows[i]);
        if (!used[v])
            fits[v].last = NAN;
        used[v] = true;
        if (constant & ENDS_LAYER)
            add_layer(&fits[v], composite, least_fitted(constant));
        if (!(constant & SELECTED))
            continue;
        values[at] = composite;
        values[count + at++] = att_residual_frobenius(observed->rows[i]);
    }
    for (int v = 0; v < VARIANTS; v++)
        if (used[v])
            values[count + at++] = slope_of(&fits[v]);
}

static const att_statistic_info statistics[] = {{"composite", "composite norm", NULL},
                                                {"frobenius", "Frobenius norm", NULL},
                                                {"rate", "collapse rate", NULL},
                                                {NULL, NULL, NULL}};

const att_instrument att_instrument_collapse = {
    .info =
        {.name = "collapse",
         .title = "Rank collapse",
         .summary = "rank collapse: the rank residual with skips and MLPs switched off, without retraining",
         .unit = "1",
         .formula =
             "|res(X)| / |X|, res(X) = X - 1 m', m the mean token, |X| = sqrt(|X|_1 |X|_inf) (composite) or "
             "Frobenius, of the tokens X before the first residual addition (input) and after each; rate: slope of "
             "the least-squares line of ln r_{l+1} against ln r_l, r the composite residual (1: exponential decay, "
             "3: cubic)",
         .source = "Dong et al., ICML 2021",
         .reading =
             "a residual addition is an attention step if its branch contains attention, or no activation, else an "
             "MLP step; attention: x -> f(x) in attention steps, MLP steps are left out; skip: x -> x + f(x), MLP "
             "steps are left out; mlp: x -> f(x) in all steps; both: the network as it is; LayerScale belongs to f; "
             "of a block with attention and MLP side by side, the output of the MLP is left out and a common bias "
             "stays; a norm after an MLP's addition is left out with it; _no_norm (collapse:norms=off): layer and "
             "RMS norms in the blocks are the identity, without scale and shift, except those of queries and keys "
             "and those between stages; rate: a layer reaches from one attention step to the next, and pairs with a "
             "residual below 8e-6 (with --f64: 1e-14) are left out; rounding alone leaves a residual of about 1e-6 "
             "in f32, and of 3e-15 with --f64: values near it are noise, not collapse; a stream that underflows is "
             "undefined",
         .options = options,
         .option_count = sizeof options / sizeof *options,
         .costly = true,
         .statistics = statistics,
         .readings = readings},
    .request = request,
    .observe = observe,
};
