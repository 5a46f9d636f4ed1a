#include "networks/models/token_ends.h"

#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "networks/models/family.h"
#include "networks/nn/patch_layer.h"

const char *att_token_pool_name(int index)
{
    static const char *const names[] = {"token", "avg", "max", "avgmax", "map", "cls_avg"};
    return index >= 0 && index < (int)(sizeof names / sizeof *names) ? names[index] : NULL;
}

const char *att_token_position_name(int index)
{
    static const char *const names[] = {"learn", "none"};
    return index >= 0 && index < (int)(sizeof names / sizeof *names) ? names[index] : NULL;
}

att_status att_token_check_pool(att_context *context, const char *kind, bool class_token, bool fc_norm)
{
    if ((strcmp(kind, "token") == 0 || strcmp(kind, "cls_avg") == 0) && !class_token)
        return att_fail(context, ATT_ERR_ARGUMENT, "global_pool \"%s\" needs the class token; without one use \"avg\"",
                        kind);
    if (strcmp(kind, "cls_avg") == 0 && fc_norm)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "global_pool \"cls_avg\" has the norm before the pooling; leave fc_norm out");
    return ATT_OK;
}

/* --- before the blocks ------------------------------------------------------------------------------------------- */

typedef struct embedding {
    const att_scope *root;
    const att_token_form *form;
    const att_token_stem *stem;
} embedding;

static att_value add_positions(const embedding *e, att_value x, att_value positions)
{
    att_scope scope = att_scope_in(e->root, "pos_embed");
    if (positions == ATT_NONE)
        return x;
    att_scope_enter(&scope);
    return att_add(scope.graph, x, positions);
}

/* Tokens of the network, in front of x. `parameter` may be ATT_NONE. */
static att_value prepend(const embedding *e, const char *name, att_value parameter, att_value x)
{
    att_scope scope = att_scope_in(e->root, "%s", name);
    if (parameter == ATT_NONE)
        return x;
    att_scope_enter(&scope);
    return att_prepend_tokens(scope.graph, parameter, x);
}

static att_value declare_tokens(const embedding *e, const char *name, int count, att_init init)
{
    if (count == 0)
        return ATT_NONE;
    return att_scope_parameter(e->root, name, att_shape_of(1, count, e->form->width), init, false);
}

static att_value build_patches(const embedding *e, att_value image)
{
    const int *patch = e->form->patch;
    att_scope scope = att_scope_in(e->root, "patch_embed"), norm = att_scope_in(&scope, "norm"),
              pixels = att_scope_in(&scope, "pixel_norm");
    att_value patches = ATT_NONE;
    if (e->stem->pixel_norm) {
        att_scope_enter(&pixels);
        patches = att_patchify(e->root->graph, image, patch[0], patch[1]);
        patches = att_token_norm(&pixels, patches, e->stem->pixel_norm, 1);
    }
    att_value x = att_nn_patch_layer(&scope, image, patches, patch[0], patch[1], e->form->width, !e->stem->pre_norm);
    return e->stem->patch_norm ? att_token_norm(&norm, x, e->stem->patch_norm, 1) : x;
}

att_value att_token_embed(const att_scope *root, const att_token_form *form, const att_token_stem *stem)
{
    static const att_init small = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
    const embedding e = {root, form, stem};
    int rows = form->grid[0] * form->grid[1] + (stem->embed_prefix ? form->prefix : 0);
    att_value image = att_graph_input(root->graph, ATT_IMAGE, att_graph_dtype(root->graph),
                                      att_shape_of(stem->img_size[0], stem->img_size[1], stem->in_chans));
    att_value class_token = declare_tokens(&e, "cls_token", stem->class_token, stem->start);
    att_value distillation = declare_tokens(&e, "dist_token", stem->distilled, small);
    att_value registers = declare_tokens(&e, "reg_token", stem->registers, stem->start);
    att_value positions = declare_tokens(&e, "pos_embed", stem->positions ? rows : 0, small);
    att_value x = build_patches(&e, image);
    if (!stem->embed_prefix)
        x = add_positions(&e, x, positions);
    x = prepend(&e, "reg_token", registers, x);
    x = prepend(&e, "dist_token", distillation, x);
    x = prepend(&e, "cls_token", class_token, x);
    if (stem->embed_prefix)
        x = add_positions(&e, x, positions);
    att_scope norm = att_scope_in(root, "norm_pre");
    return stem->pre_norm ? att_token_norm(&norm, x, &form->norm, 1) : x;
}

/* --- after the blocks -------------------------------------------------------------------------------------------- */

typedef struct pooling {
    const att_scope *root;
    const att_token_form *form;
    const att_token_pool *pool;
    att_scope scope;
} pooling;

static bool is(const pooling *p, const char *kind)
{
    return strcmp(p->pool->kind, kind) == 0;
}

