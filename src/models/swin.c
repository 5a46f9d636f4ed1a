/* Swin Transformer (Liu et al., ICCV 2021) and the networks of the search S3 (Chen et al., NeurIPS 2021) as in timm:
 * patch embedding with a norm; stages of pre-norm blocks with attention in shifted windows and relative position
 * biases, the next stage at half the resolution with twice the channels; a last norm, the mean over tokens. Dimensions
 * and preprocessing are those of timm 1.0. */
#include "models/swin.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "models/checkpoint.h"
#include "models/patches.h"

/* --- variants ---------------------------------------------------------------------------------------------------- */

static const char SWIN[] = "Swin Transformer (Liu et al., ICCV 2021)";
static const char S3[] = "Swin Transformer of the search S3 (Chen et al., NeurIPS 2021)";
static const char TINY[] = "2,2,6,2", SMALL[] = "2,2,18,2", BASE[] = "2,2,30,2";

static const struct swin_variant {
    const char *name, *summary, *depths, *stage_heads, *window_size;
    int embed_dim, img_size;
    double crop_pct;
} variants[] = {
    {"swin_tiny_patch4_window7_224", SWIN, TINY, "3,6,12,24", "7", 96, 224, 0.9},
    {"swin_small_patch4_window7_224", SWIN, SMALL, "3,6,12,24", "7", 96, 224, 0.9},
    {"swin_base_patch4_window7_224", SWIN, SMALL, "4,8,16,32", "7", 128, 224, 0.9},
    {"swin_base_patch4_window12_384", SWIN, SMALL, "4,8,16,32", "12", 128, 384, 1},
    {"swin_large_patch4_window7_224", SWIN, SMALL, "6,12,24,48", "7", 192, 224, 0.9},
    {"swin_large_patch4_window12_384", SWIN, SMALL, "6,12,24,48", "12", 192, 384, 1},
    {"swin_s3_tiny_224", S3, TINY, "3,6,12,24", "7,7,14,7", 96, 224, 0.9},
    {"swin_s3_small_224", S3, SMALL, "3,6,12,24", "14,14,14,7", 96, 224, 0.9},
    {"swin_s3_base_224", S3, BASE, "3,6,12,24", "7,7,14,7", 96, 224, 0.9},
};

static att_model_info swin_info(int index)
{
    const struct swin_variant *variant = &variants[index];
    return (att_model_info){
        .name = variant->name, .summary = variant->summary, .height = variant->img_size, .width = variant->img_size};
}

/* --- options ----------------------------------------------------------------------------------------------------- */

static const char *pool_names(int index)
{
    return index == 0 ? "avg" : NULL;
}

