#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "engine/plan/plan.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return att_random_key(hash, value, 1);
}

static uint64_t mix_shape(uint64_t hash, att_shape shape)
{
    for (int i = 0; i < shape.rank; i++)
        hash = mix(hash, (uint64_t)shape.dims[i]);
    return hash;
}

/* Numbers values in the order in which they are hashed, so that observers do not change the hash. */
typedef struct numbering {
    int *number, count; /* number[value]: number of the value, counted from 1; 0: none yet */
} numbering;

static uint64_t number_of(numbering *n, att_value value)
{
    if (value == ATT_NONE)
        return 0;
    if (n->number[value] == 0)
        n->number[value] = ++n->count;
    return (uint64_t)n->number[value];
}

/* Must be increased when a change of the code changes the bits of results but nothing else in the fingerprint. Since
 * revision 1, random masks are keyed by the name of the scope. */
enum { REVISION = 1 };

static uint64_t hash_constants(const att_graph *graph, uint64_t hash)
{
    for (int i = 0; i < graph->constants.count; i++) {
        const att_desc *desc = &graph->values.items[graph->constants.items[i].value].desc;
        size_t bytes = (size_t)att_shape_count(desc->shape) * att_dtype_size(desc->dtype);
        hash = att_random_hash_more(mix_shape(hash, desc->shape), graph->constants.items[i].data, bytes);
    }
    return hash;
}

/* Attributes that do not change shapes, such as rates and epsilons, are not hashed. */
static uint64_t hash_graph(const att_rewritten *from, numbering *n)
{
    const att_graph *graph = from->graph;
    uint64_t hash = mix(REVISION, (uint64_t)graph->dtype);
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (from->observers[i])
            continue;
        hash = mix(hash, att_random_hash(node->op->name));
        for (int j = 0; j < node->in_count; j++)
            hash = mix(hash, number_of(n, node->in[j]));
        for (int j = 0; j < node->out_count; j++)
            hash = mix_shape(hash, graph->values.items[node->out[j]].desc.shape);
    }
    for (int i = 0; i < graph->parameters.count; i++)
        hash = mix(hash, att_random_hash(graph->parameters.items[i].name));
    return hash_constants(graph, hash);
}

/* "4", or "1..8:<hash>" if the segments have different groups. */
static void append_groups(const att_plan *plan, att_text *text)
{
    int low = plan->segments[0].group, high = low;
    uint64_t hash = 0;
    for (int i = 0; i < plan->segment_count; i++) {
        int group = plan->segments[i].group;
        low = group < low ? group : low;
        high = group > high ? group : high;
        hash = mix(hash, (uint64_t)group);
    }
    if (low == high)
        att_text_append(text, "%d", low);
    else
        att_text_append(text, "%d..%d:%08x", low, high, (unsigned)(hash >> 32));
}

static const char *const purposes[] = {[ATT_INFER] = "infer", [ATT_TRAIN] = "train", [ATT_GRADIENT] = "gradient"};

att_status att_hash_graph(att_plan *plan, const att_rewritten *from)
{
    size_t values = (size_t)from->graph->values.count;
    numbering numbers = {.number = att_allocate_array(plan->context, values + 1, sizeof *numbers.number)};
    if (!numbers.number)
        return att_fail_memory(plan->context, values * sizeof *numbers.number, "a plan");
    plan->graph_hash = hash_graph(from, &numbers);
    att_free(plan->context, numbers.number);
    return ATT_OK;
}

att_status att_write_fingerprint(att_plan *plan)
{
    att_text text = {.context = plan->context};
    const char *version = plan->units.backend->version ? plan->units.backend->version() : "";
    att_text_append(&text,
                    "precision=%s graph=%016llx purpose=%s backend=%s group=", att_precision_name(plan->precision),
                    (unsigned long long)plan->graph_hash, purposes[plan->purpose], plan->units.backend->name);
    append_groups(plan, &text);
    att_text_append(&text, " lanes=%d parts=%d tier=%s%s%s attscope=%s", plan->lanes, plan->parts,
                    att_context_tier(plan->context), *version ? " " : "", version, att_version());
    if (!text.failed)
        plan->fingerprint = att_arena_string(&plan->arena, text.data);
    att_text_free(&text);
    return plan->fingerprint ? ATT_OK : att_fail_memory(plan->context, 256, "a plan");
}