static att_value normalise(const pooling *p, att_value x)
{
    att_scope norm = att_scope_in(p->root, p->pool->fc_norm ? "fc_norm" : "norm");
    return p->pool->final_norm ? att_token_norm(&norm, x, &p->form->norm, 1) : x;
}

/* A row that all samples share as a value of each sample; x [N, C] is any value of the sample. */
static att_value of_sample(att_graph *graph, att_value row, att_value x)
{
    x = att_prepend_tokens(graph, row, att_slice_tokens(graph, x, 0, 1));
    return att_slice_tokens(graph, x, 0, 1);
}

/* Attention of a learned query to x [N, C], and an MLP: timm's AttentionPoolLatent. Returns [1, C]. (Lee et al., ICML
 * 2019; Zhai et al., CVPR 2022) */
static att_value attend_all(const pooling *p, const att_scope *pool, att_value x)
{
    const int64_t width = p->form->width;
    att_graph *graph = pool->graph;
    const att_init init = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 1 / sqrt((double)width)};
    att_scope q_scope = att_scope_in(pool, "q"), kv = att_scope_in(pool, "kv"), proj = att_scope_in(pool, "proj");
    att_scope norm = att_scope_in(pool, "norm"), mlp = att_scope_in(pool, "mlp"), sum = att_scope_in(pool, "add");
    att_scope fc1 = att_scope_in(&mlp, "fc1"), fc2 = att_scope_in(&mlp, "fc2");
    att_value latent = att_scope_parameter(pool, "latent", att_shape_of(1, 1, width), init, true);
    latent = att_reshape(graph, latent, att_shape_of(1, width));
    att_value q = of_sample(graph, att_nn_linear(&q_scope, latent, width, true), x);
    att_value k_and_v = att_nn_linear(&kv, x, 2 * width, true);
    att_scope_enter(pool);
    x = att_attention(graph, q, k_and_v, ATT_NONE, &(att_attention_options){.heads = p->pool->heads});
    x = att_nn_linear(&proj, x, width, true);
    att_value hidden = att_token_norm(&norm, x, &p->form->norm, 1);
    hidden = att_nn_linear(&fc1, hidden, p->pool->hidden, true);
    hidden = att_nn_linear(&fc2, p->pool->activate(graph, hidden), width, true);
    att_scope_enter(&sum);
    return att_combine(graph, 1, x, 1, hidden);
}

/* Tokens [N, C] that are pooled to one [C]. */
static att_value pool_tokens(const pooling *p, att_value x)
{
    att_graph *graph = p->root->graph;
    int first = p->pool->reads_prefix ? 0 : p->form->prefix;
    int count = (int)att_value_shape(graph, x).dims[0] - first;
    if (is(p, "avg"))
        return att_token_mean(graph, x, first);
    if (is(p, "cls_avg"))
        return att_concat(graph, att_token_mean(graph, att_slice_tokens(graph, x, 0, 1), 0),
                          att_token_mean(graph, x, p->form->prefix));
    if (first > 0)
        x = att_slice_tokens(graph, x, first, count);
    att_scope attention = att_scope_in(p->root, "attn_pool");
    if (is(p, "map"))
        x = attend_all(p, &attention, x);
    att_scope_enter(&p->scope);
    if (is(p, "map"))
        return att_token_mean(graph, x, 0);
    att_value largest = att_global_max(graph, x);
    return is(p, "max") ? largest : att_combine(graph, 0.5, largest, 0.5, att_token_mean(graph, x, 0));
}

/* Pooled tokens are selected before the norm, so the norm works on these only. */
static void build_distilled_pool(const pooling *p, att_value x, att_features *features)
{
    att_graph *graph = p->root->graph;
    x = normalise(p, att_slice_tokens(graph, x, 0, 2));
    features->pooled = att_token_mean(graph, x, 0);
    for (int i = 0; i < 2; i++)
        features->classified[i] = att_token_mean(graph, att_slice_tokens(graph, x, i, 1), 0);
}

void att_token_finish(const att_scope *root, const att_token_form *form, const att_token_pool *pool, att_value x,
                      att_features *features)
{
    const pooling p = {root, form, pool, att_scope_in(root, "pool")};
    features->tokens = x;
    att_scope_enter(&p.scope);
    if (pool->distilled) {
        build_distilled_pool(&p, x, features);
    } else if (is(&p, "token")) {
        x = att_token_mean(root->graph, att_slice_tokens(root->graph, x, 0, 1), 0);
        features->pooled = normalise(&p, x);
    } else {
        if (!pool->fc_norm)
            features->tokens = x = normalise(&p, x);
        att_scope_enter(&p.scope);
        x = pool_tokens(&p, x);
        features->pooled = pool->fc_norm ? normalise(&p, x) : x;
    }
}
