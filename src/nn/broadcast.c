/* Context broadcasting: adds the mean of all tokens, class token included, to every token, so that attention need not
 * learn to be uniform. Hyeon-Woo, Yu-Ji, Heo, Han, Oh: "Scratching Visual Transformer's Back with Uniform Attention",
 * ICCV 2023. */
#include <attscope/nn.h>
#include <attscope/ops.h>

static att_value apply_cb(const att_scope *scope, const double *values, att_value branch, att_value identity)
{
    (void)values, (void)identity;
    att_scope_enter(scope);
    return att_context_broadcast(scope->graph, branch, 0.5, 0.5, ATT_NONE);
}

static att_value apply_cb_s(const att_scope *scope, const double *values, att_value branch, att_value identity)
{
    (void)identity;
    att_scope_enter(scope);
    att_shape shape = att_value_shape(scope->graph, branch);
    int64_t width = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
    att_init init = {.rule = ATT_INIT_CONSTANT, .value = values[0]};
    att_value scale = att_scope_parameter(scope, "weight", att_shape_of(width), init, false);
    return att_context_broadcast(scope->graph, branch, 1, 0, scale);
}

extern const att_module att_module_cb, att_module_cb_s;

const att_module att_module_cb = {
    .name = "cb",
    .meaning = "x <- x/2 + mean over tokens of x / 2, no parameters (Hyeon-Woo et al., ICCV 2023)",
    .scope = "cb",
    .apply = apply_cb,
};

const att_module att_module_cb_s = {
    .name = "cb_s",
    .meaning =
        "x <- x + weight (.) mean over tokens of x, one learned weight per channel (Hyeon-Woo et al., ICCV 2023)",
    .options = {{.name = "init",
                 /* The paper gives no initial value. With 0 the network starts as without the module, so training can
                  * continue a plain checkpoint; the weight's gradient is not 0 there. */
                 .meaning = "initial value of the weight (not given in the paper; 0: as without the module)",
                 .start = 0,
                 .low = -10,
                 .high = 10}},
    .option_count = 1,
    .scope = "cb",
    .parameter = "weight",
    .apply = apply_cb_s,
};
