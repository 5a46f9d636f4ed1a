/* ViTs of lucidrains/vit-pytorch before 2023, whose patches are embedded by a linear layer without norms. */
#include "base/core/error.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"

#define ATTENTION "transformer.layers.#.0."
#define MLP "transformer.layers.#.1."

static const att_layout_row rows[] = {
    {"cls_token", .to = "cls_token"},
    {"pos_embedding", .to = "pos_embed"},
    {"to_patch_embedding.1.weight", .to = "patch_embed.proj.weight", .patches = true},
    {"to_patch_embedding.1.bias", .to = "patch_embed.proj.bias"},
    {ATTENTION "norm.@", .to = "blocks.#.norm1.@"},
    {ATTENTION "fn.to_qkv.weight", .to = "blocks.#.attn.qkv.weight"},
    {ATTENTION "fn.to_out.0.@", .to = "blocks.#.attn.proj.@"},
    {MLP "norm.@", .to = "blocks.#.norm2.@"},
    {MLP "fn.net.0.@", .to = "blocks.#.mlp.fc1.@"},
    {MLP "fn.net.3.@", .to = "blocks.#.mlp.fc2.@"},
    {"mlp_head.0.@", .to = "norm.@"},
    {"mlp_head.1.@", .to = "head.@"},
};

/* A head has 64 channels unless the program gave dim_head, which nothing in the file shows. */
static att_status prepare(const att_layout_source *source, att_config *config)
{
    enum { HEAD = 64 };
    static const char qkv[] = "transformer.layers.0.0.fn.to_qkv.weight";
    const int64_t width = att_checkpoint_side(source->file, 1, qkv), inner = att_checkpoint_side(source->file, 0, qkv);
    if (inner != 3 * width)
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: the heads of its attention have %lld channels together, its tokens %lld; attscope has "
                        "ViTs in which the two are equal (heads times dim_head is dim)",
                        source->path, (long long)(inner / 3), (long long)width);
    if (width % HEAD == 0)
        att_options_set(&config->options, "num_heads", (double)(width / HEAD));
    return ATT_OK;
}

const att_layout att_layout_lucidrains_vit = {
    .name = "lucidrains' ViT",
    .prefixes = "",
    .signature = "to_patch_embedding.1.weight transformer.layers.0.0.fn.to_qkv.weight pos_embedding cls_token",
    .variants = "vit_base_patch16_224 vit_base_patch32_224 vit_large_patch16_224 vit_large_patch32_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "norm_eps=1e-5 act_layer=gelu global_pool=token crop_pct=1 mean=0.5,0.5,0.5 std=0.5,0.5,0.5 ",
    .prepare = prepare,
};
