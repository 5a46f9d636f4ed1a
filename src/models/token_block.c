#include "models/token_block.h"

#include <attscope/ops.h>

#include "core/error.h"

/* --- modules ----------------------------------------------------------------------------------------------------- */

/* In the order of the enum in token_block.h. */
const att_module_hook att_token_hook_list[ATT_TOKEN_HOOKS] = {
    {"after_mlp", "at the end of a block's MLP branch, before LayerScale and the addition", ATT_ON_TOKENS},
    {"after_attn", "at the end of a block's attention branch, before LayerScale and the addition", ATT_ON_TOKENS},
    {"attn", "in place of a block's attention, after its norm", ATT_ON_TOKENS},
    {"before_mlp", "at the front of a block's MLP, after its norm", ATT_ON_TOKENS},
    {"mid_mlp", "on the hidden channels of a block's MLP, after the GELU", ATT_ON_TOKENS},
    {"before_attn", "before a block's attention, after its norm", ATT_ON_TOKENS},
    {"stream_after_attn", "on the stream, after the addition of a block's attention branch", ATT_ON_TOKENS},
    {"stream_after_mlp", "on the stream, after the addition of a block's MLP branch", ATT_ON_TOKENS},
    {"heads", "beside the heads of a block's attention", ATT_ON_HEADS},
};
const att_hooks att_token_hooks = ATT_TOKEN_HOOK_SET;

att_stages att_token_stages(int depth)
{
    return (att_stages){.count = 1, .blocks = {depth}};
}

static att_status check_heads(att_context *context, const char *text, int block, int heads, const att_modules *modules)
{
    int replaced = att_modules_replaced_heads(modules, ATT_TOKEN_HEADS, block);
    if (!att_modules_any(modules, ATT_TOKEN_HEADS, block))
        return ATT_OK;
    if (att_modules_any(modules, ATT_TOKEN_ATTN, block))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "modules \"%s\": block %d has a module in place of its attention (@attn), and so no heads "
                        "beside which another could be (@heads)",
                        text, block);
    if (replaced >= heads)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "modules \"%s\": in block %d they replace %d of num_heads %d; at least one head must remain",
                        text, block, replaced, heads);
    return ATT_OK;
}

att_status att_token_modules_in(att_context *context, const char *text, const att_stages *stages, const int *heads,
                                att_modules *modules)
{
    ATT_TRY(att_modules_parse(context, &att_token_hooks, stages, text, modules));
    for (int s = 0, block = 0; s < stages->count; s++)
        for (int b = 0; b < stages->blocks[s]; b++, block++)
            ATT_TRY(check_heads(context, text, block, heads[s], modules));
    return ATT_OK;
}

att_status att_token_modules(att_context *context, const char *text, int depth, int heads, att_modules *modules)
{
    const att_stages stages = att_token_stages(depth);
    return att_token_modules_in(context, text, &stages, &heads, modules);
}

static att_module_site site_of(const att_token_block *block, att_value branch, att_value identity)
{
    const att_token_form *form = block->form;
    return (att_module_site){.branch = branch,
                             .identity = identity,
                             .input = ATT_NONE,
                             .prefix = form->prefix,
                             .grid_h = form->grid[0],
                             .grid_w = form->grid[1]};
}

/* Applies the modules of a hook. */
static att_value change(const att_token_block *block, int hook, const att_scope *scope, att_value branch,
                        att_value identity)
{
    const att_module_site site = site_of(block, branch, identity);
    return att_modules_apply(block->modules, hook, block->index, scope, &site);
}

/* --- halves of a block ------------------------------------------------------------------------------------------- */

/* identity + drop_path(layer_scale(branch)), then the modules on the stream; half is 1 or 2. */
static att_value add_branch(const att_token_block *block, int half, int hook, att_value identity, att_value branch)
{
    att_graph *graph = block->scope.graph;
    if (block->form->init_values > 0) {
        att_scope scale = att_scope_in(&block->scope, "ls%d", half);
        branch = att_nn_layer_scale(&scale, branch, block->form->init_values);
    }
    att_scope drop = att_scope_in(&block->scope, "drop_path%d", half);
    att_scope_enter(&drop);
    branch = att_drop_path(graph, branch, block->drop_path);
    att_scope sum = att_scope_in(&block->scope, "add%d", half);
    att_scope_enter(&sum);
    return change(block, hook, &sum, att_add(graph, identity, branch), identity);
}

static att_value declare_relative(const att_token_form *form, const att_scope *scope, int heads)
{
    static const att_init init = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
    if (!form->relative_bias)
        return ATT_NONE;
    const int *sides = form->window[0] > 0 ? form->window : form->grid;
    int64_t shifts = (2 * (int64_t)sides[0] - 1) * (2 * (int64_t)sides[1] - 1);
    return att_scope_parameter(scope, "relative_position_bias_table", att_shape_of(shifts, heads), init, false);
}

