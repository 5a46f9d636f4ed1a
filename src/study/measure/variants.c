/* Copies of a network's residual stream with parts of it switched off. */
#include "study/measure/variants.h"

#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "engine/ops/attention.h"
#include "engine/ops/combine.h"
#include "study/measure/clone.h"

#define AS_VARIANT(skip, mlp, norms, name) {skip, mlp, norms},
#define AS_NAME(skip, mlp, norms, name) name,
const att_variant att_variants[ATT_VARIANTS] = {ATT_VARIANT_LIST(AS_VARIANT)};
const char *const att_variant_names[] = {ATT_VARIANT_LIST(AS_NAME) NULL};
const char *const att_norms_choices[] = {"on", "off", "all", NULL};
const char *const att_parts_choices[] = {"both", "all", NULL};

void att_variants_choose(double parts, double norms, bool chosen[ATT_VARIANTS])
{
    for (int v = 0; v < ATT_VARIANTS; v++) {
        const att_variant *variant = &att_variants[v];
        chosen[v] = (parts == ATT_PARTS_ALL || (variant->skip && variant->mlp)) &&
                    (norms == ATT_NORMS_ALL || variant->norms == (norms == ATT_NORMS_ON));
    }
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* What the way from the stream x of a step to a value contains; 0 for values that do not depend on x. */
enum { STREAM = 1, ATTENTION = 2, ACTIVATION = 4 };

typedef struct step {
    att_residual_step at;
    att_value sum, branch; /* the output of the addition, and what it adds to the stream */
    unsigned *content;     /* of each value, up to the branch */
    bool attends;
    const char *scope; /* a copy of at.scope in the arena of the rows */
    bool selected;     /* by the user's pattern */
    bool ends_layer;   /* the next step attends, or there is none */
} step;

typedef struct network {
    att_requests *requests;
    att_graph *graph;
    att_arena arena;
    step *steps;
    int count;
    att_variant_rows *rows;
    /* While a variant is copied: */
    const att_variant *variant;
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

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void add_row(network *n, const step *s, const char *label, att_value x, bool ends_layer)
{
    att_variant_row *row = &n->rows->items[n->rows->count++];
    const bool input = x == s->at.before && strcmp(label, "before") == 0;
    const int variant = (int)(n->variant - att_variants);
    *row = (att_variant_row){.node = input ? "input" : s->scope,
                             .scope = s->scope,
                             .variant = variant,
                             .x = x,
                             .original = x == s->at.before || x == s->at.after,
                             .selected = input || s->selected,
                             .ends_layer = ends_layer};
    snprintf(row->probe, sizeof row->probe, "%s.%s.%s", s->scope, label, att_variant_names[variant]);
}

/* Copies the network's stream for the variant. */
static void copy_variant(network *n, att_clone *clone)
{
    const step *first = n->steps;
    att_clone_replace(clone, first->at.before, first->at.before); /* the rule is asked for all that depends on it */
    add_row(n, first, "before", first->at.before, true);
    for (int i = 0; i < n->count; i++) {
        const step *s = &n->steps[i];
        n->within_stage = !s->at.begins;
        att_value x = att_clone_value(clone, s->at.before);
        att_value sum = is_left_out(n, s) ? x : take_step(n, clone, s, x);
        att_clone_replace(clone, s->sum, sum);
        if (!is_left_out(n, s)) {
            n->within_stage = true;
            add_row(n, s, "after", att_clone_value(clone, s->at.after), !n->variant->mlp || s->ends_layer);
        } else if (i + 1 < n->count && !s[1].at.begins)
            att_clone_replace(clone, s[1].at.before, x); /* without the norm that may follow the addition */
    }
}

static att_status reserve_rows(network *n)
{
    att_variant_rows *rows = n->rows;
    rows->items = att_arena_allocate(&rows->arena, (size_t)ATT_VARIANTS * ((size_t)n->count + 1) * sizeof *rows->items);
    if (!rows->items)
        return fail_memory(n);
    for (int i = 0; i < n->count; i++) {
        n->steps[i].scope = att_arena_string(&rows->arena, n->steps[i].at.scope);
        if (!n->steps[i].scope)
            return fail_memory(n);
    }
    return ATT_OK;
}

static att_status copy_variants(network *n, const bool chosen[ATT_VARIANTS])
{
    bool found = false;
    for (int i = 0; i < n->count; i++)
        found |= n->steps[i].selected;
    if (!found)
        return att_requests_found_nothing(n->requests, "residual addition of tokens");
    ATT_TRY(reserve_rows(n));
    for (int v = 0; v < ATT_VARIANTS; v++) {
        att_clone clone;
        if (!chosen[v])
            continue;
        n->variant = &att_variants[v];
        ATT_TRY(att_clone_begin(n->graph, rule, n, &clone));
        copy_variant(n, &clone);
        att_clone_end(&clone);
    }
    return n->graph->status;
}

att_status att_variants_request(att_requests *requests, const bool chosen[ATT_VARIANTS], att_variant_rows *rows)
{
    network n = {.requests = requests, .graph = att_requests_graph(requests), .rows = rows};
    *rows = (att_variant_rows){.arena.context = n.graph->context};
    n.arena.context = n.graph->context;
    att_status status = find_steps(&n);
    if (status == ATT_OK)
        status = copy_variants(&n, chosen);
    att_arena_free(&n.arena);
    if (status != ATT_OK)
        att_arena_free(&rows->arena);
    return status;
}

void att_variants_add_series(att_requests *requests, const att_variant_rows *rows, const char *statistic)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->items[i].selected)
            att_requests_reading(requests, rows->items[i].node, -1, statistic,
                                 att_variant_names[rows->items[i].variant]);
}

att_status att_variants_request_values(att_requests *requests, const char *what,
                                       att_value (*value_of)(att_graph *graph, att_value x), att_variant_rows *rows)
{
    enum { PARTS, NORMS };
    att_graph *graph = att_requests_graph(requests);
    bool chosen[ATT_VARIANTS];
    att_variants_choose(att_requests_option(requests, PARTS), att_requests_option(requests, NORMS), chosen);
    ATT_TRY(att_variants_request(requests, chosen, rows));
    for (int i = 0; i < rows->count; i++) {
        const att_variant_row *row = &rows->items[i];
        char name[sizeof row->probe + 16];
        if (!row->selected)
            continue;
        snprintf(name, sizeof name, "%s.%s", row->probe, what);
        att_graph_scope(graph, row->scope);
        att_requests_value(requests, name, value_of(graph, row->x), (double)att_value_shape(graph, row->x).dims[0]);
    }
    return ATT_OK;
}
