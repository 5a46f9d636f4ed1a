/* transformers' ViTs: vit, vit_mae, vit_msn, ijepa, and deit, with and without a classifier. */
#include "networks/layouts/layout.h"

#define DISTILLED "distillation_classifier.weight"

static const att_layout_row rows[] = {
    {"embeddings.cls_token", .to = "cls_token"},
    {"embeddings.position_embeddings", .to = "pos_embed"},
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},
    {"embeddings.mask_token", .to = NULL},
    {"encoder.layer.#.layernorm_before.@", .to = "blocks.#.norm1.@"},
    {"encoder.layer.#.attention.attention.query.@", .to = "blocks.#.attn.qkv.@", .part = 0},
    {"encoder.layer.#.attention.attention.key.@", .to = "blocks.#.attn.qkv.@", .part = 1},
    {"encoder.layer.#.attention.attention.value.@", .to = "blocks.#.attn.qkv.@", .part = 2},
    {"encoder.layer.#.attention.output.dense.@", .to = "blocks.#.attn.proj.@"},
    {"encoder.layer.#.layernorm_after.@", .to = "blocks.#.norm2.@"},
    {"encoder.layer.#.intermediate.dense.@", .to = "blocks.#.mlp.fc1.@"},
    {"encoder.layer.#.output.dense.@", .to = "blocks.#.mlp.fc2.@"},
    {"layernorm.@", .to = "norm.@"},
    {"cls_classifier.@", .to = "head.@", .bare = true, .when = DISTILLED},
    {"classifier.@", .to = "head.@", .bare = true},
    {"distillation_classifier.@", .to = "head_dist.@", .bare = true},
    /* Without a classifier of its own, the distillation token is a token like a register. */
    {"embeddings.distillation_token", .to = "dist_token", .when = DISTILLED},
    {"embeddings.distillation_token", .to = "reg_token", .when = "!" DISTILLED},
    {"pooler.dense.@", .to = NULL},
    {"decoder.#.@", .to = NULL},               /* of ViTForMaskedImageModeling */
    {"decoder.decoder_pos_embed", .to = NULL}, /* of ViTMAEForPreTraining */
    {"decoder.mask_token", .to = NULL},
    {"decoder.decoder_embed.@", .to = NULL},
    {"decoder.decoder_norm.@", .to = NULL},
    {"decoder.decoder_pred.@", .to = NULL},
    {"decoder.decoder_layers.*", .to = NULL},
    {"decoder.decoder_encoder.*", .to = NULL},
};

/* I-JEPA has no class token; its classifiers read the mean of the tokens. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    if (att_tensors_find(source->file, "cls_token") >= 0)
        return ATT_OK;
    att_options_set(&config->options, "class_token", 0);
    att_options_set(&config->options, "fc_norm", 0);
    att_options_set_text(&config->options, "global_pool", "avg");
    return ATT_OK;
}

static const att_layout_form forms[] = {
    {"ViTForImageClassification", "vit", "vit.",
     ATT_LAYOUT_TOKENS ATT_LAYOUT_CLASS "head.weight !reg_token !dist_token"},
    {"ViTModel", "vit", "", ATT_LAYOUT_TOKENS ATT_LAYOUT_CLASS "!head.weight !reg_token !dist_token"},
    {"DeiTForImageClassificationWithTeacher", "deit", "deit.",
     ATT_LAYOUT_TOKENS ATT_LAYOUT_CLASS "dist_token head.weight"},
    {"DeiTForImageClassification", "deit", "deit.", ATT_LAYOUT_TOKENS ATT_LAYOUT_CLASS "reg_tokens=1 head.weight"},
    {"DeiTModel", "deit", "", ATT_LAYOUT_TOKENS ATT_LAYOUT_CLASS "reg_tokens=1 !head.weight"},
    {"IJepaForImageClassification", "ijepa", "ijepa.", ATT_LAYOUT_TOKENS "head.weight !cls_token !reg_token"},
    {"IJepaModel", "ijepa", "", ATT_LAYOUT_TOKENS "!head.weight !cls_token !reg_token"},
    {.class = NULL},
};

const att_layout att_layout_transformers_vit = {
    .name = "transformers' ViT",
    .types = "vit deit vit_mae vit_msn ijepa",
    .prefixes = "vit. deit. ijepa.",
    .signature = "embeddings.patch_embeddings.projection.weight",
    .variants =
        "vit_base_patch16_224 vit_tiny_patch16_224 vit_small_patch16_224 vit_large_patch16_224 "
        "vit_huge_patch14_224 vit_base_patch32_224 vit_small_patch32_224 vit_large_patch32_224 "
        "vit_base_patch8_224 vit_small_patch8_224",
    ATT_LAYOUT_ROWS(rows),
    .settings = att_layout_vit_settings,
    .defaults =
        "img_size=224 num_heads=12 norm_eps=1e-12 act_layer=gelu pos_embed_resize=bicubic_plain mean=0.5 std=0.5 "
        "crop_pct=1 crop_mode=squash "
        "interpolation=bilinear ",
    .complete = complete,
    .forms = forms,
};
