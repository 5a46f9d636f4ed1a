/* What tensors say of a plain ViT, by timm's names. */
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>

#include "core/error.h"
#include "core/text.h"
#include "models/checkpoint.h"
#include "models/signs.h"
#include "models/vit.h"

static const char *const outer_names[] = {
    "cls_token",   "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias",
    "norm.weight", "norm.bias", "fc_norm.weight",          "fc_norm.bias",
    "head.weight", "head.bias"};
static const char *const block_names[] = {"norm1.weight",     "norm1.bias",     "attn.qkv.weight", "attn.qkv.bias",
                                          "attn.proj.weight", "attn.proj.bias", "ls1.gamma",       "norm2.weight",
                                          "norm2.bias",       "mlp.fc1.weight", "mlp.fc1.bias",    "mlp.fc2.weight",
                                          "mlp.fc2.bias",     "ls2.gamma"};

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

static bool is_one_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The module whose parameter "mlp.<scope>.<parameter>" is; NULL for others. */
static const att_module *module_of(const char *name)
{
    for (int i = 0; i < att_module_count(); i++) {
        const att_module *module = att_module_at(i);
        char own[128];
        if (module->parameter && module->place == ATT_ON_TOKENS) {
            snprintf(own, sizeof own, "mlp.%s.%s", module->scope, module->parameter);
            if (att_text_matches(own, name))
                return module;
        }
    }
    return NULL;
}

/* "blocks.<number>.<rest>": the number, up to 9999 without leading zeros, and the rest; -1 for other names. */
static int block_of(const char *name, const char **rest)
{
    if (strncmp(name, "blocks.", 7) != 0)
        return -1;
    const char *digits = name + 7;
    size_t count = strspn(digits, "0123456789");
    if (count < 1 || count > 4 || digits[count] != '.' || (digits[0] == '0' && count > 1))
        return -1;
    int number = 0;
    for (size_t i = 0; i < count; i++)
        number = 10 * number + (digits[i] - '0');
    *rest = digits + count + 1;
    return number;
}

/* Reads every name: depth and module, or the refusal of a name that is not a plain ViT's, the one that says most. */
static att_status read_names(att_context *context, const att_tensors *file, att_model_options *found)
{
    const char *alien = NULL;
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *name = att_tensors_at(file, i).name, *rest = NULL;
        if (att_checkpoint_owns(file, name) || is_one_of(name, outer_names, COUNT(outer_names)))
            continue;
        int block = block_of(name, &rest);
        const att_module *module = block >= 0 ? module_of(rest) : NULL;
        if (block >= 0 && (module || is_one_of(rest, block_names, COUNT(block_names)))) {
            found->depth = block + 1 > found->depth ? block + 1 : found->depth;
            if (module)
                snprintf(found->broadcast, sizeof found->broadcast, "%s", module->name);
        } else if (!alien || att_sign_rank(name) < att_sign_rank(alien)) {
            alien = name;
        }
    }
    return alien ? att_sign_refuse(context, file, alien, "plain ViT, DeiT or ResNet") : ATT_OK;
}

static bool has(const att_tensors *file, const char *name)
{
    return att_tensors_find(file, name) >= 0;
}

/* The dims of a tensor of this rank, each in 1..2^24; NULL where it is otherwise. */
static const int64_t *dims_of(const att_tensors *file, const char *name, int rank, att_shape *shape)
{
    int index = att_tensors_find(file, name);
    if (index < 0)
        return NULL;
    *shape = att_tensors_at(file, index).shape;
    if (shape->rank != rank)
        return NULL;
    for (int i = 0; i < rank; i++)
        if (shape->dims[i] < 1 || shape->dims[i] > 1 << 24)
            return NULL;
    return shape->dims;
}

static att_status read_patches(att_context *context, const att_tensors *file, att_model_options *found)
{
    att_shape shape;
    const int64_t *dims = dims_of(file, "patch_embed.proj.weight", 4, &shape);
    if (!dims)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s: there is no patch embedding (\"patch_embed.proj.weight\" [width, channels, P, P])",
                        att_tensors_path(file));
    if (dims[2] != dims[3])
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: patches of %d x %d pixels are not square",
                        att_tensors_path(file), (int)dims[2], (int)dims[3]);
    found->embed_dim = (int)dims[0];
    found->in_chans = (int)dims[1];
    found->patch_size = (int)dims[2];
    return ATT_OK;
}

