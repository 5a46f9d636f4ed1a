#include "networks/models/token_block.h"

#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "networks/nn/gates.h"

/* --- modules ----------------------------------------------------------------------------------------------------- */

/* In the order of the enum in token_block.h. */
const att_module_hook att_token_hook_list[ATT_TOKEN_HOOKS] = {
    {"after_mlp", "at the end of a block's MLP branch, before LayerScale and the addition", ATT_ON_TOKENS},
    {"after_attn", "at the end of a block's attention branch, before LayerScale and the addition", ATT_ON_TOKENS},
    {"attn", "in place of a block's attention, after its norm", ATT_ON_TOKENS},
    {"before_mlp", "at the front of a block's MLP, after its norm", ATT_ON_TOKENS},
    {"mid_mlp", "on the hidden channels of a block's MLP, after its activation", ATT_ON_TOKENS},
    {"before_attn", "before a block's attention, after its norm", ATT_ON_TOKENS},
    {"stream_after_attn", "on the stream, after the addition of a block's attention branch", ATT_ON_TOKENS},
    {"stream_after_mlp", "on the stream, after the addition of a block's MLP branch", ATT_ON_TOKENS},
    {"heads", "beside the heads of a block's attention", ATT_ON_HEADS},
};
const att_hooks att_token_hooks = ATT_TOKEN_HOOK_SET;

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
    const att_stages stages = {.count = 1, .blocks = {depth}};
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

/* --- parts ------------------------------------------------------------------------------------------------------- */

static int64_t columns_of(const att_scope *scope, att_value x)
{
    att_shape shape = att_value_shape(scope->graph, x);
    return shape.rank > 0 ? shape.dims[shape.rank - 1] : 1;
}

att_value att_token_norm(const att_scope *scope, att_value x, const att_norm_form *form, double start)
{
    static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
    att_init first = {.rule = ATT_INIT_CONSTANT, .value = start};
    att_shape shape = att_shape_of(columns_of(scope, x));
    att_scope_enter(scope);
    att_value gamma = att_scope_parameter(scope, "weight", shape, first, false);
    if (form->rms)
        return att_rms_norm(scope->graph, x, gamma, form->eps);
    att_value beta = att_scope_parameter(scope, "bias", shape, zeros, false);
    return att_layer_norm(scope->graph, x, gamma, beta, form->eps);
}

static const struct activation {
    const char *name;
    att_activate *activate;
} activations[] = {{"gelu", att_gelu},
                   {"gelu_tanh", att_gelu_tanh},
                   {"quick_gelu", att_quick_gelu},
                   {"silu", att_silu},
                   {"relu", att_relu}};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

const char *att_activation_name(int index)
{
    return index >= 0 && index < ACTIVATIONS ? activations[index].name : NULL;
}

att_activate *att_activation_named(const char *name)
{
    for (int i = 0; i < ACTIVATIONS; i++)
        if (strcmp(activations[i].name, name) == 0)
            return activations[i].activate;
    return NULL;
}

/* A linear layer. uniform: initialised as PyTorch's; else the weights start divided by `divisor`. */
static att_projection declare(const att_scope *scope, int64_t outputs, int64_t inputs, bool bias, bool uniform,
                              double divisor)
{
    static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
    att_init init = uniform ? att_init_fan_in(inputs) : att_init_linear();
    att_projection layer = {.bias = ATT_NONE};
    att_scope_enter(scope);
    init.value /= uniform ? 1 : divisor;
    layer.weight = att_scope_parameter(scope, "weight", att_shape_of(outputs, inputs), init, true);
    if (bias)
        layer.bias = att_scope_parameter(scope, "bias", att_shape_of(outputs), uniform ? init : zeros, false);
    return layer;
}

const char *att_mlp_name(int kind)
{
    static const char *const names[] = {"mlp", "swiglu", "swiglu_packed"};
    return kind >= 0 && kind < (int)(sizeof names / sizeof *names) ? names[kind] : NULL;
}

att_mlp_kind att_mlp_named(const char *name)
{
    for (int kind = 0; att_mlp_name(kind); kind++)
        if (strcmp(att_mlp_name(kind), name) == 0)
            return (att_mlp_kind)kind;
    return ATT_MLP_PLAIN;
}

