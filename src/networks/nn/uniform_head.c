/* A head of attention whose map is fixed to the uniform one: it gives every token proj(v(mean over tokens of x)), x the
 * attention's input. Hyeon-Woo, Yu-Ji, Heo, Han, Oh: "Scratching Visual Transformer's Back with Uniform Attention",
 * ICCV 2023, Table 1. The paper names the three forms and orders them by parameters, replace < compensate < append;
 * their widths here are our reading. */
#include <attscope/ops.h>

#include "networks/nn/width.h"

enum { HOW };
enum { APPEND, REPLACE, COMPENSATE };

static int replaced_heads(const double *values)
{
    return values[HOW] == APPEND ? 0 : 1;
}

/* A network with C channels and H heads of width d = C / H has 4 C d weights per head: queries, keys, values, output.
 * `compensate` gives those of the missing head, 4 C d, to v and proj. */
static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    att_graph *graph = scope->graph;
    att_scope v = att_scope_in(scope, "v"), proj = att_scope_in(scope, "proj");
    int64_t channels = att_width_of(scope, site->input);
    int64_t width = (values[HOW] == COMPENSATE ? 2 : 1) * channels / (site->heads > 0 ? site->heads : 1);
    att_scope_enter(scope);
    att_value mean = att_global_mean(graph, site->input);
    att_value context = att_nn_linear(&proj, att_nn_linear(&v, mean, width, site->qkv_bias), channels, false);
    att_scope_enter(scope);
    int64_t tokens = att_value_shape(graph, site->branch).dims[0];
    return att_add(graph, site->branch, att_repeat_tokens(graph, context, (int)tokens, 1));
}

static const char *const forms[] = {"append", "replace", "compensate", NULL};

extern const att_module att_module_uniform_head;

const att_module att_module_uniform_head = {
    .name = "uniform_head",
    .meaning = "a head that attends to all tokens equally (Hyeon-Woo et al., ICCV 2023; widths: our interpretation)",
    .places = ATT_ON_HEADS,
    .options = {[HOW] = {.name = "how",
                         .meaning =
                             "append: beside all heads; replace: instead of one; compensate: instead of one, and "
                             "twice as wide, so that the weights are as many as without the module",
                         .high = COMPENSATE,
                         .choices = forms}},
    .option_count = 1,
    .scope = "uniform_head",
    .parameter = "v.weight",
    .apply = apply,
    .replaced_heads = replaced_heads,
};
