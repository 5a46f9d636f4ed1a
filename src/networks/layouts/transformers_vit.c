/* transformers' ViTs: vit, vit_mae, vit_msn, ijepa, and deit, with and without a classifier. */
#include "networks/layouts/layout.h"

#define DISTILLED "distillation_classifier.weight"
#define LAYER "encoder.layer.#."
/* Since transformers 5, names of networks in memory, and of files that save their state_dict(), are others. */
#define MEMORY "layers.#."

static const att_layout_row rows[] = {
    {"embeddings.cls_token", .to = "cls_token"},
    {"embeddings.position_embeddings", .to = "pos_embed"},
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},
    {"embeddings.mask_token", .to = NULL},
    {LAYER "layernorm_before.@", .also = MEMORY "layernorm_before.@", .to = "blocks.#.norm1.@"},
    {LAYER "attention.attention.query.@", .also = MEMORY "attention.q_proj.@", .to = "blocks.#.attn.qkv.@", .part = 0},
    {LAYER "attention.attention.key.@", .also = MEMORY "attention.k_proj.@", .to = "blocks.#.attn.qkv.@", .part = 1},
    {LAYER "attention.attention.value.@", .also = MEMORY "attention.v_proj.@", .to = "blocks.#.attn.qkv.@", .part = 2},
    {LAYER "attention.output.dense.@", .also = MEMORY "attention.o_proj.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "layernorm_after.@", .also = MEMORY "layernorm_after.@", .to = "blocks.#.norm2.@"},
    {LAYER "intermediate.dense.@", .also = MEMORY "mlp.fc1.@", .to = "blocks.#.mlp.fc1.@"},
    {LAYER "output.dense.@", .also = MEMORY "mlp.fc2.@", .to = "blocks.#.mlp.fc2.@"},
    {"layernorm.@", .to = "norm.@"},
    {"cls_classifier.@", .to = "head.@", .bare = true, .when = DISTILLED},
    {"classifier.@", .to = "head.@", .bare = true},
    {"distillation_classifier.@", .to = "head_dist.@", .bare = true},
    /* Without a classifier of its own, the distillation token is a token like a register. */
    {"embeddings.distillation_token", .to = "dist_token", .when = DISTILLED},
    {"embeddings.distillation_token", .to = "reg_token", .when = "!" DISTILLED},
    /* A classifier beside a pooler may read either the pooler or the class token: such a file is refused. */
    {"pooler.dense.@", .to = NULL, .when = "!classifier.weight"},
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