att_projection att_project_declare(const att_scope *scope, int64_t outputs, int64_t inputs, bool bias)
{
    return declare(scope, outputs, inputs, bias, false, 1);
}

/* A linear layer of a block. ends: it ends a branch. */
static att_value linear(const att_token_block *block, const att_scope *scope, att_value x, int64_t outputs, bool ends)
{
    const att_token_form *form = block->form;
    double divisor = ends && form->start == ATT_START_RESCALED ? sqrt(2 * (block->index + 1.0)) : 1;
    att_projection layer =
        declare(scope, outputs, columns_of(scope, x), form->proj_bias, form->start == ATT_START_UNIFORM, divisor);
    return att_linear(scope->graph, x, layer.weight, layer.bias);
}

att_value att_token_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    return att_nn_linear(scope, features, classes, true);
}

att_value att_token_small_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    att_projection layer = declare(scope, classes, columns_of(scope, features), true, false, 1000);
    return att_linear(scope->graph, features, layer.weight, layer.bias);
}

att_value att_project(const att_scope *scope, const att_projection *layer, att_value x, int64_t first, int64_t count)
{
    att_graph *graph = scope->graph;
    int64_t outputs = att_value_shape(graph, layer->weight).dims[0];
    att_scope_enter(scope);
    if (count == outputs)
        return att_linear(graph, x, layer->weight, layer->bias);
    att_value weight = att_slice_tokens(graph, layer->weight, (int)first, (int)count), bias = layer->bias;
    if (bias != ATT_NONE) {
        bias = att_reshape(graph, bias, att_shape_of(outputs, 1));
        bias = att_reshape(graph, att_slice_tokens(graph, bias, (int)first, (int)count), att_shape_of(count));
    }
    return att_linear(graph, x, weight, bias);
}

/* --- heads ------------------------------------------------------------------------------------------------------- */

/* Applies a norm to each head of x [N, heads width]. */
static att_value norm_heads(const att_token_block *block, const att_scope *scope, att_value x, int64_t width)
{
    att_shape shape = att_value_shape(scope->graph, x);
    att_scope_enter(scope);
    x = att_reshape(scope->graph, x, att_shape_of(shape.dims[0], shape.dims[1] / width, width));
    x = att_token_norm(scope, x, &block->form->norm, 1);
    return att_reshape(scope->graph, x, shape);
}

static double lambda_start(int index)
{
    return 0.8 - 0.6 * exp(-0.3 * index);
}

/* exp(q . k), [1, 1]; the vectors have `width` elements. */
static att_value exp_of_product(const att_scope *scope, const char *q_name, const char *k_name, int64_t width)
{
    static const att_init init = {.rule = ATT_INIT_NORMAL, .value = 0.1};
    const att_shape row = att_shape_of(1, width);
    att_graph *graph = scope->graph;
    att_value q = att_scope_parameter(scope, q_name, att_shape_of(width), init, false);
    att_value k = att_scope_parameter(scope, k_name, att_shape_of(width), init, false);
    return att_exp(graph, att_matmul(graph, att_reshape(graph, q, row), att_reshape(graph, k, row), true, 1));
}

/* a - lambda b with lambda = exp(q1 . k1) - exp(q2 . k2) + start. */
static att_value subtract(const att_token_block *block, const att_scope *scope, att_value a, att_value b, int64_t width)
{
    att_graph *graph = scope->graph;
    const att_shape shape = att_value_shape(graph, b);
    att_value first = exp_of_product(scope, "lambda_q1", "lambda_k1", width);
    att_value second = exp_of_product(scope, "lambda_q2", "lambda_k2", width);
    att_value learned = att_reshape(graph, att_combine(graph, 1, first, -1, second), att_shape_of(1));
    att_value column = att_reshape(graph, b, att_shape_of(att_shape_count(shape), 1));
    att_value scaled = att_reshape(graph, att_scale(graph, column, learned), shape);
    return att_combine(graph, 1, att_combine(graph, 1, a, -lambda_start(block->index), b), -1, scaled);
}

