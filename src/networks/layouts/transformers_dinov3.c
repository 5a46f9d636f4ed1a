/* transformers' DINOv3 ViTs. */
#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define QUERY_BIAS "layer.0.attention.q_proj.bias"
#define VALUE_BIAS "layer.0.attention.v_proj.bias"
#define OUTPUT_BIAS "layer.0.attention.o_proj.bias"
#define GATED "layer.0.mlp.gate_proj.weight"

static const att_layout_row rows[] = {
    {"embeddings.cls_token", .to = "cls_token"},
    {"embeddings.register_tokens", .to = "reg_token"},
    {"embeddings.mask_token", .to = NULL},
    {"embeddings.patch_embeddings.@", .to = "patch_embed.proj.@"},
    {"rope_embeddings.inv_freq", .to = NULL, .computed = true},
    {"layer.#.norm1.@", .to = "blocks.#.norm1.@"},
    {"layer.#.attention.q_proj.@", .to = "blocks.#.attn.q_proj.@"},
    {"layer.#.attention.k_proj.@", .to = "blocks.#.attn.k_proj.@"},
    {"layer.#.attention.v_proj.@", .to = "blocks.#.attn.v_proj.@"},
    {"layer.#.attention.o_proj.@", .to = "blocks.#.attn.proj.@"},
    /* The family has biases of queries and values or none, and always one of the output. */
    {"layer.#.attention.v_proj.bias", .to = "blocks.#.attn.q_proj.bias", .zeros = true, .when = "!" QUERY_BIAS},
    {"layer.#.attention.q_proj.bias", .to = "blocks.#.attn.v_proj.bias", .zeros = true, .when = "!" VALUE_BIAS},
    {"layer.#.attention.o_proj.weight", .to = "blocks.#.attn.proj.bias", .zeros = true, .when = "!" OUTPUT_BIAS},
    {"layer.#.layer_scale1.lambda1", .to = "blocks.#.gamma_1"},
    {"layer.#.norm2.@", .to = "blocks.#.norm2.@"},
    {"layer.#.mlp.up_proj.@", .to = "blocks.#.mlp.fc1.@", .when = "!" GATED},
    {"layer.#.mlp.up_proj.@", .to = "blocks.#.mlp.fc1_x.@", .when = GATED},
    {"layer.#.mlp.gate_proj.@", .to = "blocks.#.mlp.fc1_g.@"},
    {"layer.#.mlp.down_proj.@", .to = "blocks.#.mlp.fc2.@"},
    {"layer.#.layer_scale2.lambda1", .to = "blocks.#.gamma_2"},
    {"norm.@", .to = "norm.@"},
};

static const att_layout_setting settings[] = {
    {"image_size", .option = "img_size"},
    {"num_attention_heads", .option = "num_heads"},
    {"layer_norm_eps", .option = "norm_eps"},
    {"num_register_tokens", .option = "reg_tokens"},
    {"rope_theta", .option = "rope_temperature"},
    ATT_LAYOUT_SHOWN,
    {"intermediate_size", .rows_of = "blocks.0.mlp.fc1.weight"},
    {"intermediate_size", .rows_of = "blocks.0.mlp.fc1_x.weight"},
    {"query_bias", .has = "blocks.0.attn.q_proj.bias"},
    {"key_bias", .has = "blocks.0.attn.k_proj.bias"},
    {"value_bias", .has = "blocks.0.attn.v_proj.bias"},
    {"use_gated_mlp", .has = "blocks.0.mlp.fc1_g.weight"},
    {.key = NULL},
};

extern const att_layout att_layout_transformers_dinov3;

static att_status prepare(const att_layout_source *source, att_config *config)
{
    static const struct {
        const char *setting, *tensor;
        bool otherwise;
    } parts[] = {{"query_bias", QUERY_BIAS, true},
                 {"key_bias", "layer.0.attention.k_proj.bias", false},
                 {"value_bias", VALUE_BIAS, true},
                 {"proj_bias", OUTPUT_BIAS, true},
                 {"use_gated_mlp", GATED, false}};
    (void)config;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const bool on = att_layout_is_on(source, parts[i].setting, parts[i].otherwise);
        const bool has = att_layout_find(&att_layout_transformers_dinov3, source->file, parts[i].tensor) >= 0;
        ATT_TRY(att_layout_require_agreement(source, parts[i].setting, on, on == has));
    }
    return ATT_OK;
}

/* The family has GELU in MLPs and SiLU in gated ones; transformers has GELU in both if config.json names none. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    const bool gated = att_tensors_find(source->file, "blocks.0.mlp.fc1_g.weight") >= 0;
    (void)config;
    ATT_TRY(att_layout_require_number(source, "mlp_bias", 1));
    if (gated && !json_object_get(source->config, "hidden_act"))
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: hidden_act is missing, which means \"gelu\"; attscope has \"silu\" only in gated MLPs",
                        source->path);
    return att_layout_require_text(source, "hidden_act", gated ? "silu" : "gelu");
}

static att_status describe(const att_layout_target *target, att_json_writer *json)
{
    const bool gated = att_weights_find(target->weights, "blocks.0.mlp.fc1_g.weight") >= 0;
    att_json_put_string(json, "hidden_act", gated ? "silu" : "gelu");
    return ATT_OK;
}

#define REQUIRED                                                                                 \
    "cls_token patch_embed.proj.bias blocks.0.attn.proj.bias blocks.0.gamma_1 blocks.0.gamma_2 " \
    "blocks.0.mlp.fc2.bias norm.bias "
static const att_layout_form forms[] = {
    {"DINOv3ViTModel", "dinov3_vit", "", REQUIRED "!head.weight"},
    {.class = NULL},
};

const att_layout att_layout_transformers_dinov3 = {
    .name = "transformers' DINOv3",
    .types = "dinov3_vit",
    .prefixes = "model. dinov3_vit.",
    .signature = "layer.0.layer_scale1.lambda1",
    .variants =
        "vit_base_patch16_dinov3_qkvb vit_small_patch16_dinov3_qkvb vit_large_patch16_dinov3_qkvb "
        "vit_small_plus_patch16_dinov3_qkvb vit_huge_plus_patch16_dinov3_qkvb vit_7b_patch16_dinov3",
    ATT_LAYOUT_ROWS(rows),
    .settings = settings,
    .defaults =
        "img_size=224 num_heads=6 norm_eps=1e-5 rope_temperature=100 global_pool=token fc_norm=false "
        "crop_pct=1 crop_mode=squash interpolation=bilinear_float mean=0.485,0.456,0.406 std=0.229,0.224,0.225 ",
    .prepare = prepare,
    .complete = complete,
    .forms = forms,
    .describe = describe,
};
