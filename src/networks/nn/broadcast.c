/* Context broadcasting: adds an aggregate of all tokens, class token included, to every token, so that attention need
 * not learn to be uniform. Hyeon-Woo, Yu-Ji, Heo, Han, Oh: "Scratching Visual Transformer's Back with Uniform
 * Attention", ICCV 2023. */
#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "networks/nn/width.h"

/* The aggregates of the paper's Table 10. */
enum { MEAN, MAXIMUM, CLASS };
static const char *const pools[] = {"mean", "max", "class", NULL};
#define POOL_OPTION                                                                                                  \
    {                                                                                                                \
        .name = "pool", .meaning = "what is added: mean or maximum over all tokens, by channel, or the class token", \
        .high = CLASS, .choices = pools                                                                              \
    }

/* The maximum over tokens or the class token, [C]. */
static att_value aggregate(const att_scope *scope, int pool, const att_module_site *site)
{
    if (pool == MAXIMUM)
        return att_global_max(scope->graph, site->branch);
    if (site->prefix > 0 || site->branch == ATT_NONE)
        return att_global_mean(scope->graph, att_slice_tokens(scope->graph, site->branch, 0, 1));
    return att_graph_fail(scope->graph,
                          att_fail(att_graph_context(scope->graph), ATT_ERR_ARGUMENT,
                                   "%s: pool=class needs a class token, and this network has none; use pool=mean or "
                                   "pool=max",
                                   scope->path));
}

/* keep x + share context, with context [C] at every token of x. */
static att_value add_to_all(const att_scope *scope, att_value x, double keep, att_value context, double share)
{
    att_shape shape = att_value_shape(scope->graph, x);
    att_value kept = keep == 1 ? x : att_context_broadcast(scope->graph, x, keep, 0, ATT_NONE);
    return att_add(scope->graph, kept, att_repeat_tokens(scope->graph, context, (int)shape.dims[0], share));
}

/* x + scale (.) context, with context the mean over tokens or another aggregate, at every token of x. */
static att_value add_scaled(const att_scope *scope, int pool, att_value scale, const att_module_site *site)
{
    if (pool == MEAN)
        return att_context_broadcast(scope->graph, site->branch, 1, 0, scale);
    return add_to_all(scope, site->branch, 1, att_scale(scope->graph, aggregate(scope, pool, site), scale), 1);
}

static att_value add_scale(const att_scope *scope, const char *name, double start, const att_module_site *site)
{
    att_init init = {.rule = ATT_INIT_CONSTANT, .value = start};
    return att_scope_parameter(scope, name, att_shape_of(att_width_of(scope, site->branch)), init, false);
}

enum { CB_POOL, CB_START };
enum { START_HALF, START_IDENTITY };
static const char *const cb_starts[] = {"half", "identity", NULL};

/* (1 - share) x + share context, with a learned share that is 0 at first. */
static att_value mix_by_share(const att_scope *scope, int pool, const att_module_site *site)
{
    att_value share = add_scale(scope, "share", 0, site);
    att_value sum = add_scaled(scope, pool, share, site);
    return att_combine(scope->graph, 1, sum, -1, att_scale(scope->graph, site->branch, share));
}

static att_value apply_cb(const att_scope *scope, const double *values, const att_module_site *site)
{
    int pool = (int)values[CB_POOL];
    att_scope_enter(scope);
    if (values[CB_START] == START_IDENTITY)
        return mix_by_share(scope, pool, site);
    if (pool == MEAN)
        return att_context_broadcast(scope->graph, site->branch, 0.5, 0.5, ATT_NONE);
    return add_to_all(scope, site->branch, 0.5, aggregate(scope, pool, site), 0.5);
}

enum { INIT, POOL };

static att_value apply_cb_s(const att_scope *scope, const double *values, const att_module_site *site)
{
    att_scope_enter(scope);
    return add_scaled(scope, (int)values[POOL], add_scale(scope, "weight", values[INIT], site), site);
}

static bool has_share(const double *values)
{
    return values[CB_START] == START_IDENTITY;
}

extern const att_module att_module_cb, att_module_cb_s;

const att_module att_module_cb = {
    .name = "cb",
    .meaning = "x <- x/2 + c/2, c the mean over tokens of x, no parameters (Hyeon-Woo et al., ICCV 2023)",
    .places = ATT_ON_TOKENS,
    .options = {[CB_POOL] = POOL_OPTION,
                [CB_START] = {.name = "start",
                              .meaning = "half: as above; identity: x <- (1 - share) (.) x + share (.) c, with a "
                                         "learned share per channel that starts at 0, as without the module",
                              .high = START_IDENTITY,
                              .choices = cb_starts}},
    .option_count = 2,
    .scope = "cb",
    .parameter = "share",
    .has_parameters = has_share,
    .apply = apply_cb,
};

const att_module att_module_cb_s = {
    .name = "cb_s",
    .meaning =
        "x <- x + weight (.) c, c the mean over tokens of x, one weight per channel (Hyeon-Woo et al., ICCV 2023)",
    .places = ATT_ON_TOKENS,
    .options = {[INIT] = {.name = "init",
                          /* The paper gives no initial value. With 0 the network starts as without the module, so
                           * training can continue a plain checkpoint; the weight's gradient is not 0 there. */
                          .meaning = "initial value of the weight (not given in the paper; 0: as without the module)",
                          .start = 0,
                          .low = -10,
                          .high = 10},
                [POOL] = POOL_OPTION},
    .option_count = 2,
    .scope = "cb",
    .parameter = "weight",
    .apply = apply_cb_s,
};
