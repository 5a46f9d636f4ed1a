/* ViT and SimpleViT of lucidrains/vit-pytorch. Since the end of 2022 the patches have norms before and after the linear
 * layer that embeds them; then the blocks lost the scope "fn", and the last norm left the head. */
#include "base/core/error.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"

#define NEW "to_patch_embedding.2.weight"
#define OLD "!" NEW
#define ATTENTION "transformer.layers.#.0."
#define MLP "transformer.layers.#.1."
#define FIRST "transformer.layers.0.0.to_qkv.weight"

static const att_layout_row rows[] = {
    {"cls_token", .to = "cls_token"},
    {"pos_embedding", .to = "pos_embed"},
    {"to_patch_embedding.1.weight", .to = "patch_embed.proj.weight", .patches = true, .when = OLD},
    {"to_patch_embedding.1.bias", .to = "patch_embed.proj.bias", .when = OLD},
    {"to_patch_embedding.1.@", .to = "patch_embed.pixel_norm.@", .patches = true, .when = NEW},
    {"to_patch_embedding.2.weight", .to = "patch_embed.proj.weight", .patches = true},
    {"to_patch_embedding.2.bias", .to = "patch_embed.proj.bias"},
    {"to_patch_embedding.3.@", .to = "patch_embed.norm.@"},
    {ATTENTION "norm.@", .to = "blocks.#.norm1.@"},
    {ATTENTION "to_qkv.weight", .also = ATTENTION "fn.to_qkv.weight", .to = "blocks.#.attn.qkv.weight"},
    {ATTENTION "to_out.0.@", .also = ATTENTION "fn.to_out.0.@", .to = "blocks.#.attn.proj.@"},
    {MLP "net.0.@", .also = MLP "norm.@", .to = "blocks.#.norm2.@"},
    {MLP "net.1.@", .also = MLP "fn.net.0.@", .to = "blocks.#.mlp.fc1.@"},
    {MLP "net.4.@", .also = MLP "fn.net.3.@", .to = "blocks.#.mlp.fc2.@"},
    {"transformer.norm.@", .also = "mlp_head.0.@", .to = "norm.@"},
    {"mlp_head.@", .also = "mlp_head.1.@", .to = "head.@"},
};

/* Refuses heads that have not as many channels together as a token. name: of the first layer of queries, keys and
 * values.
 */
static att_status check_width(const att_layout_source *source, const char *name)
{
    const int64_t width = att_checkpoint_side(source->file, 1, "%s", name),
                  inner = att_checkpoint_side(source->file, 0, "%s", name);
    if (inner == 3 * width)
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: the heads of its attention have %lld channels together, its tokens %lld; attscope has "
                    "ViTs in which the two are equal (heads times dim_head is dim)",
                    source->path, (long long)(inner / 3), (long long)width);
}

static att_status prepare(const att_layout_source *source, att_config *config)
{
    static const char old[] = "transformer.layers.0.0.fn.to_qkv.weight";
    ATT_TRY(check_width(source, att_checkpoint_has(source->file, FIRST) ? FIRST : old));
    /* Since 2025 networks with pool="mean" have a class token of no rows. */
    if (att_tensors_at(source->file, att_tensors_find(source->file, "cls_token")).count == 0) {
        att_options_set(&config->options, "class_token", 0);
        att_options_set_text(&config->options, "global_pool", "avg");
    }
    return ATT_OK;
}

/* A head has 64 channels unless the program gave dim_head, which nothing in the file shows. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    enum { HEAD = 64 };
    const int64_t width = att_checkpoint_side(source->file, 1, "blocks.0.attn.qkv.weight");
    if (width % HEAD == 0)
        att_options_set(&config->options, "num_heads", (double)(width / HEAD));
    return ATT_OK;
}

const att_layout att_layout_lucidrains_vit = {
    .name = "lucidrains' ViT",
    .prefixes = "",
    .signature = "to_patch_embedding.1.weight " FIRST " pos_embedding cls_token",
    .variants = "vit_base_patch16_224 vit_base_patch32_224 vit_large_patch16_224 vit_large_patch32_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "norm_eps=1e-5 act_layer=gelu global_pool=token crop_pct=1 mean=0.5,0.5,0.5 std=0.5,0.5,0.5 ",
    .assumed = "global_pool num_heads",
    .prepare = prepare,
    .complete = complete,
};

/* --- SimpleViT ---------------------------------------------------------------------------------------------------- */

static const att_layout_row simple_rows[] = {
    {"to_patch_embedding.1.@", .to = "patch_embed.pixel_norm.@", .patches = true},
    {"to_patch_embedding.2.weight", .to = "patch_embed.proj.weight", .patches = true},
    {"to_patch_embedding.2.weight", .to = "pos_embed", .sines = true},
    {"to_patch_embedding.2.bias", .to = "patch_embed.proj.bias"},
    {"to_patch_embedding.3.@", .to = "patch_embed.norm.@"},
    {ATTENTION "norm.@", .to = "blocks.#.norm1.@"},
    {ATTENTION "to_qkv.weight", .to = "blocks.#.attn.qkv.weight"},
    {ATTENTION "to_out.weight", .to = "blocks.#.attn.proj.weight"},
    {ATTENTION "to_out.weight", .to = "blocks.#.attn.proj.bias", .zeros = true},
    {MLP "net.0.@", .to = "blocks.#.norm2.@"},
    {MLP "net.1.@", .to = "blocks.#.mlp.fc1.@"},
    {MLP "net.3.@", .to = "blocks.#.mlp.fc2.@"},
    {"transformer.norm.@", .to = "norm.@"},
    {"linear_head.@", .to = "head.@"},
};

/* The file shows neither the positions, which are computed, nor the size of the images. */
static att_status prepare_simple(const att_layout_source *source, att_config *config)
{
    ATT_TRY(check_width(source, FIRST));
    att_options_set(&config->options, "class_token", 0);
    return ATT_OK;
}

const att_layout att_layout_lucidrains_simple_vit = {
    .name = "lucidrains' SimpleViT",
    .prefixes = "",
    .signature = "to_patch_embedding.2.weight transformer.norm.weight linear_head.weight " FIRST " !pos_embedding",
    .variants = "vit_base_patch16_224 vit_base_patch32_224 vit_large_patch16_224 vit_large_patch32_224",
    ATT_LAYOUT_ROWS(simple_rows),
    .defaults =
        "img_size=224 norm_eps=1e-5 act_layer=gelu global_pool=avg fc_norm=false pos_embed_resize=sines crop_pct=1 "
        "mean=0.5,0.5,0.5 std=0.5,0.5,0.5 ",
    .assumed = "img_size num_heads",
    .prepare = prepare_simple,
    .complete = complete,
};