/* x [N, 2 H d]: the results of 2 H maps, of which neighbours belong together. Returns [N, H d]. */
static att_value difference(const att_token_block *block, const att_scope *scope, att_value x)
{
    static const att_norm_form sub_norm = {.rms = true, .eps = 1e-5};
    static const int pairs_first[] = {2, 0, 1, 3};
    att_graph *graph = scope->graph;
    const int64_t tokens = att_value_shape(graph, x).dims[0], heads = block->form->heads;
    const int64_t width = columns_of(scope, x) / (2 * heads);
    x = att_transpose(graph, att_reshape(graph, x, att_shape_of(tokens, heads, 2, width)), pairs_first, 4);
    x = att_reshape(graph, x, att_shape_of(2 * tokens, heads * width));
    att_value a = att_slice_tokens(graph, x, 0, (int)tokens);
    att_value b = att_slice_tokens(graph, x, (int)tokens, (int)tokens);
    x = subtract(block, scope, a, b, width / 2);
    att_scope norm = att_scope_in(scope, "sub_norm");
    x = att_token_norm(&norm, att_reshape(graph, x, att_shape_of(tokens, heads, width)), &sub_norm, 1);
    x = att_combine(graph, 1 - lambda_start(block->index), x, 0, ATT_NONE);
    return att_reshape(graph, x, att_shape_of(tokens, heads * width));
}

/* The layer of queries, keys and values of an attention. */
static att_projection declare_qkv(const att_token_block *block, const att_scope *attn, int64_t outputs, int64_t inputs)
{
    static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
    const att_token_form *form = block->form;
    att_scope in = att_scope_in(attn, "qkv");
    bool separate = form->qkv_bias && form->qv_bias;
    att_projection qkv =
        declare(&in, outputs, inputs, form->qkv_bias && !separate, form->start == ATT_START_UNIFORM, 1);
    if (separate) {
        att_value q = att_scope_parameter(attn, "q_bias", att_shape_of(outputs / 3), zeros, false);
        att_value v = att_scope_parameter(attn, "v_bias", att_shape_of(outputs / 3), zeros, false);
        att_value k = att_combine(attn->graph, 0, q, 0, ATT_NONE);
        qkv.bias = att_concat(attn->graph, att_concat(attn->graph, q, k), v);
    }
    return qkv;
}

static int padded_side(const att_token_form *form, int axis)
{
    int window = form->window[axis], side = form->grid[axis];
    return window > 0 ? (side + window - 1) / window * window : side;
}

/* Whether the grid is padded to whole windows. */
static bool pads(const att_token_form *form)
{
    return padded_side(form, 0) != form->grid[0] || padded_side(form, 1) != form->grid[1];
}

/* Queries, keys and values, side by side in q or apart. */
typedef struct heads_in {
    att_value q, k, v;
} heads_in;

static int maps_of(const att_token_form *form, int heads)
{
    return form->differential ? 2 * heads : heads;
}

static int64_t inner_of(const att_token_form *form, int heads)
{
    return (int64_t)heads * (form->width / form->heads);
}

/* From outputs `first` on of one layer. */
static heads_in project_packed(const att_token_form *form, const att_scope *in, const att_projection *qkv, att_value x,
                               int64_t first, int heads)
{
    int64_t inner = inner_of(form, heads);
    if (form->qk_norm)
        return (heads_in){att_project(in, qkv, x, first, inner), att_project(in, qkv, x, first + inner, inner),
                          att_project(in, qkv, x, first + 2 * inner, inner)};
    if (form->differential) /* values are wider than queries and keys */
        return (heads_in){att_project(in, qkv, x, first, inner), att_project(in, qkv, x, first + inner, 2 * inner),
                          ATT_NONE};
    return (heads_in){att_project(in, qkv, x, first, 3 * inner), ATT_NONE, ATT_NONE};
}

