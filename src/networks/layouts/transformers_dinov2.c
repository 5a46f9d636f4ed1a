/* transformers' DINOv2 with and without registers. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define REGISTERS "embeddings.register_tokens"
#define GATED "mlp_layer=swiglu_packed"
#define LAYER "encoder.layer.#."
#define MLP LAYER "mlp."

static const att_layout_row rows[] = {
    {"embeddings.cls_token", .to = "cls_token"},
    {"embeddings.position_embeddings", .to = "pos_embed", .when = "!" REGISTERS},
    /* With registers, positions are added before these come in; the class token's is a part of it. */
    {"embeddings.position_embeddings", .to = "pos_embed", .first = 1, .when = REGISTERS},
    {"embeddings.position_embeddings", .to = "cls_token", .end = 1, .add = true, .when = REGISTERS},
    {REGISTERS, .to = "reg_token"},
    {"embeddings.mask_token", .to = NULL},
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},
    {LAYER "norm1.@", .to = "blocks.#.norm1.@"},
    /* The second names are those in memory, since transformers 5. */
    {LAYER "attention.attention.query.@", .also = LAYER "attention.q_proj.@", .to = "blocks.#.attn.qkv.@", .part = 0},
    {LAYER "attention.attention.key.@", .also = LAYER "attention.k_proj.@", .to = "blocks.#.attn.qkv.@", .part = 1},
    {LAYER "attention.attention.value.@", .also = LAYER "attention.v_proj.@", .to = "blocks.#.attn.qkv.@", .part = 2},
    {LAYER "attention.output.dense.@", .also = LAYER "attention.o_proj.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "layer_scale1.lambda1", .to = "blocks.#.ls1.gamma"},
    {LAYER "norm2.@", .to = "blocks.#.norm2.@"},
    {MLP "weights_in.@", .to = "blocks.#.mlp.fc1.@", .writes = GATED},
    {MLP "weights_out.@", .also = MLP "down_proj.@", .to = "blocks.#.mlp.fc2.@", .writes = GATED},
    {MLP "fc1.@", .to = "blocks.#.mlp.fc1.@"},
    {MLP "fc2.@", .to = "blocks.#.mlp.fc2.@"},
    /* In memory, weights_in is two layers. */
    {MLP "gate_proj.weight", .to = "blocks.#.mlp.fc1.weight", .part = 0, .writes = ""},
    {MLP "up_proj.weight", .to = "blocks.#.mlp.fc1.weight", .part = 1, .writes = ""},
    {MLP "gate_proj.bias", .to = "blocks.#.mlp.fc1.bias", .part = 0, .writes = ""},
    {MLP "up_proj.bias", .to = "blocks.#.mlp.fc1.bias", .part = 1, .writes = ""},
    {LAYER "layer_scale2.lambda1", .to = "blocks.#.ls2.gamma"},
    {"layernorm.@", .to = "norm.@"},
    {"classifier.@", .to = "head.@", .bare = true},
};

extern const att_layout att_layout_transformers_dinov2;

static att_status prepare(const att_layout_source *source, att_config *config)
{
    const bool on = att_layout_is_on(source, "use_swiglu_ffn", false);
    (void)config;
    return att_layout_require_agreement(
        source, "use_swiglu_ffn", on,
        on == (att_layout_find(&att_layout_transformers_dinov2, source->file, "encoder.layer.0.mlp.fc1.weight") < 0));
}

static bool has_registers(const att_layout_source *source)
{
    const char *type = json_string_value(json_object_get(source->config, "model_type"));
    return type && strcmp(type, "dinov2_with_registers") == 0;
}

/* A classifier reads the class token and the mean of the patches side by side. */
static bool has_classifier(const att_tensors *file)
{
    const int head = att_tensors_find(file, "head.weight"), norm = att_tensors_find(file, "norm.weight");
    return head >= 0 && norm >= 0 && att_tensors_at(file, head).shape.rank == 2 &&
           att_tensors_at(file, head).shape.dims[1] == 2 * att_tensors_at(file, norm).count;
}