#define SWIN_AT(member) ATT_OPTION_AT(att_swin_options, member)
static const att_option rows[] = {
    ATT_SHARED_OPTIONS(att_swin_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, SWIN_AT(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     SWIN_AT(embed_dim)},
    {"depths", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "of a Swin: blocks of each stage, as 2,2,6,2",
     SWIN_AT(depths)},
    {"stage_heads", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a Swin: attention heads of a block in each stage, as 3,6,12,24", SWIN_AT(stage_heads)},
    {"window_size", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a Swin: tokens of a window: the side, height and width as in 8,16, or the side in each stage as in "
             "7,7,14,7",
     .differs_as = "the windows", SWIN_AT(window_size)},
    {"always_partition", .kind = ATT_OPTION_SWITCH,
     .help = "of a Swin: shift windows and keep their size where a stage's grid is no larger than they are",
     .not_compared = true, SWIN_AT(always_partition)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, SWIN_AT(mlp_ratio)},
    {"qkv_bias", .kind = ATT_OPTION_SWITCH, .help = "queries, keys and values with a bias", SWIN_AT(qkv_bias)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean over tokens", .choice = pool_names, SWIN_AT(global_pool)},
};
ATT_ASSERT_SETTINGS_FIT(att_swin_options);
const att_option_table att_swin_table = {rows, sizeof rows / sizeof *rows, sizeof(att_swin_options)};

static void swin_defaults(int index, const att_option_values *given, att_option_values *options,
                          att_preprocess *preprocess)
{
    (void)given;
    const struct swin_variant *variant = &variants[index];
    att_swin_options o;
    att_options_clear(&att_swin_table, &o);
    o.img_size[0] = o.img_size[1] = variant->img_size;
    o.in_chans = 3;
    o.num_classes = 1000;
    o.drop_rate = 0;
    o.drop_path_rate = 0.1; /* timm's default for this family */
    o.patch_size[0] = o.patch_size[1] = 4;
    o.embed_dim = variant->embed_dim;
    o.mlp_ratio = 4;
    o.qkv_bias = 1;
    o.always_partition = 0;
    snprintf(o.depths, sizeof o.depths, "%s", variant->depths);
    snprintf(o.stage_heads, sizeof o.stage_heads, "%s", variant->stage_heads);
    snprintf(o.window_size, sizeof o.window_size, "%s", variant->window_size);
    snprintf(o.global_pool, sizeof o.global_pool, "avg");
    snprintf(o.modules, sizeof o.modules, "none");
    att_options_write(&att_swin_table, &o, options);
    *preprocess = (att_preprocess){.height = variant->img_size,
                                   .width = variant->img_size,
                                   .in_chans = 3,
                                   .mean = {0.485, 0.456, 0.406},
                                   .std = {0.229, 0.224, 0.225},
                                   .crop_pct = variant->crop_pct,
                                   .crop_mode = "center",
                                   .interpolation = "bicubic"};
}

static const att_accepted_argument accepted_arguments[] = {
    {"proj_drop_rate", ATT_ANY_VALUE},
    {"attn_drop_rate", ATT_ANY_VALUE},
    {"weight_init", ATT_ANY_VALUE},
    {"strict_img_size", ATT_ANY_VALUE},
    {"dynamic_img_size", ATT_ANY_VALUE},
    {"norm_layer", "layernorm"},
    {NULL, NULL},
};

/* timm's num_heads has one number for each stage. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (strcmp(key, "num_heads") != 0 || fact->kind != ATT_FACT_NUMBERS || fact->count < 1 || fact->count > ATT_STAGES)
        return false;
    int heads[ATT_STAGES];
    char text[sizeof((att_swin_options *)0)->stage_heads];
    for (int i = 0; i < fact->count; i++) {
        if (!(fact->numbers[i] >= 1 && fact->numbers[i] <= 65536))
            return false;
        heads[i] = (int)fact->numbers[i];
    }
    att_swin_format_list(heads, fact->count, text, sizeof text);
    if (!att_options_find(options, "stage_heads"))
        att_options_set_text(options, "stage_heads", text);
    return true;
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

int att_swin_parse_list(const char *text, int *numbers, int most)
{
    char copy[64];
    int count = 0;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return 0;
    for (char *at = copy, *comma; at; at = comma ? comma + 1 : NULL) {
        int64_t number;
        comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (count == most || !att_text_to_i64(at, &number) || number < 1 || number > 65536)
            return 0;
        numbers[count++] = (int)number;
    }
    return count;
}

void att_swin_format_list(const int *numbers, int count, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%d", i ? "," : "", numbers[i]);
}

static att_status read_stages(att_context *context, const att_swin_options *o, att_swin *net)
{
    int heads[ATT_STAGES];
    net->depths.count = att_swin_parse_list(o->depths, net->depths.blocks, ATT_STAGES);
    if (net->depths.count == 0 || att_stages_total(&net->depths) > ATT_BLOCKS)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "depths must be the numbers of blocks of 1 to %d stages, as in \"2,2,6,2\", at most %d in all, "
                        "not \"%s\"",
                        ATT_STAGES, ATT_BLOCKS, o->depths);
    if (att_swin_parse_list(o->stage_heads, heads, ATT_STAGES) != net->depths.count)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "stage_heads must be the numbers of heads of the %d stages of depths %s, not \"%s\"",
                        net->depths.count, o->depths, o->stage_heads);
    for (int s = 0; s < net->depths.count; s++) {
        att_swin_stage *stage = &net->stages[s];
        *stage = (att_swin_stage){.width = o->embed_dim << s, .heads = heads[s]};
        if (stage->width % stage->heads)
            return att_fail(
                context, ATT_ERR_ARGUMENT,
                "embed_dim %d: the %d channels of stage %d are not a multiple of its %d heads (stage_heads)",
                o->embed_dim, stage->width, s + 1, stage->heads);
    }
    return ATT_OK;
}

/* windows: of each stage; given: numbers of the option. */
static void spread_windows(const int *given, int count, int stages, int (*windows)[2])
{
    for (int s = 0; s < stages; s++)
        for (int i = 0; i < 2; i++)
            windows[s][i] = given[count == 1 ? 0 : count == 2 ? i : s];
}

void att_swin_format_windows(int (*windows)[2], int stages, char *text, size_t size)
{
    int sides[ATT_STAGES];
    bool same = true, square = windows[0][0] == windows[0][1];
    for (int s = 0; s < stages; s++) {
        same = same && windows[s][0] == windows[0][0] && windows[s][1] == windows[0][1];
        sides[s] = windows[s][0];
    }
    if (same)
        att_swin_format_list(windows[0], square ? 1 : 2, text, size);
    else
        att_swin_format_list(sides, stages, text, size);
}

/* As timm: where the grid is no larger than the window, the window is the grid and is not shifted. */
static void fit_window(const att_swin_options *o, const int window[2], att_swin_stage *stage)
{
    for (int i = 0; i < 2; i++) {
        bool whole = !o->always_partition && stage->grid[i] <= window[i];
        stage->window[i] = whole ? stage->grid[i] : window[i];
        stage->shift[i] = whole ? 0 : window[i] / 2;
    }
}

static att_status read_windows(att_context *context, const att_swin_options *o, att_swin *net)
{
    int numbers[ATT_STAGES], windows[ATT_STAGES][2] = {{0}}, stages = net->depths.count;
    int count = att_swin_parse_list(o->window_size, numbers, ATT_STAGES);
    if (count == 0 || (count > 2 && count != stages))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "window_size must be one number, height and width as in \"8,16\", or one number for each of %d "
                        "stages, not \"%s\"",
                        stages, o->window_size);
    spread_windows(numbers, count, stages, windows);
    for (int s = 0; s < stages; s++) {
        att_swin_stage *stage = &net->stages[s];
        for (int i = 0; i < 2; i++)
            stage->grid[i] = s == 0 ? o->img_size[i] / o->patch_size[i] : (stage[-1].grid[i] + 1) / 2;
        fit_window(o, windows[s], stage);
    }
    return ATT_OK;
}

att_status att_swin_measure(att_context *context, const att_swin_options *o, att_swin *net)
{
    *net = (att_swin){.options = o};
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    ATT_TRY(read_stages(context, o, net));
    return read_windows(context, o, net);
}

att_status att_swin_read(att_context *context, const att_swin_options *o, att_swin *net)
{
    int heads[ATT_STAGES];
    ATT_TRY(att_swin_measure(context, o, net));
    for (int s = 0; s < net->depths.count; s++)
        heads[s] = net->stages[s].heads;
    return att_token_modules_in(context, o->modules, &net->depths, heads, &net->modules);
}

/* Writes the lists in one form, so that equal ones are equal texts. */
static att_status swin_complete(att_context *context, void *options)
{
    att_swin_options *o = options;
    int numbers[ATT_STAGES], windows[ATT_STAGES][2] = {{0}};
    att_swin net;
    ATT_TRY(att_swin_read(context, o, &net));
    int stages = net.depths.count;
    att_swin_format_list(net.depths.blocks, stages, o->depths, sizeof o->depths);
    att_swin_format_list(numbers, att_swin_parse_list(o->stage_heads, numbers, ATT_STAGES), o->stage_heads,
                         sizeof o->stage_heads);
    spread_windows(numbers, att_swin_parse_list(o->window_size, numbers, ATT_STAGES), stages, windows);
    att_swin_format_windows(windows, stages, o->window_size, sizeof o->window_size);
    return ATT_OK;
}

/* --- the family --------------------------------------------------------------------------------------------------- */

static att_value build_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    return att_nn_linear(scope, features, classes, true);
}

static att_classifier_form swin_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head.fc", .build = build_classifier};
}

extern const att_family att_family_swin;

const att_family att_family_swin = {
    .name = "swin",
    .signature = "layers.0.blocks.0.norm1.weight",
    .options = &att_swin_table,
    .hooks = ATT_TOKEN_HOOK_SET,
    .accepted_arguments = accepted_arguments,
    .classifier = swin_classifier,
    .variant_count = sizeof variants / sizeof *variants,
    .variant = swin_info,
    .defaults = swin_defaults,
    .complete = swin_complete,
    .build = att_swin_build,
    .recognise = att_swin_recognise,
    .take_argument = take_argument,
    .regrids = att_swin_regrids,
    .is_added = att_swin_is_added,
    .layer = att_swin_layer,
};
