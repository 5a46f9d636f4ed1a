/* Microsoft's own files of Swin and Swin V2. */
#include <math.h>
#include <stdio.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"
#include "networks/models/patches.h"
#include "networks/models/placement.h"
#include "networks/models/relative_bias.h"

/* Here patches are merged at the end of a stage, in timm at the beginning of the next. */
#define COMMON_ROWS                                                                       \
    {"layers.#.downsample.reduction.@", .to = "layers.+.downsample.reduction.@"},         \
        {"layers.#.downsample.norm.@", .to = "layers.+.downsample.norm.@"},               \
        {"layers.#.blocks.#.attn.relative_position_index", .to = NULL, .computed = true}, \
        {"layers.#.blocks.#.attn_mask", .to = NULL, .computed = true},                    \
    {                                                                                     \
        "head.@", .to = "head.fc.@"                                                       \
    }

static const att_layout_row rows[] = {COMMON_ROWS};
static const att_layout_row rows_v2[] = {
    COMMON_ROWS,
    {"layers.#.blocks.#.attn.relative_coords_table", .to = NULL, .computed = true},
};

/* --- Swin V2 ------------------------------------------------------------------------------------------------------ */

#define TABLE "layers.%d.blocks.0.attn.relative_coords_table"

/* What the table of a stage's shifts shows. The largest is log2(1 + 8 (window - 1) / (trained - 1)) / 3, where trained
 * is the window of the pretraining. */
typedef struct windows {
    int window, trained;
} windows;

static att_status read_table(const att_layout_source *source, int stage, windows *read)
{
    char name[96];
    float largest = 0;
    snprintf(name, sizeof name, TABLE, stage);
    const att_tensors *file = source->file;
    const att_tensors_item *item = &file->items[att_tensors_find(file, name)];
    const att_shape *shape = &item->info.shape;
    const int64_t count = item->info.count, side = shape->rank == 4 ? shape->dims[1] : 0;
    *read = (windows){(int)(side + 1) / 2, 0};
    if (count != 2 * side * side || side < 3 || side % 2 == 0 || side > 1 << 10)
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: \"%s\" is no table of the shifts in a square window of two and more patches", source->path,
                        name);
    if (file->whole > 0)
        return ATT_OK;
    float *values = att_allocate_array(source->context, (size_t)count, sizeof *values);
    if (!values)
        return att_fail_memory(source->context, (size_t)count * sizeof *values, name);
    att_status status = att_tensors_read_item_f32(file, item, values);
    for (int64_t i = 0; i < count && status == ATT_OK; i++)
        largest = fmaxf(largest, values[i]);
    att_free(source->context, values);
    const double far = exp2(3.0 * (double)largest) - 1, trained = 1 + 8.0 * (read->window - 1) / far;
    if (status == ATT_OK && !(far > 0 && trained < 1 << 10 && fabs(trained - round(trained)) < 0.01))
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: the values of \"%s\" are not those of shifts in a window of %d x %d patches", source->path,
                        name, read->window, read->window);
    read->trained = (int)lround(trained);
    return status;
}

/* Sets the size of images that follows from the number of windows, for which shifted windows have a mask. */
static void read_images(const att_layout_source *source, int window, att_config *config)
{
    att_shape mask, patch;
    const int64_t *dims = att_checkpoint_dims(source->file, "layers.0.blocks.1.attn_mask", 3, &mask),
                  *sides = att_checkpoint_dims(source->file, "patch_embed.proj.weight", 4, &patch);
    const int side = dims ? att_patches_side(dims[0]) : 0;
    if (side > 0 && sides && sides[2] == sides[3] && side * window * sides[2] <= 1 << 16)
        att_options_set(&config->options, "img_size", (double)(side * window * sides[2]));
}

static att_status prepare_v2(const att_layout_source *source, att_config *config)
{
    int sides[ATT_STAGES], trained[ATT_STAGES], stages = 0;
    char text[ATT_OPTION_TEXT_BYTES];
    bool pretrained = false;
    for (; stages < ATT_STAGES && att_checkpoint_has(source->file, TABLE, stages); stages++) {
        windows read;
        ATT_TRY(read_table(source, stages, &read));
        sides[stages] = read.window;
        trained[stages] = read.trained;
        pretrained = pretrained || read.trained != read.window;
    }
    att_format_list(sides, 1, text, sizeof text); /* the last stage's is smaller, because the stage is */
    att_options_set_text(&config->options, "window_size", text);
    att_format_list(trained, stages, text, sizeof text);
    att_options_set_text(&config->options, "pretrained_window_sizes", pretrained ? text : "0");
    read_images(source, sides[0], config);
    return ATT_OK;
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

const att_layout att_layout_authors_swin = {
    .name = "Microsoft's Swin",
    .prefixes = "",
    .signature = "layers.0.downsample.reduction.weight layers.0.blocks.0.attn.relative_position_bias_table",
    .variants =
        "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 swin_base_patch4_window7_224 "
        "swin_base_patch4_window12_384 swin_large_patch4_window7_224 swin_large_patch4_window12_384",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};

const att_layout att_layout_authors_swin_v2 = {
    .name = "Microsoft's Swin V2",
    .prefixes = "",
    .signature = "layers.0.downsample.reduction.weight layers.0.blocks.0.attn.relative_coords_table",
    .variants =
        "swinv2_tiny_window8_256 swinv2_tiny_window16_256 swinv2_small_window8_256 swinv2_small_window16_256 "
        "swinv2_base_window8_256 swinv2_base_window16_256 swinv2_base_window12_192 "
        "swinv2_base_window12to24_192to384 swinv2_large_window12_192 swinv2_large_window12to16_192to256 "
        "swinv2_large_window12to24_192to384",
    ATT_LAYOUT_ROWS(rows_v2),
    .defaults = "",
    .prepare = prepare_v2,
};