/* The number whose square `count` is, 0 where there is none. */
static int root_of(int64_t count)
{
    int root = 0;
    while ((int64_t)root * root < count)
        root++;
    return (int64_t)root * root == count ? root : 0;
}

static att_status read_grid(att_context *context, const att_tensors *file, att_model_options *found)
{
    att_shape shape;
    const int64_t *dims = dims_of(file, "pos_embed", 3, &shape);
    if (!dims)
        return ATT_OK;
    int side = root_of(dims[1]);
    found->embed_class = 0;
    if (!side && found->class_token) {
        side = root_of(dims[1] - 1);
        found->embed_class = 1;
    }
    if (!side)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: the %d positions of \"pos_embed\" are no square grid",
                        att_tensors_path(file), (int)dims[1]);
    if (side <= INT32_MAX / found->patch_size)
        found->img_size = side * found->patch_size;
    return ATT_OK;
}

static void read_switches(const att_tensors *file, att_model_options *found)
{
    /* LayerScale is seen, what it started at is not: this is DeiT III's order of magnitude. */
    static const double unknown_start = 1e-5;
    found->class_token = has(file, "cls_token");
    found->qkv_bias = has(file, "blocks.0.attn.qkv.bias");
    found->init_values = has(file, "blocks.0.ls1.gamma") ? unknown_start : 0;
    found->head = has(file, "head.weight") || has(file, "head.bias");
    if (has(file, "norm.weight") || has(file, "fc_norm.weight"))
        found->fc_norm = has(file, "fc_norm.weight");
    else if (!found->head) /* a backbone may end in its last block; with a head the norm is missing */
        found->final_norm = has(file, "norm.bias") || has(file, "fc_norm.bias");
    if (!found->class_token)
        snprintf(found->global_pool, sizeof found->global_pool, "avg");
}

static void read_widths(const att_tensors *file, att_model_options *found)
{
    att_shape shape;
    const int64_t *dims = dims_of(file, "head.weight", 2, &shape);
    if (dims)
        found->num_classes = (int)dims[0];
    dims = dims_of(file, "blocks.0.mlp.fc1.weight", 2, &shape);
    if (!dims)
        return;
    found->mlp_ratio = (double)dims[0] / found->embed_dim;
    /* The quotient may have been rounded down: then the product would be, too. */
    if (att_vit_hidden(found) < dims[0])
        found->mlp_ratio = ((double)dims[0] + 0.5) / found->embed_dim;
}

/* The gated MLP of DINOv2's largest network has timm's names for others, but its second layer reads half of what the
 * first one gives. */
static att_status check_gate(att_context *context, const att_tensors *file)
{
    att_shape first, second;
    const int64_t *in = dims_of(file, "blocks.0.mlp.fc1.weight", 2, &first);
    const int64_t *out = dims_of(file, "blocks.0.mlp.fc2.weight", 2, &second);
    if (!in || !out || 2 * out[1] != in[0])
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "%s: tensor \"blocks.0.mlp.fc2.weight\" reads %d of the %d channels that \"blocks.0.mlp.fc1.weight\" "
        "gives: it is a sign of a gated MLP (SwiGLU), which no model here has",
        att_tensors_path(file), (int)out[1], (int)in[0]);
}

att_status att_vit_recognise(att_context *context, const att_tensors *file, att_model_options *found)
{
    ATT_TRY(read_names(context, file, found));
    ATT_TRY(read_patches(context, file, found));
    ATT_TRY(check_gate(context, file));
    read_switches(file, found);
    read_widths(file, found);
    return read_grid(context, file, found);
}

bool att_vit_regrids(const att_model_options *options, const char *name, att_shape file, att_shape own,
                     att_regrid *grid)
{
    if (strcmp(name, "pos_embed") != 0 || file.rank != 3 || file.dims[0] != 1 || file.dims[1] > 1 << 24 ||
        file.dims[2] != own.dims[2])
        return false;
    int side = options->img_size / options->patch_size;
    int prefix = (int)(own.dims[1] - (int64_t)side * side);
    *grid = (att_regrid){.prefix = prefix, .from = root_of(file.dims[1] - prefix), .to = side, .width = own.dims[2]};
    return grid->from > 0 && grid->from != grid->to;
}

bool att_vit_is_added(const char *name)
{
    const char *rest;
    return block_of(name, &rest) >= 0 && module_of(rest);
}
