/* transformers' BEiT and Data2Vec. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define LAYER "encoder.layer.#."
#define ATTENTION LAYER "attention.attention."
/* Since transformers 5, names in memory. */
#define MEMORY "layers.#."
#define TABLE "relative_position_bias.relative_position_bias_table"
#define INDEX "relative_position_bias.relative_position_index"
#define BACKBONE_NORM "beit.layernorm."

static const att_layout_row rows[] = {
    {"embeddings.cls_token", .to = "cls_token"},
    {"embeddings.position_embeddings", .to = "pos_embed"},
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},
    {"embeddings.mask_token", .to = NULL},
    {"encoder." TABLE, .also = "shared_position_bias.relative_position_bias_table",
     .to = "rel_pos_bias.relative_position_bias_table"},
    {"encoder." INDEX, .to = NULL, .computed = true},
    {LAYER "layernorm_before.@", .also = MEMORY "layernorm_before.@", .to = "blocks.#.norm1.@"},
    /* Keys have no bias. */
    {ATTENTION "query.weight", .also = MEMORY "attention.q_proj.weight", .to = "blocks.#.attn.qkv.weight", .part = 0},
    {ATTENTION "key.weight", .also = MEMORY "attention.k_proj.weight", .to = "blocks.#.attn.qkv.weight", .part = 1},
    {ATTENTION "value.weight", .also = MEMORY "attention.v_proj.weight", .to = "blocks.#.attn.qkv.weight", .part = 2},
    {ATTENTION "query.bias", .also = MEMORY "attention.q_proj.bias", .to = "blocks.#.attn.q_bias"},
    {ATTENTION "value.bias", .also = MEMORY "attention.v_proj.bias", .to = "blocks.#.attn.v_bias"},
    {ATTENTION TABLE, .also = MEMORY TABLE, .to = "blocks.#.attn.relative_position_bias_table"},
    {ATTENTION INDEX, .to = NULL, .computed = true},
    {LAYER "attention.output.dense.@", .also = MEMORY "attention.o_proj.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "lambda_1", .also = MEMORY "lambda_1", .to = "blocks.#.gamma_1"},
    {LAYER "layernorm_after.@", .also = MEMORY "layernorm_after.@", .to = "blocks.#.norm2.@"},
    {LAYER "intermediate.dense.@", .also = MEMORY "mlp.fc1.@", .to = "blocks.#.mlp.fc1.@"},
    {LAYER "output.dense.@", .also = MEMORY "mlp.fc2.@", .to = "blocks.#.mlp.fc2.@"},
    {LAYER "lambda_2", .also = MEMORY "lambda_2", .to = "blocks.#.gamma_2"},
    /* BeitForMaskedImageModeling has a norm of this name before lm_head, too. It is left out if the backbone has one.
     */
    {BACKBONE_NORM "@", .to = "norm.@", .writes = ""},
    {"layernorm.@", .to = "norm.@", .when = "!" BACKBONE_NORM "weight"},
    {"layernorm.@", .to = NULL, .when = BACKBONE_NORM "weight"},
    {"lm_head.@", .to = NULL},
    {"pooler.layernorm.@", .to = "fc_norm.@"},
    {"classifier.@", .to = "head.@", .bare = true},
};

/* Settings that add tensors, and their defaults. */
static const struct part {
    const char *setting, *tensor;
    bool otherwise;
} parts[] = {
    {"use_absolute_position_embeddings", "pos_embed", false},
    {"use_relative_position_bias", "blocks.0.attn.relative_position_bias_table", false},
    {"use_shared_relative_position_bias", "rel_pos_bias.relative_position_bias_table", false},
    {"layer_scale_init_value", "blocks.0.gamma_1", true},
};

/* expected: whether a network of this setting has the tensor */
static att_status check_part(const att_layout_source *source, const char *setting, const char *tensor, bool set,
                             bool expected)
{
    const bool has = att_tensors_find(source->file, tensor) >= 0;
    return att_layout_require_agreement(source, setting, set, has == expected);
}

static att_status check_parts(const att_layout_source *source)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const bool set = att_layout_is_on(source, parts[i].setting, parts[i].otherwise);
        ATT_TRY(check_part(source, parts[i].setting, parts[i].tensor, set, set));
    }
    if (att_layout_is_on(source, parts[1].setting, false) && att_layout_is_on(source, parts[2].setting, false))
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: %s and %s are both true; attscope has networks with one of them", source->path,
                        parts[1].setting, parts[2].setting);
    return ATT_OK;
}

/* The mean over patches is read without the last norm, the class token after it. A masked image model has the norm of
 * its head in any case. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    const bool masked = strcmp(att_layout_class(source), "BeitForMaskedImageModeling") == 0;
    const bool set = att_layout_is_on(source, "use_mean_pooling", true), mean = set && !masked;
    ATT_TRY(check_parts(source));
    ATT_TRY(check_part(source, "use_mean_pooling", "norm.weight", set, !mean));
    /* transformers takes the sides of a grid for each other where it resamples relative positions, and resamples other
     * positions of grids that are no squares. */
    ATT_TRY(att_layout_require_square(source, config));
    att_options_set_text(&config->options, "global_pool", mean ? "avg" : "token");
    att_options_set(&config->options, "fc_norm", mean);
    return ATT_OK;
}

static att_status describe(const att_layout_target *target, att_json_writer *json)
{
    const char *pool = att_options_text(&target->identity->options, "global_pool");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const bool has = att_weights_find(target->weights, parts[i].tensor) >= 0;
        att_json_key(json, parts[i].setting);
        if (parts[i].otherwise) /* the only number */
            att_json_float(json, has ? 0.1 : 0);
        else
            att_json_bool(json, has);
    }
    att_json_put_bool(json, "use_mean_pooling", strcmp(pool, "avg") == 0);
    return ATT_OK;
}

#define REQUIRED "cls_token patch_embed.proj.bias blocks.0.attn.q_bias blocks.0.attn.proj.bias blocks.0.mlp.fc1.bias "
static const att_layout_form forms[] = {
    {"BeitForImageClassification", "beit", "beit.", REQUIRED "fc_norm.bias !norm.bias head.weight"},
    {"BeitForImageClassification", "beit", "beit.", REQUIRED "norm.bias !fc_norm.bias head.weight"},
    {"BeitModel", "beit", "", REQUIRED "fc_norm.bias !norm.bias !head.weight"},
    {"BeitModel", "beit", "", REQUIRED "norm.bias !fc_norm.bias !head.weight"},
    {"Data2VecVisionModel", "data2vec-vision", "", REQUIRED "!norm.bias !fc_norm.bias !head.weight"},
    {.class = NULL},
};

const att_layout att_layout_transformers_beit = {
    .name = "transformers' BEiT",
    .types = "beit data2vec-vision",
    .prefixes = "beit. data2vec_vision.",
    .signature = "encoder.layer.0.attention.attention.query.bias",
    .variants =
        "beit_base_patch16_224 beit_large_patch16_224 beit_base_patch16_384 beit_large_patch16_384 "
        "beit_large_patch16_512",
    ATT_LAYOUT_ROWS(rows),
    .settings = att_layout_vit_settings,
    .defaults =
        "img_size=224 num_heads=12 norm_eps=1e-12 act_layer=gelu pos_embed_resize=bicubic_plain mean=0.5 std=0.5 "
        "crop_pct=1 crop_mode=squash interpolation=bicubic ",
    .complete = complete,
    .forms = forms,
    .describe = describe,
};
