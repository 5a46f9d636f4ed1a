/* transformers' Swin and Swin V2. */
#include "networks/layouts/transformers_swin.h"

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/placement.h"
#include "networks/models/relative_bias.h"

static const att_layout_row rows[] = {ATT_SWIN_ROWS};

static const att_layout_row rows_v2[] = {
    ATT_SWIN_COMMON_ROWS,
    {ATT_SWIN_SELF "query.bias", .to = "layers.#.blocks.#.attn.q_bias"},
    {ATT_SWIN_SELF "value.bias", .to = "layers.#.blocks.#.attn.v_bias"},
    {ATT_SWIN_SELF "logit_scale", .to = "layers.#.blocks.#.attn.logit_scale"},
    {ATT_SWIN_SELF "continuous_position_bias_mlp.#.@", .to = "layers.#.blocks.#.attn.cpb_mlp.#.@"},
    {ATT_SWIN_SELF "relative_coords_table", .to = NULL, .computed = true},
};

const att_layout_setting att_layout_swin_settings[] = {
    {"image_size", .option = "img_size"},
    {"num_heads", .option = "stage_heads", .list = true},
    {"window_size", .option = "window_size"},
    {"embed_dim", .option = "embed_dim", .shown = true},
    {"depths", .option = "depths", .shown = true, .list = true},
    {"patch_size", .option = "patch_size", .shown = true},
    {"num_channels", .option = "in_chans", .shown = true},
    {"mlp_ratio", .option = "mlp_ratio", .shown = true},
    {"qkv_bias", .option = "qkv_bias", .shown = true},
    {.key = NULL},
};

static int count_stages(const att_tensors *file)
{
    int stages = 0;
    while (stages < ATT_STAGES && att_checkpoint_has(file, "layers.%d.blocks.0.norm1.weight", stages))
        stages++;
    return stages;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

/* Whether both programs compute the same in a stage. Where windows do not fill a grid, transformers adds tokens before
 * it shifts the windows, attscope after that, as timm. It shifts them along both sides or none, attscope along those
 * longer than the window. Swin V1 fails on smaller grids; V2 takes an odd grid for the smaller of its halves.
 * halved: height of the first grid, halved without rounding up; V1: the window */
static bool agree(const int grid[2], int window, int halved)
{
    if (grid[0] > window && grid[1] > window)
        return grid[0] % window == 0 && grid[1] % window == 0;
    return grid[0] == grid[1] && grid[0] == halved;
}

static att_status check_stages(const att_layout_source *source, int grid[2], int window, bool is_v2)
{
    const int stages = count_stages(source->file), height = grid[0];
    for (int s = 0; s < stages; s++) {
        if (!agree(grid, window, is_v2 ? height >> s : window))
            return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                            "%s: stage %d has %d x %d tokens, which windows of %d x %d do not fill; transformers pads "
                            "and shifts such windows in its own way, which attscope lacks",
                            source->path, s + 1, grid[0], grid[1], window, window);
        for (int i = 0; i < 2; i++)
            grid[i] = (grid[i] + 1) / 2;
    }
    return ATT_OK;
}

/* Of Swin V1, whose tables depend on the window. */
static att_status check_table(const att_layout_source *source, int window)
{
    att_shape table;
    const int64_t *dims =
        att_checkpoint_dims(source->file, "layers.0.blocks.0.attn.relative_position_bias_table", 2, &table);
    if (!dims || dims[0] == att_relative_shifts((const int[]){window, window}))
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: window_size is %d, but the tables of %s belong to windows of %d tokens a side; correct the "
                    "setting",
                    source->path, window, att_tensors_path(source->file), att_relative_side(dims[0]));
}

/* Of Swin V2, whose windows transformers limits to the grid of config.json's image_size, whatever the image. height: of
 * the first grid. */
static att_status check_limits(const att_layout_source *source, int height, int64_t patch, int window)
{
    const json_t *value = json_object_get(source->config, "image_size");
    const att_fact given = att_fact_of_json(value);
    if (!value || given.kind != ATT_FACT_NUMBERS || given.count < 1)
        return ATT_OK;
    for (int s = 0; s < count_stages(source->file); s++) {
        const int own = height >> s, theirs = (int)(given.numbers[0] / (double)patch) >> s;
        if ((own < window ? own : window) != (theirs < window ? theirs : window))
            return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                            "%s: image_size is %g, but images are prepared with %d pixels; transformers limits the "
                            "windows of stage %d by the former, attscope by the latter",
                            source->path, given.numbers[0], (int)(height * patch), s + 1);
    }
    return ATT_OK;
}

