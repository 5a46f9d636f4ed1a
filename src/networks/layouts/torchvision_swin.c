/* torchvision's Swin and Swin V2. */
#include <math.h>
#include <stdint.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/layout.h"
#include "networks/models/placement.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* Whether windows fill the grids of all stages. Otherwise torchvision adds tokens before it shifts the windows,
 * attscope after that, as timm, and shrinks windows that are larger than the grid. */
static bool fills(const att_option_values *options, int axis, int window)
{
    int depths[ATT_STAGES];
    const int stages = att_text_to_list(att_options_text(options, "depths"), 1, 1 << 16, depths, ATT_STAGES);
    const att_option_value *image = att_options_find(options, "img_size"),
                           *patch = att_options_find(options, "patch_size");
    int grid = image && patch ? (int)(image->numbers[axis] / patch->numbers[axis]) : 0;
    for (int s = 0; s < stages; s++, grid = (grid + 1) / 2)
        if (grid > window ? grid % window != 0 : grid != window)
            return false;
    return stages > 0;
}

/* Sets the side of all windows. */
static att_status read_window(const att_layout_target *target, int *side)
{
    const att_option_values *options = &target->identity->options;
    const char *text = att_options_text(options, "window_size");
    if (att_text_to_list(text, 2, 1 << 12, side, 1) == 1 && fills(options, 0, *side) && fills(options, 1, *side))
        return ATT_OK;
    return att_fail(
        target->context, ATT_ERR_UNSUPPORTED,
        "its windows (window_size %s) do not fill the grids of its stages; torchvision pads them in its own "
        "way",
        text);
}

/* Returns the data of the tensor, which the caller fills; NULL, with a message: there is no memory. */
static void *make_table(const att_layout_target *target, att_arena *arena, att_safetensors_dtype dtype, att_shape shape,
                        att_safetensors_tensor *tensor)
{
    const size_t bytes = (size_t)att_shape_count(shape) * att_safetensors_dtype_size(dtype);
    void *data = att_arena_allocate(arena, bytes);
    if (!data)
        att_fail_memory(target->context, bytes, tensor->name);
    tensor->dtype = dtype;
    tensor->shape = shape;
    tensor->data = data;
    return data;
}

/* For each query and key of a window, the number of their shift (dy, dx): (dy + side - 1) (2 side - 1) + dx + side - 1.
 */
static att_status number_shifts(const att_layout_target *target, att_arena *arena, att_safetensors_tensor *tensor)
{
    int side;
    ATT_TRY(read_window(target, &side));
    const int tokens = side * side;
    int64_t *numbers = make_table(target, arena, ATT_SAFETENSORS_I64, att_shape_of((int64_t)tokens * tokens), tensor);
    if (!numbers)
        return ATT_ERR_MEMORY;
    for (int q = 0; q < tokens; q++)
        for (int k = 0; k < tokens; k++)
            numbers[(int64_t)q * tokens + k] =
                (q / side - k / side + side - 1) * (2 * side - 1) + q % side - k % side + side - 1;
    return ATT_OK;
}

