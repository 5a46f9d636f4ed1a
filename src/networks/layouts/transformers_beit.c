/* transformers' BEiT and Data2Vec. */
#include "networks/layouts/layout.h"

#define ATTENTION "encoder.layer.#.attention.attention."
#define TABLE "relative_position_bias.relative_position_bias_table"
#define INDEX "relative_position_bias.relative_position_index"

static const att_layout_row rows[] = {
    {"embeddings.cls_token", .to = "cls_token"},
    {"embeddings.position_embeddings", .to = "pos_embed"},
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},
    {"embeddings.mask_token", .to = NULL},
    {"encoder." TABLE, .to = "rel_pos_bias.relative_position_bias_table"},
    {"encoder." INDEX, .to = NULL},
    {"encoder.layer.#.layernorm_before.@", .to = "blocks.#.norm1.@"},
    /* Keys have no bias. */
    {ATTENTION "query.weight", .to = "blocks.#.attn.qkv.weight", .part = 0},
    {ATTENTION "key.weight", .to = "blocks.#.attn.qkv.weight", .part = 1},
    {ATTENTION "value.weight", .to = "blocks.#.attn.qkv.weight", .part = 2},
    {ATTENTION "query.bias", .to = "blocks.#.attn.q_bias"},
    {ATTENTION "value.bias", .to = "blocks.#.attn.v_bias"},
    {ATTENTION TABLE, .to = "blocks.#.attn.relative_position_bias_table"},
    {ATTENTION INDEX, .to = NULL},
    {"encoder.layer.#.attention.output.dense.@", .to = "blocks.#.attn.proj.@"},
    {"encoder.layer.#.lambda_1", .to = "blocks.#.gamma_1"},
    {"encoder.layer.#.layernorm_after.@", .to = "blocks.#.norm2.@"},
    {"encoder.layer.#.intermediate.dense.@", .to = "blocks.#.mlp.fc1.@"},
    {"encoder.layer.#.output.dense.@", .to = "blocks.#.mlp.fc2.@"},
    {"encoder.layer.#.lambda_2", .to = "blocks.#.gamma_2"},
    {"layernorm.@", .to = "norm.@"},
    {"pooler.layernorm.@", .to = "fc_norm.@"},
    {"classifier.@", .to = "head.@"},
    {"lm_head.@", .to = NULL}, /* of BeitForMaskedImageModeling */
};

static const att_layout_setting settings[] = {{"image_size", "img_size", NULL},
                                              {"num_attention_heads", "num_heads", NULL},
                                              {"layer_norm_eps", "norm_eps", NULL},
                                              {"hidden_act", "act_layer", att_layout_activations},
                                              {NULL, NULL, NULL}};

/* A norm after the pooling is that of the mean over patches; without one, the class token is read. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    const bool mean = att_tensors_find(source->file, "fc_norm.weight") >= 0;
    att_options_set_text(&config->options, "global_pool", mean ? "avg" : "token");
    att_options_set(&config->options, "fc_norm", mean);
    return ATT_OK;
}

const att_layout att_layout_transformers_beit = {
    .name = "transformers' BEiT",
    .types = "beit data2vec-vision",
    .prefixes = "beit. data2vec_vision.",
    .signature = "encoder.layer.0.attention.attention.query.bias",
    .variants =
        "beit_base_patch16_224 beit_large_patch16_224 beit_base_patch16_384 beit_large_patch16_384 "
        "beit_large_patch16_512",
    ATT_LAYOUT_ROWS(rows),
    .settings = settings,
    .defaults =
        "img_size=224 num_heads=12 norm_eps=1e-12 act_layer=gelu mean=0.5 std=0.5 crop_pct=1 crop_mode=squash "
        "interpolation=bilinear ",
    .complete = complete,
};