static att_status check_windows(const att_layout_source *source, const att_config *config, bool is_v2)
{
    enum { DEFAULT_IMAGE = 224, DEFAULT_WINDOW = 7, MOST = 1 << 16 };
    const att_option_value *size = att_options_find(&config->options, "img_size");
    const json_t *given = json_object_get(source->config, "window_size");
    const json_int_t window = given ? json_integer_value(given) : DEFAULT_WINDOW;
    att_shape patch;
    int grid[2];
    if (window < 1 || window > MOST)
        return att_fail(source->context, ATT_ERR_FORMAT, "%s: window_size must be a whole number above 0",
                        source->path);
    ATT_TRY(check_table(source, (int)window));
    const int64_t *dims = att_checkpoint_dims(source->file, "patch_embed.proj.weight", 4, &patch);
    for (int i = 0; dims && i < 2; i++) {
        const int side = size ? (int)size->numbers[i] : DEFAULT_IMAGE;
        if (side % dims[2 + i])
            return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                            "%s: image_size %d is no multiple of the patches' %d pixels; transformers pads such "
                            "images, attscope does not",
                            source->path, side, (int)dims[2 + i]);
        grid[i] = side / (int)dims[2 + i];
    }
    if (dims && is_v2)
        ATT_TRY(check_limits(source, grid[0], dims[2], (int)window));
    return dims ? check_stages(source, grid, (int)window, is_v2) : ATT_OK;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

att_status att_layout_check_swin(const att_layout_source *source)
{
    ATT_TRY(att_layout_require_text(source, "hidden_act", "gelu"));
    ATT_TRY(att_layout_require_number(source, "layer_norm_eps", 1e-5));
    return att_layout_require_number(source, "use_absolute_embeddings", 0);
}

static att_status complete_any(const att_layout_source *source, const att_config *config, bool is_v2)
{
    ATT_TRY(att_layout_check_swin(source));
    return check_windows(source, config, is_v2);
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    return complete_any(source, config, false);
}

/* The list may be longer than there are stages. */
static att_status complete_v2(const att_layout_source *source, att_config *config)
{
    const json_t *list = json_object_get(source->config, "pretrained_window_sizes");
    const int stages = count_stages(source->file);
    int sides[ATT_STAGES];
    char text[ATT_OPTION_TEXT_BYTES];
    ATT_TRY(complete_any(source, config, true));
    if (!list)
        return ATT_OK;
    for (int s = 0; s < stages; s++) {
        const json_t *side = json_array_get(list, (size_t)s);
        if (!json_is_integer(side) || json_integer_value(side) < 0 || json_integer_value(side) > 1 << 16)
            return att_fail(source->context, ATT_ERR_FORMAT,
                            "%s: pretrained_window_sizes must be a list of whole numbers, one for each of %d stages",
                            source->path, stages);
        sides[s] = (int)json_integer_value(side);
    }
    att_format_list(sides, stages, text, sizeof text);
    att_options_set_text(&config->options, "pretrained_window_sizes", text);
    return ATT_OK;
}

/* One number is that of all stages. */
static att_status describe_v2(const att_layout_target *target, att_json_writer *json)
{
    const att_option_values *options = &target->identity->options;
    int sides[ATT_STAGES], depths[ATT_STAGES];
    const int stages = att_text_to_list(att_options_text(options, "depths"), 1, 1 << 16, depths, ATT_STAGES);
    const int given =
        att_text_to_list(att_options_text(options, "pretrained_window_sizes"), 0, 1 << 16, sides, ATT_STAGES);
    for (int s = given; s < stages; s++)
        sides[s] = given > 0 ? sides[given - 1] : 0;
    att_layout_put_list(json, "pretrained_window_sizes", sides, stages);
    return ATT_OK;
}

#define REQUIRED "patch_embed.norm.bias layers.0.blocks.0.attn.proj.bias layers.0.blocks.0.mlp.fc1.bias norm.bias "
static const att_layout_form forms[] = {
    {"SwinForImageClassification", "swin", "swin.", REQUIRED "head.fc.weight"},
    {"SwinModel", "swin", "", REQUIRED "!head.fc.weight"},
    {.class = NULL},
};
static const att_layout_form forms_v2[] = {
    {"Swinv2ForImageClassification", "swinv2", "swinv2.", REQUIRED "head.fc.weight"},
    {"Swinv2Model", "swinv2", "", REQUIRED "!head.fc.weight"},
    {.class = NULL},
};

const att_layout att_layout_transformers_swin = {
    .name = "transformers' Swin",
    .types = "swin",
    .prefixes = "swin.",
    .signature = "encoder.layers.0.blocks.0.attention.self.relative_position_bias_table",
    .variants = ATT_SWIN_NAMES,
    ATT_LAYOUT_ROWS(rows),
    .settings = att_layout_swin_settings,
    .defaults = ATT_SWIN_DEFAULTS,
    .complete = complete,
    .forms = forms,
};

const att_layout att_layout_transformers_swin_v2 = {
    .name = "transformers' Swin V2",
    .types = "swinv2",
    .prefixes = "swinv2.",
    .signature = "encoder.layers.0.blocks.0.attention.self.logit_scale",
    .variants =
        "swinv2_tiny_window8_256 swinv2_small_window8_256 swinv2_base_window8_256 "
        "swinv2_large_window12to16_192to256",
    ATT_LAYOUT_ROWS(rows_v2),
    .settings = att_layout_swin_settings,
    .defaults = ATT_SWIN_DEFAULTS,
    .complete = complete_v2,
    .forms = forms_v2,
    .describe = describe_v2,
};