/* sign(s) log2(1 + |s|) / 3 of the shift s = 8 d / (side - 1) for each shift d. */
static att_status scale_shifts(const att_layout_target *target, att_arena *arena, att_safetensors_tensor *tensor)
{
    int side;
    ATT_TRY(read_window(target, &side));
    const int shifts = 2 * side - 1; /* along an axis */
    float *scaled = make_table(target, arena, ATT_SAFETENSORS_F32, att_shape_of(1, shifts, shifts, 2), tensor);
    if (!scaled)
        return ATT_ERR_MEMORY;
    for (int i = 0; i < shifts * shifts; i++) {
        const int shift[2] = {i / shifts - (side - 1), i % shifts - (side - 1)};
        for (int axis = 0; axis < 2; axis++) {
            const double far = 8.0 * shift[axis] / (side - 1);
            scaled[2 * i + axis] = (float)copysign(log2(1 + fabs(far)) / 3, far);
        }
    }
    return ATT_OK;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* A stage, whose blocks are features.<features>. */
#define STAGE(features, stage)                                                                                        \
    {"features." features ".#.norm1.@", .to = "layers." stage ".blocks.#.norm1.@"},                                   \
        {"features." features ".#.attn.qkv.weight", .to = "layers." stage ".blocks.#.attn.qkv.weight"},               \
        {"features." features ".#.attn.proj.@", .to = "layers." stage ".blocks.#.attn.proj.@"},                       \
        {"features." features ".#.norm2.@", .to = "layers." stage ".blocks.#.norm2.@"},                               \
        {"features." features ".#.mlp.0.@", .to = "layers." stage ".blocks.#.mlp.fc1.@"},                             \
        {"features." features ".#.mlp.3.@", .to = "layers." stage ".blocks.#.mlp.fc2.@"},                             \
    {                                                                                                                 \
        "features." features ".#.attn.relative_position_index", .to = NULL, .computed = true, .values = number_shifts \
    }

/* Merges patches before a stage. */
#define MERGE(features, stage)                                                              \
    {"features." features ".reduction.@", .to = "layers." stage ".downsample.reduction.@"}, \
    {                                                                                       \
        "features." features ".norm.@", .to = "layers." stage ".downsample.norm.@"          \
    }

#define STAGE_V1(features, stage)                                                                   \
    STAGE(features, stage),                                                                         \
        {"features." features ".#.attn.qkv.bias", .to = "layers." stage ".blocks.#.attn.qkv.bias"}, \
    {                                                                                               \
        "features." features ".#.attn.relative_position_bias_table",                                \
            .to = "layers." stage ".blocks.#.attn.relative_position_bias_table"                     \
    }

/* The bias of keys is not used. */
#define STAGE_V2(features, stage)                                                                                      \
    STAGE(features, stage),                                                                                            \
        {"features." features ".#.attn.qkv.bias", .to = "layers." stage ".blocks.#.attn.q_bias", .end = 1, .of = 3},   \
        {"features." features ".#.attn.qkv.bias", .to = "layers." stage ".blocks.#.attn.v_bias", .first = 2, .of = 3}, \
        {"features." features ".#.attn.logit_scale", .to = "layers." stage ".blocks.#.attn.logit_scale"},              \
        {"features." features ".#.attn.cpb_mlp.#.@", .to = "layers." stage ".blocks.#.attn.cpb_mlp.#.@"},              \
    {                                                                                                                  \
        "features." features ".#.attn.relative_coords_table", .to = NULL, .computed = true, .values = scale_shifts     \
    }

#define ENDS                                                                                                         \
    {"features.0.0.@", .to = "patch_embed.proj.@"}, {"features.0.2.@", .to = "patch_embed.norm.@"}, MERGE("2", "1"), \
        MERGE("4", "2"), MERGE("6", "3"), {"norm.@", .to = "norm.@"},                                                \
    {                                                                                                                \
        "head.@", .to = "head.fc.@"                                                                                  \
    }

static const att_layout_row rows[] = {ENDS, STAGE_V1("1", "0"), STAGE_V1("3", "1"), STAGE_V1("5", "2"),
                                      STAGE_V1("7", "3")};
static const att_layout_row rows_v2[] = {ENDS, STAGE_V2("1", "0"), STAGE_V2("3", "1"), STAGE_V2("5", "2"),
                                         STAGE_V2("7", "3")};

#define REQUIRED "patch_embed.norm.bias layers.0.blocks.0.mlp.fc1.bias norm.bias head.fc.weight in_chans=3 "
static const att_layout_form forms[] = {
    {"SwinTransformer", NULL, "", REQUIRED "layers.0.blocks.0.attn.qkv.bias"},
    {.class = NULL},
};
static const att_layout_form forms_v2[] = {
    {"SwinTransformer, V2", NULL, "", REQUIRED "layers.0.blocks.0.attn.q_bias"},
    {.class = NULL},
};

#define IMAGES "crop_mode=center interpolation=bicubic mean=0.485,0.456,0.406 std=0.229,0.224,0.225 "

const att_layout att_layout_torchvision_swin = {
    .name = "torchvision's Swin",
    .prefixes = "",
    .signature = "features.1.0.attn.relative_position_bias_table",
    .variants = "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 swin_base_patch4_window7_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "img_size=224 window_size=7 crop_pct=0.965 " IMAGES,
    .forms = forms,
};

const att_layout att_layout_torchvision_swin_v2 = {
    .name = "torchvision's Swin V2",
    .prefixes = "",
    .signature = "features.1.0.attn.logit_scale",
    .variants = "swinv2_tiny_window8_256 swinv2_small_window8_256 swinv2_base_window8_256",
    ATT_LAYOUT_ROWS(rows_v2),
    .defaults = "img_size=256 window_size=8 pretrained_window_sizes=0 crop_pct=0.984 " IMAGES,
    .forms = forms_v2,
};