/* A gated MLP always has SiLU. Networks with registers, even if there are none of these, resize their positions with
 * antialiasing, others without. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    const bool registers = has_registers(source);
    ATT_TRY(att_layout_require_square(source, config)); /* transformers takes any table as that of a square grid */
    if (att_layout_is_on(source, "use_swiglu_ffn", false))
        att_options_set_text(&config->options, "act_layer", "silu");
    att_options_set(&config->options, "embed_class", !registers);
    att_options_set_text(&config->options, "pos_embed_resize", registers ? "bicubic" : "bicubic_plain");
    if (has_classifier(source->file))
        att_options_set_text(&config->options, "global_pool", "cls_avg");
    return ATT_OK;
}

/* Width of an MLP of Dinov2Config.mlp_ratio. */
static int64_t mlp_width(int64_t width, int ratio, bool gated)
{
    return gated ? (width * ratio * 2 / 3 + 7) / 8 * 8 : width * ratio;
}

/* The ratio must be a whole number. */
static att_status describe(const att_layout_target *target, att_json_writer *json)
{
    const bool gated = strcmp(att_options_text(&target->identity->options, "mlp_layer"), "swiglu_packed") == 0;
    const int second = att_weights_find(target->weights, "blocks.0.mlp.fc2.weight");
    const att_shape shape = att_weights_at(target->weights, second).shape;
    int ratio = 1;
    while (mlp_width(shape.dims[0], ratio, gated) < shape.dims[1])
        ratio++;
    if (mlp_width(shape.dims[0], ratio, gated) != shape.dims[1])
        return att_fail(target->context, ATT_ERR_UNSUPPORTED, "%s has no mlp_ratio for MLPs of %d channels",
                        target->layout->name, (int)shape.dims[1]);
    att_json_put_integer(json, "mlp_ratio", ratio);
    att_json_put_bool(json, "use_swiglu_ffn", gated);
    att_json_put_integer(json, "num_register_tokens",
                         (int64_t)att_options_number(&target->identity->options, "reg_tokens", 0));
    att_json_put_bool(json, "use_mask_token", false);
    return ATT_OK;
}

#define REQUIRED ATT_LAYOUT_TOKENS "cls_token blocks.0.ls1.gamma blocks.0.ls2.gamma "
static const att_layout_form forms[] = {
    {"Dinov2ForImageClassification", "dinov2", "dinov2.", REQUIRED "head.weight embed_class=1 !reg_token"},
    {"Dinov2Model", "dinov2", "", REQUIRED "!head.weight embed_class=1 !reg_token"},
    {"Dinov2WithRegistersForImageClassification", "dinov2_with_registers", "dinov2_with_registers.",
     REQUIRED "head.weight reg_token"},
    {"Dinov2WithRegistersModel", "dinov2_with_registers", "", REQUIRED "!head.weight reg_token"},
    {.class = NULL},
};

const att_layout att_layout_transformers_dinov2 = {
    .name = "transformers' DINOv2",
    .types = "dinov2 dinov2_with_registers",
    .prefixes = "dinov2. dinov2_with_registers.",
    .signature = "encoder.layer.0.layer_scale1.lambda1",
    .variants =
        "vit_base_patch14_dinov2 vit_small_patch14_dinov2 vit_large_patch14_dinov2 vit_giant_patch14_dinov2 "
        "vit_small_patch14_reg4_dinov2 vit_base_patch14_reg4_dinov2 vit_large_patch14_reg4_dinov2 "
        "vit_giant_patch14_reg4_dinov2",
    ATT_LAYOUT_ROWS(rows),
    .settings = att_layout_vit_settings,
    .defaults =
        "img_size=224 num_heads=12 norm_eps=1e-6 act_layer=gelu global_pool=token fc_norm=false "
        "crop_pct=0.875 crop_mode=center interpolation=bicubic mean=0.485,0.456,0.406 std=0.229,0.224,0.225 ",
    .prepare = prepare,
    .complete = complete,
    .forms = forms,
    .describe = describe,
};
