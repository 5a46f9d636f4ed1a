#include "networks/models/parallel_block.h"

#include <attscope/ops.h>

/* --- attention and MLP ------------------------------------------------------------------------------------------- */

/* The hidden channels of the MLP: outputs 0 .. hidden - 1 of in_proj, with a bias of their own if that has none. */
static att_value build_hidden(const att_token_block *block, const att_scope *in, const att_projection *layer,
                              att_value x)
{
    static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
    x = att_project(in, layer, x, 0, block->hidden);
    if (!block->form->qkv_bias)
        x = att_add(in->graph, x,
                    att_scope_parameter(&block->scope, "mlp_bias", att_shape_of(block->hidden), zeros, false));
    att_scope act = att_scope_in(&block->scope, "mlp_act");
    att_scope_enter(&act);
    return block->form->activate(in->graph, x);
}

/* The sum of both branches is one linear layer of both inputs side by side; most blocks have a layer for each. */
static att_value build_out(const att_token_block *block, att_value heads, att_value hidden)
{
    const att_token_form *form = block->form;
    att_graph *graph = block->scope.graph;
    att_scope out = att_scope_in(&block->scope, "out_proj"), attn = att_scope_in(&block->scope, "attn_out_proj");
    att_scope mlp = att_scope_in(&block->scope, "mlp_out_proj");
    if (form->differential) {
        att_scope_enter(&out);
        return att_nn_linear(&out, att_concat(graph, heads, hidden), form->width, form->proj_bias);
    }
    att_value a = att_nn_linear(&attn, heads, form->width, form->proj_bias);
    att_value b = att_nn_linear(&mlp, hidden, form->width, form->proj_bias);
    return att_combine(graph, 1, a, 1, b);
}

att_value att_parallel_scaling(const att_token_block *block, att_value x)
{
    const att_token_form *form = block->form;
    att_scope norm = att_scope_in(&block->scope, "in_norm"), in = att_scope_in(&block->scope, "in_proj");
    att_scope scale = att_scope_in(&block->scope, "ls"), drop = att_scope_in(&block->scope, "drop_path");
    att_scope attn = att_scope_in(&block->scope, "attn");
    att_value y = att_token_norm(&norm, x, &form->norm, 1);
    att_projection layer =
        att_project_declare(&in, block->hidden + 3 * (int64_t)form->width, form->width, form->qkv_bias);
    att_value heads = att_token_heads(block, &block->scope, &attn, y, ATT_NONE, &layer, block->hidden, form->heads);
    att_value branch = build_out(block, heads, build_hidden(block, &in, &layer, y));
    return att_token_add(block, 1, x, att_token_end_branch(block, &scale, "gamma", &drop, branch));
}

/* --- pairs of branches ------------------------------------------------------------------------------------------- */

typedef att_value build_branch(const att_token_block *block, const att_scope *norm, const att_scope *inner,
                               att_value x);

/* The sum of the branches "<list>.0" and "<list>.1". */
static att_value build_pair(const att_token_block *block, const char *list, const char *name, build_branch *build,
                            att_value x)
{
    att_value branches[2];
    for (int i = 0; i < 2; i++) {
        att_scope scope = att_scope_in(&block->scope, "%s.%d", list, i);
        att_scope norm = att_scope_in(&scope, "norm"), inner = att_scope_in(&scope, "%s", name);
        att_scope scale = att_scope_in(&scope, "ls"), drop = att_scope_in(&scope, "drop_path");
        branches[i] = att_token_end_branch(block, &scale, "gamma", &drop, build(block, &norm, &inner, x));
    }
    return att_combine(block->scope.graph, 1, branches[0], 1, branches[1]);
}

att_value att_parallel_things(const att_token_block *block, att_value x)
{
    x = att_token_add(block, 1, x, build_pair(block, "attns", "attn", att_token_attention_branch, x));
    return att_token_add(block, 2, x, build_pair(block, "ffns", "mlp", att_token_mlp_branch, x));
}