/* Divides the queries and keys in qkv by their norms, for attention with scale 1. */
static att_value divide_by_norms(const att_token_form *form, const att_scope *scope, att_value qkv, int heads)
{
    const att_init ten = {.rule = ATT_INIT_CONSTANT, .value = log(10)};
    const att_cosine_options options = {
        .heads = heads, .key_heads = heads, .width = form->width / form->heads, .eps = 1e-12};
    att_shape shape = form->cosine == 1 ? att_shape_of(heads) : att_shape_of(heads, 1, 1);
    att_scope_enter(scope);
    return att_cosine_heads(scope->graph, qkv, att_scope_parameter(scope, "logit_scale", shape, ten, false), &options);
}

/* Norms of queries and keys, then their rotation. */
static heads_in prepare_heads(const att_token_block *block, const att_scope *scope, heads_in in, int heads)
{
    const att_token_form *form = block->form;
    const int maps = maps_of(form, heads);
    const int64_t width = inner_of(form, heads) / maps;
    att_scope q_norm = att_scope_in(scope, "q_norm"), k_norm = att_scope_in(scope, "k_norm");
    att_scope rope = att_scope_in(scope, "rope");
    if (form->qk_norm) {
        in.q = norm_heads(block, &q_norm, in.q, width);
        in.k = norm_heads(block, &k_norm, in.k, width);
    }
    if (form->cosine)
        in.q = divide_by_norms(form, scope, in.q, heads);
    if (!block->rotary)
        return in;
    const bool packed = in.k == ATT_NONE;
    const att_rotary_options turned = {
        .heads = packed ? 2 * maps : maps, .prefix = form->prefix, .halves = block->rotary->halves};
    att_scope_enter(&rope);
    in.q = att_rotary(scope->graph, in.q, block->rotary->table, &turned);
    if (!packed)
        in.k = att_rotary(scope->graph, in.k, block->rotary->table, &turned);
    return in;
}

static att_value attend(const att_token_block *block, const att_scope *scope, const att_scope *node, heads_in in,
                        att_value relative, int heads)
{
    const att_token_form *form = block->form;
    att_attention_terms terms = att_attention_no_terms();
    terms.relative = relative;
    if (form->keys)
        terms.keys = *form->keys;
    const att_attention_options attention = {.heads = maps_of(form, heads),
                                             .value_heads = heads,
                                             .scale = form->cosine ? 1 : 0,
                                             .prefix = form->prefix,
                                             .grid_h = padded_side(form, 0),
                                             .grid_w = padded_side(form, 1),
                                             .step_h = form->patch[0],
                                             .step_w = form->patch[1],
                                             .window_h = form->window[0],
                                             .window_w = form->window[1],
                                             .shift_h = form->shift[0],
                                             .shift_w = form->shift[1],
                                             .terms = &terms,
                                             .drop_rate = form->attn_drop};
    in = prepare_heads(block, scope, in, heads);
    att_scope_enter(node);
    att_value x = att_attention(scope->graph, in.q, in.k, in.v, &attention);
    return form->differential ? difference(block, scope, x) : x;
}

att_value att_token_heads(const att_token_block *block, const att_scope *scope, const att_scope *node, att_value x,
                          att_value relative, const att_projection *qkv, int64_t first, int heads)
{
    att_scope in = att_scope_in(scope, "qkv");
    return attend(block, scope, node, project_packed(block->form, &in, qkv, x, first, heads), relative, heads);
}

/* By the layers of an attention. */
static heads_in project_heads(const att_token_block *block, const att_scope *scope, att_value x, int heads)
{
    const att_token_form *form = block->form;
    const int64_t inner = inner_of(form, heads);
    if (form->qkv_apart) {
        att_scope q = att_scope_in(scope, "q_proj"), k = att_scope_in(scope, "k_proj");
        att_scope v = att_scope_in(scope, "v_proj");
        return (heads_in){att_nn_linear(&q, x, inner, form->qkv_bias),
                          att_nn_linear(&k, x, inner, form->qkv_bias && !form->qv_bias),
                          att_nn_linear(&v, x, inner, form->qkv_bias)};
    }
    att_scope in = att_scope_in(scope, "qkv");
    att_projection qkv = declare_qkv(block, scope, 3 * inner, columns_of(scope, x));
    return project_packed(form, &in, &qkv, x, 0, heads);
}