static int padded_side(const att_token_form *form, int axis)
{
    int window = form->window[axis], side = form->grid[axis];
    return window > 0 ? (side + window - 1) / window * window : side;
}

/* qkv: queries, keys and values of all tokens of the grid, padded to whole windows, side by side */
static att_value attend(const att_token_form *form, const att_scope *scope, int heads, att_value relative,
                        att_value qkv)
{
    const att_attention_terms terms = {.relative = relative, .rows = ATT_NONE, .columns = ATT_NONE};
    const att_attention_options options = {.heads = heads,
                                           .prefix = form->prefix,
                                           .grid_h = padded_side(form, 0),
                                           .grid_w = padded_side(form, 1),
                                           .step_h = form->patch[0],
                                           .step_w = form->patch[1],
                                           .window_h = form->window[0],
                                           .window_w = form->window[1],
                                           .shift_h = form->shift[0],
                                           .shift_w = form->shift[1],
                                           .terms = &terms};
    att_scope_enter(scope);
    return att_attention(scope->graph, qkv, ATT_NONE, ATT_NONE, &options);
}

/* Padding gets queries, keys and values from the biases, as in timm. */
static att_value attend_in_windows(const att_token_form *form, const att_scope *scope, int heads, att_value x)
{
    const att_window_pad_options pad = {.grid_h = form->grid[0],
                                        .grid_w = form->grid[1],
                                        .window_h = form->window[0],
                                        .window_w = form->window[1],
                                        .shift_h = form->shift[0],
                                        .shift_w = form->shift[1]};
    att_scope in = att_scope_in(scope, "qkv");
    bool pads = padded_side(form, 0) != form->grid[0] || padded_side(form, 1) != form->grid[1];
    att_value relative = declare_relative(form, scope, heads);
    att_scope_enter(scope);
    if (pads)
        x = att_window_pad(scope->graph, x, &pad);
    int64_t inner = (int64_t)heads * (form->width / form->heads);
    x = attend(form, scope, heads, relative, att_nn_linear(&in, x, 3 * inner, form->qkv_bias));
    return pads ? att_window_crop(scope->graph, x, &pad) : x;
}

/* Attention with the modules beside its heads. */
static att_value build_heads(const att_token_block *block, const att_scope *scope, att_value x)
{
    const att_token_form *form = block->form;
    att_module_site site = site_of(block, ATT_NONE, ATT_NONE);
    int heads = form->heads - att_modules_replaced_heads(block->modules, ATT_TOKEN_HEADS, block->index);
    att_scope out = att_scope_in(scope, "proj");
    site.branch = att_nn_linear(&out, attend_in_windows(form, scope, heads, x), form->width, true);
    site.input = x;
    site.heads = form->heads;
    site.qkv_bias = form->qkv_bias;
    return att_modules_apply(block->modules, ATT_TOKEN_HEADS, block->index, scope, &site);
}

att_value att_token_attend(const att_token_block *block, att_value x)
{
    att_scope norm = att_scope_in(&block->scope, "norm1"), attn = att_scope_in(&block->scope, "attn");
    att_value branch =
        change(block, ATT_TOKEN_BEFORE_ATTN, &norm, att_nn_layer_norm(&norm, x, block->form->norm_eps), x);
    if (att_modules_any(block->modules, ATT_TOKEN_ATTN, block->index))
        branch = change(block, ATT_TOKEN_ATTN, &attn, branch, x);
    else
        branch = build_heads(block, &attn, branch);
    branch = change(block, ATT_TOKEN_AFTER_ATTN, &attn, branch, x);
    return add_branch(block, 1, ATT_TOKEN_STREAM_AFTER_ATTN, x, branch);
}

att_value att_token_transform(const att_token_block *block, att_value x)
{
    att_scope norm = att_scope_in(&block->scope, "norm2"), mlp = att_scope_in(&block->scope, "mlp");
    att_scope fc1 = att_scope_in(&mlp, "fc1"), act = att_scope_in(&mlp, "act"), fc2 = att_scope_in(&mlp, "fc2");
    att_value branch =
        change(block, ATT_TOKEN_BEFORE_MLP, &norm, att_nn_layer_norm(&norm, x, block->form->norm_eps), x);
    branch = att_gelu(block->scope.graph, att_nn_linear(&fc1, branch, block->hidden, true));
    branch = change(block, ATT_TOKEN_MID_MLP, &act, branch, x);
    branch = att_nn_linear(&fc2, branch, block->form->width, true);
    branch = change(block, ATT_TOKEN_AFTER_MLP, &mlp, branch, x);
    return add_branch(block, 2, ATT_TOKEN_STREAM_AFTER_MLP, x, branch);
}
