/* ViTs of google-research/vision_transformer: NumPy's archives of the networks' arrays in JAX, whose names have dots
 * here in place of slashes. */
#include "networks/layouts/layout.h"

#define BLOCK "Transformer.encoderblock_#."
#define ATTENTION BLOCK "MultiHeadDotProductAttention_1."
#define MLP BLOCK "MlpBlock_3."
#define FIRST_QUERY "Transformer.encoderblock_0.MultiHeadDotProductAttention_1.query.kernel"
#define INNER "pre_logits.kernel"

#define LINEAR(name, timm)                                \
    {name ".kernel", .to = timm ".weight", .axes = "10"}, \
    {                                                     \
        name ".bias", .to = timm ".bias"                  \
    }
#define NORM(name, timm)                   \
    {name ".scale", .to = timm ".weight"}, \
    {                                      \
        name ".bias", .to = timm ".bias"   \
    }
/* [width, heads, channels] */
#define HEADS(name, index)                                                                        \
    {ATTENTION name ".kernel", .to = "blocks.#.attn.qkv.weight", .part = index, .axes = "(12)0"}, \
    {                                                                                             \
        ATTENTION name ".bias", .to = "blocks.#.attn.qkv.bias", .part = index, .axes = "(01)"     \
    }

static const att_layout_row rows[] = {
    {"cls", .to = "cls_token"},
    {"Transformer.posembed_input.pos_embedding", .to = "pos_embed"},
    {"embedding.kernel", .to = "patch_embed.proj.weight", .axes = "3201"},
    {"embedding.bias", .to = "patch_embed.proj.bias"},
    NORM(BLOCK "LayerNorm_0", "blocks.#.norm1"),
    HEADS("query", 0),
    HEADS("key", 1),
    HEADS("value", 2),
    {ATTENTION "out.kernel", .to = "blocks.#.attn.proj.weight", .axes = "2(01)"},
    {ATTENTION "out.bias", .to = "blocks.#.attn.proj.bias"},
    NORM(BLOCK "LayerNorm_2", "blocks.#.norm2"),
    LINEAR(MLP "Dense_0", "blocks.#.mlp.fc1"),
    LINEAR(MLP "Dense_1", "blocks.#.mlp.fc2"),
    NORM("Transformer.encoder_norm", "norm"),
    /* With a layer between the class token and the classifier, the latter is left out, too. */
    {"pre_logits.*", .to = NULL},
    {"head.kernel", .to = "head.weight", .axes = "10", .when = "!" INNER},
    {"head.bias", .to = "head.bias", .when = "!" INNER},
    {"head.*", .to = NULL, .others = true},
};

extern const att_layout att_layout_google_vit;

static att_status prepare(const att_layout_source *source, att_config *config)
{
    const int index = att_layout_find(&att_layout_google_vit, source->file, FIRST_QUERY);
    const att_shape shape = att_tensors_at(source->file, index).shape;
    if (shape.rank == 3)
        att_options_set(&config->options, "num_heads", (double)shape.dims[1]);
    return ATT_OK;
}

/* JAX's gelu is the approximation by tanh. */
const att_layout att_layout_google_vit = {
    .name = "Google's ViT",
    .prefixes = "opt.target. params.",
    .signature = "embedding.kernel Transformer.posembed_input.pos_embedding cls " FIRST_QUERY " !conv_root.kernel",
    .variants =
        "vit_base_patch16_224 vit_base_patch32_224 vit_base_patch8_224 vit_small_patch16_224 vit_small_patch32_224 "
        "vit_tiny_patch16_224 vit_large_patch16_224 vit_large_patch32_224 vit_huge_patch14_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "norm_eps=1e-6 act_layer=gelu_tanh global_pool=token crop_pct=1 crop_mode=squash interpolation=bilinear "
        "mean=0.5,0.5,0.5 std=0.5,0.5,0.5 ",
    .prepare = prepare,
};