/* Attention with the modules beside its heads. Padding gets queries, keys and values from the biases, as in timm. */
static att_value build_attention(const att_token_block *block, const att_scope *scope, att_value x)
{
    const att_token_form *form = block->form;
    const att_window_pad_options pad = {.grid_h = form->grid[0],
                                        .grid_w = form->grid[1],
                                        .window_h = form->window[0],
                                        .window_w = form->window[1],
                                        .shift_h = form->pad_before_shift ? 0 : form->shift[0],
                                        .shift_w = form->pad_before_shift ? 0 : form->shift[1]};
    att_module_site site = site_of(block, ATT_NONE, ATT_NONE);
    int heads = form->heads - att_modules_replaced_heads(block->modules, ATT_TOKEN_HEADS, block->index);
    att_scope norm = att_scope_in(scope, "norm"), out = att_scope_in(scope, "proj");
    const int *sides = form->window[0] > 0 ? form->window : form->grid;
    att_value relative = att_relative_bias(scope, &form->relative, sides, form->prefix, heads);
    att_scope_enter(scope);
    att_value padded = pads(form) ? att_window_pad(scope->graph, x, &pad) : x;
    att_value heads_out = attend(block, scope, scope, project_heads(block, scope, padded, heads), relative, heads);
    if (pads(form))
        heads_out = att_window_crop(scope->graph, heads_out, &pad);
    if (form->attn_norm)
        heads_out = att_token_norm(&norm, heads_out, &form->norm, 1);
    site.branch = linear(block, &out, heads_out, form->width, true);
    site.input = x;
    site.heads = form->heads;
    site.qkv_bias = form->qkv_bias;
    return att_modules_apply(block->modules, ATT_TOKEN_HEADS, block->index, scope, &site);
}

/* --- the MLP ----------------------------------------------------------------------------------------------------- */

/* timm's gate of SwiGLU: nearly open at first, and nearly constant. */
static att_value build_gate(const att_token_block *block, const att_scope *scope, att_value x, int64_t outputs)
{
    static const att_init small = {.rule = ATT_INIT_NORMAL, .value = 1e-6},
                          one = {.rule = ATT_INIT_CONSTANT, .value = 1};
    const bool bias = block->form->proj_bias;
    if (block->form->start == ATT_START_RESCALED)
        return linear(block, scope, x, outputs, false);
    att_scope_enter(scope);
    att_shape shape = att_shape_of(outputs, columns_of(scope, x));
    att_value weight = att_scope_parameter(scope, "weight", shape, small, true);
    att_value shift = bias ? att_scope_parameter(scope, "bias", att_shape_of(outputs), one, false) : ATT_NONE;
    return att_linear(scope->graph, x, weight, shift);
}

/* The hidden channels. */
static att_value build_hidden(const att_token_block *block, const att_scope *mlp, att_value x)
{
    const att_token_form *form = block->form;
    att_graph *graph = mlp->graph;
    att_scope fc1 = att_scope_in(mlp, "fc1"), gate = att_scope_in(mlp, "fc1_g"), value = att_scope_in(mlp, "fc1_x");
    if (form->mlp == ATT_MLP_PLAIN)
        return form->activate(graph, linear(block, &fc1, x, block->hidden, false));
    if (form->mlp == ATT_MLP_PACKED)
        return att_swiglu(graph, linear(block, &fc1, x, block->hidden, false), ATT_NONE);
    att_value a = build_gate(block, &gate, x, block->hidden);
    att_value b = linear(block, &value, x, block->hidden, false);
    att_scope_enter(&gate);
    return att_swiglu(graph, a, b);
}

/* --- branches ---------------------------------------------------------------------------------------------------- */

static att_value norm_before(const att_token_block *block, const att_scope *norm, att_value x)
{
    const att_token_form *form = block->form;
    return form->post_norm || form->sum_norm ? x : att_token_norm(norm, x, &form->norm, 1);
}

static att_value norm_after(const att_token_block *block, const att_scope *norm, att_value x)
{
    const att_token_form *form = block->form;
    return form->post_norm ? att_token_norm(norm, x, &form->norm, form->post_norm_start) : x;
}

att_value att_token_attention_branch(const att_token_block *block, const att_scope *norm, const att_scope *attn,
                                     att_value x)
{
    att_value branch = change(block, ATT_TOKEN_BEFORE_ATTN, norm, norm_before(block, norm, x), x);
    if (att_modules_any(block->modules, ATT_TOKEN_ATTN, block->index))
        branch = change(block, ATT_TOKEN_ATTN, attn, branch, x);
    else
        branch = build_attention(block, attn, branch);
    branch = change(block, ATT_TOKEN_AFTER_ATTN, attn, branch, x);
    return norm_after(block, norm, branch);
}

att_value att_token_mlp_branch(const att_token_block *block, const att_scope *norm, const att_scope *mlp, att_value x)
{
    const att_token_form *form = block->form;
    att_scope act = att_scope_in(mlp, "act"), inner = att_scope_in(mlp, "norm"), fc2 = att_scope_in(mlp, "fc2");
    att_value branch = change(block, ATT_TOKEN_BEFORE_MLP, norm, norm_before(block, norm, x), x);
    branch = change(block, ATT_TOKEN_MID_MLP, &act, build_hidden(block, mlp, branch), x);
    if (form->mlp_norm)
        branch = att_token_norm(&inner, branch, &form->norm, 1);
    branch = linear(block, &fc2, branch, form->width, true);
    branch = change(block, ATT_TOKEN_AFTER_MLP, mlp, branch, x);
    return norm_after(block, norm, branch);
}

static att_value scale_branch(const att_token_block *block, const att_scope *scope, const char *name, att_value branch)
{
    const att_token_form *form = block->form;
    const att_init init = {.rule = ATT_INIT_CONSTANT, .value = form->init_values};
    if (form->init_values == 0 || form->post_norm)
        return branch;
    att_scope_enter(scope);
    return att_scale(scope->graph, branch,
                     att_scope_parameter(scope, name, att_shape_of(columns_of(scope, branch)), init, false));
}

att_value att_token_end_branch(const att_token_block *block, const att_scope *scale, const char *gamma,
                               const att_scope *drop, att_value branch)
{
    branch = scale_branch(block, scale, gamma, branch);
    att_scope_enter(drop);
    return att_drop_path(drop->graph, branch, block->drop_path);
}

att_value att_token_add(const att_token_block *block, int half, att_value x, att_value branch)
{
    int hook = half == 1 ? ATT_TOKEN_STREAM_AFTER_ATTN : ATT_TOKEN_STREAM_AFTER_MLP;
    att_scope sum = att_scope_in(&block->scope, "add%d", half), norm = att_scope_in(&block->scope, "norm%d", half);
    att_scope_enter(&sum);
    x = change(block, hook, &sum, att_add(sum.graph, x, branch), x);
    return block->form->sum_norm ? att_token_norm(&norm, x, &block->form->norm, 1) : x;
}

/* --- a block in sequence ----------------------------------------------------------------------------------------- */

static att_value end_half(const att_token_block *block, int half, att_value x, att_value branch)
{
    att_scope drop = att_scope_in(&block->scope, "drop_path%d", half),
              scale = att_scope_in(&block->scope, "ls%d", half);
    const char *gamma = "gamma";
    if (block->form->block_gammas) {
        scale = block->scope;
        gamma = half == 1 ? "gamma_1" : "gamma_2";
    }
    return att_token_add(block, half, x, att_token_end_branch(block, &scale, gamma, &drop, branch));
}

att_value att_token_attend(const att_token_block *block, att_value x)
{
    att_scope norm = att_scope_in(&block->scope, "norm1"), attn = att_scope_in(&block->scope, "attn");
    return end_half(block, 1, x, att_token_attention_branch(block, &norm, &attn, x));
}

att_value att_token_transform(const att_token_block *block, att_value x)
{
    att_scope norm = att_scope_in(&block->scope, "norm2"), mlp = att_scope_in(&block->scope, "mlp");
    return end_half(block, 2, x, att_token_mlp_branch(block, &norm, &mlp, x));
}
