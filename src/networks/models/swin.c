/* Swin Transformers as in timm: patch embedding with a norm; stages of blocks with attention in shifted windows and
 * numbers for the shifts between tokens, the next stage at half the resolution with twice the channels; a norm, the
 * mean over tokens. att_swin_version has the differences between Swin (Liu et al., ICCV 2021), Swin V2 (Liu et al.,
 * CVPR 2022) and timm's own Swin V2, V2-CR. */
#include "networks/models/swin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/patches.h"

/* --- options ----------------------------------------------------------------------------------------------------- */

ATT_CHOICES(pool_names, "avg")

static const char *version_names(int index)
{
    const att_swin_version *version = att_swin_version_at(index);
    return version ? version->name : NULL;
}

#define SWIN_AT(member) ATT_OPTION_AT(att_swin_options, member)
static const att_option rows[] = {
    ATT_IMAGE_OPTIONS(att_swin_options),
    ATT_SHARED_OPTIONS(att_swin_options),
    ATT_ATTENTION_DROP_OPTION(att_swin_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, SWIN_AT(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     SWIN_AT(embed_dim)},
    {"swin_version", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "of a Swin: v1, v2 (cosine attention, norms at the end of branches), or v2_cr (timm's swinv2_cr_*)",
     .choice = version_names, SWIN_AT(swin_version)},
    {"depths", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "blocks of each stage, as 2,2,6,2",
     .instead_of = "depth", SWIN_AT(depths)},
    {"stage_heads", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a Swin: attention heads of a block in each stage, as 3,6,12,24", .instead_of = "num_heads",
     SWIN_AT(stage_heads)},
    {"window_size", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a Swin: tokens of a window: the side, height and width as in 8,16, the side in each stage as in "
             "7,7,14,7, or a fraction of the first stage's grid as in 1/8",
     .differs_as = "the windows", SWIN_AT(window_size)},
    {"pretrained_window_sizes", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a Swin V2: sides of the windows in each stage of the pretraining; 0: those of window_size",
     .not_compared = true, SWIN_AT(pretrained_window_sizes)},
    {"always_partition", .kind = ATT_OPTION_SWITCH,
     .help = "of a Swin: shift windows and keep their size where a stage's grid is no larger than they are",
     .not_compared = true, SWIN_AT(always_partition)},
    {"pad_before_shift", .kind = ATT_OPTION_SWITCH,
     .help = "of a Swin: fill up a stage's last windows with zeros before they are shifted, as transformers and "
             "mmsegmentation do, not after that, as timm does",
     .not_compared = true, SWIN_AT(pad_before_shift)},
    {"extra_norm_period", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "of a Swin V2-CR: a norm of the stream after every N blocks of a stage; 0: none", .high = ATT_BLOCKS,
     SWIN_AT(extra_norm_period)},
    {"extra_norm_stage", .kind = ATT_OPTION_SWITCH,
     .help = "of a Swin V2-CR: a norm of the stream at the end of every stage, not of the last one only",
     SWIN_AT(extra_norm_stage)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, SWIN_AT(mlp_ratio)},
    {"qkv_bias", .kind = ATT_OPTION_SWITCH, .help = "queries, keys and values with a bias", SWIN_AT(qkv_bias)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean over tokens", .choice = pool_names, SWIN_AT(global_pool)},
};
ATT_ASSERT_SETTINGS_FIT(att_swin_options);
const att_option_table att_swin_table = {rows, sizeof rows / sizeof *rows, sizeof(att_swin_options)};

static const att_accepted_argument accepted_arguments[] = {
    {"proj_drop_rate", ATT_ANY_VALUE},
    {"weight_init", ATT_ANY_VALUE},
    {"strict_img_size", ATT_ANY_VALUE},
    {"dynamic_img_size", ATT_ANY_VALUE},
    {"norm_layer", "layernorm"},
    {"init_values", ATT_ANY_VALUE},
    {"sequential_attn", ATT_ANY_VALUE}, /* timm ignores it */
    {NULL, NULL},
};

/* timm's num_heads has one number for each stage. */
static bool take_heads(const att_fact *fact, att_option_values *options)
{
    if (fact->kind != ATT_FACT_NUMBERS || fact->count < 1 || fact->count > ATT_STAGES)
        return false;
    int heads[ATT_STAGES];
    char text[sizeof((att_swin_options *)0)->stage_heads];
    for (int i = 0; i < fact->count; i++) {
        if (!(fact->numbers[i] >= 1 && fact->numbers[i] <= 65536))
            return false;
        heads[i] = (int)fact->numbers[i];
    }
    att_format_list(heads, fact->count, text, sizeof text);
    if (!att_options_find(options, "stage_heads"))
        att_options_set_text(options, "stage_heads", text);
    return true;
}

/* timm's window_ratio 8 is window_size 1/8. */
static bool take_ratio(const att_fact *fact, att_option_values *options)
{
    char text[16];
    if (fact->kind != ATT_FACT_NUMBERS || fact->count != 1 || !(fact->numbers[0] >= 1 && fact->numbers[0] <= 65536))
        return false;
    snprintf(text, sizeof text, "1/%d", (int)fact->numbers[0]);
    if (!att_options_find(options, "window_size"))
        att_options_set_text(options, "window_size", text);
    return true;
}

static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (strcmp(key, "num_heads") == 0)
        return take_heads(fact, options);
    return strcmp(key, "window_ratio") == 0 && take_ratio(fact, options);
}

/* Returns N of "1/N", 0 for other texts. */
static int parse_fraction(const char *text)
{
    int64_t number;
    bool fraction = strncmp(text, "1/", 2) == 0 && att_text_to_i64(text + 2, &number) && number >= 1 && number <= 65536;
    return fraction ? (int)number : 0;
}

/* Numbers of tokens, or a fraction of the grid, which only V2-CR has. */
static bool give_windows(const char *text, bool is_cr, att_json_writer *writer)
{
    const int fraction = parse_fraction(text);
    if (fraction && !is_cr)
        return false;
    if (fraction)
        att_json_put_integer(writer, "window_ratio", fraction);
    else if (!strchr(text, ','))
        att_json_put_integer(writer, "window_size", strtol(text, NULL, 10));
    else
        return att_timm_give_list(text, "window_size", writer);
    return true;
}

static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    const char *version = att_options_text(network->own, "swin_version"),
               *text = att_options_text(network->options, option->key);
    const bool is_v2 = strcmp(version, ATT_SWIN_V2) == 0, is_cr = strcmp(version, ATT_SWIN_V2_CR) == 0;
    if (strcmp(option->key, "depths") == 0)
        return att_timm_give_list(text, option->key, writer);
    if (strcmp(option->key, "stage_heads") == 0)
        return att_timm_give_list(text, "num_heads", writer);
    if (strcmp(option->key, "window_size") == 0)
        return give_windows(text, is_cr, writer);
    if (strcmp(option->key, "pretrained_window_sizes") == 0)
        return is_v2 && strchr(text, ',') && att_timm_give_list(text, option->key, writer);
    return att_timm_give_of("img_size in_chans patch_size embed_dim mlp_ratio always_partition", network, option,
                            writer) ||
           (is_cr ? att_timm_give_of("extra_norm_period extra_norm_stage", network, option, writer)
                  : att_timm_give_of("qkv_bias", network, option, writer));
}

static const att_timm_form timm_form = {.sized = true, .give_argument = give_argument};

/* --- lists ------------------------------------------------------------------------------------------------------- */

enum { MOST_NUMBER = 65536 }; /* of a list of an option */

static att_status read_stages(att_context *context, const att_swin_options *o, att_swin *net)
{
    int heads[ATT_STAGES];
    ATT_TRY(att_stages_parse(context, "depths", o->depths, &net->depths));
    if (att_text_to_list(o->stage_heads, 1, MOST_NUMBER, heads, ATT_STAGES) != net->depths.count)
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
        att_format_list(windows[0], square ? 1 : 2, text, size);
    else
        att_format_list(sides, stages, text, size);
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

/* Sets the sides of all windows, in tokens. A fraction refers to the grid of the first stage, in all stages, as timm's
 * window_ratio. */
static att_status parse_windows(att_context *context, const att_swin_options *o, const att_swin *net, int (*windows)[2])
{
    int numbers[ATT_STAGES], stages = net->depths.count, fraction = parse_fraction(o->window_size);
    int count = fraction ? 2 : att_text_to_list(o->window_size, 1, MOST_NUMBER, numbers, ATT_STAGES);
    for (int i = 0; i < 2 && fraction; i++)
        numbers[i] = net->stages[0].grid[i] < fraction ? 1 : net->stages[0].grid[i] / fraction;
    if (count == 0 || (count > 2 && count != stages))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "window_size must be one number, height and width as in \"8,16\", one number for each of %d "
                        "stages, or a fraction of the grid as \"1/8\", not \"%s\"",
                        stages, o->window_size);
    spread_windows(numbers, count, stages, windows);
    return ATT_OK;
}

static att_status read_pretrained(att_context *context, const att_swin_options *o, att_swin *net)
{
    int sides[ATT_STAGES], stages = net->depths.count;
    int count = att_text_to_list(o->pretrained_window_sizes, 0, MOST_NUMBER, sides, ATT_STAGES);
    if (count != 1 && count != stages)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "pretrained_window_sizes must be one number, or one for each of %d stages, not \"%s\"", stages,
                        o->pretrained_window_sizes);
    for (int s = 0; s < stages; s++)
        net->stages[s].pretrained = sides[count == 1 ? 0 : s];
    return ATT_OK;
}

static att_status read_windows(att_context *context, const att_swin_options *o, att_swin *net)
{
    int windows[ATT_STAGES][2] = {{0}}, stages = net->depths.count;
    for (int s = 0; s < stages; s++)
        for (int i = 0; i < 2; i++)
            net->stages[s].grid[i] = s == 0 ? o->img_size[i] / o->patch_size[i] : (net->stages[s - 1].grid[i] + 1) / 2;
    ATT_TRY(parse_windows(context, o, net, windows));
    for (int s = 0; s < stages; s++)
        fit_window(o, windows[s], &net->stages[s]);
    return read_pretrained(context, o, net);
}

/* Refuses options that the version of the network does not have. */
static att_status check_version(att_context *context, const att_swin_options *o, const att_swin *net)
{
    static const char refusal[] = "%s is an option of swin_version %s, not of %s";
    bool pretrained = false;
    for (int s = 0; s < net->depths.count; s++)
        pretrained = pretrained || net->stages[s].pretrained > 0;
    if (pretrained && net->version->relative.kind != ATT_RELATIVE_SIGMOID)
        return att_fail(context, ATT_ERR_ARGUMENT, refusal, "pretrained_window_sizes", ATT_SWIN_V2, o->swin_version);
    if ((o->extra_norm_period > 0 || o->extra_norm_stage) && net->version->last_norm)
        return att_fail(context, ATT_ERR_ARGUMENT, refusal,
                        o->extra_norm_period > 0 ? "extra_norm_period" : "extra_norm_stage", ATT_SWIN_V2_CR,
                        o->swin_version);
    return ATT_OK;
}

att_status att_swin_measure(att_context *context, const att_swin_options *o, att_swin *net)
{
    *net = (att_swin){.options = o, .version = att_swin_version_named(o->swin_version)};
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    ATT_TRY(read_stages(context, o, net));
    ATT_TRY(read_windows(context, o, net));
    return check_version(context, o, net);
}

bool att_swin_has_extra_norm(const att_swin *net, int s, int b)
{
    const att_swin_options *o = net->options;
    bool last = b + 1 == net->depths.blocks[s], last_stage = s + 1 == net->depths.count;
    bool periodic = o->extra_norm_period > 0 && (b + 1) % o->extra_norm_period == 0;
    return !net->version->last_norm && (periodic || (last && (last_stage || o->extra_norm_stage)));
}

att_status att_swin_read(att_context *context, const att_swin_options *o, att_swin *net)
{
    int heads[ATT_STAGES];
    ATT_TRY(att_swin_measure(context, o, net));
    for (int s = 0; s < net->depths.count; s++)
        heads[s] = net->stages[s].heads;
    return att_token_modules_in(context, o->modules, &net->depths, heads, &net->modules);
}

static void format_pretrained(const att_swin *net, char *text, size_t size)
{
    int sides[ATT_STAGES], stages = net->depths.count;
    bool same = true;
    for (int s = 0; s < stages; s++) {
        sides[s] = net->stages[s].pretrained;
        same = same && sides[s] == sides[0];
    }
    att_format_list(sides, same ? 1 : stages, text, size);
}

/* Writes the lists in one form, so that equal ones are equal texts. */
static att_status swin_complete(att_context *context, void *options)
{
    att_swin_options *o = options;
    int numbers[ATT_STAGES], windows[ATT_STAGES][2] = {{0}};
    att_swin net;
    ATT_TRY(att_swin_read(context, o, &net));
    int stages = net.depths.count;
    att_format_list(net.depths.blocks, stages, o->depths, sizeof o->depths);
    att_format_list(numbers, att_text_to_list(o->stage_heads, 1, MOST_NUMBER, numbers, ATT_STAGES), o->stage_heads,
                    sizeof o->stage_heads);
    format_pretrained(&net, o->pretrained_window_sizes, sizeof o->pretrained_window_sizes);
    if (parse_fraction(o->window_size))
        return ATT_OK;
    spread_windows(numbers, att_text_to_list(o->window_size, 1, MOST_NUMBER, numbers, ATT_STAGES), stages, windows);
    att_swin_format_windows(windows, stages, o->window_size, sizeof o->window_size);
    return ATT_OK;
}

/* --- the family --------------------------------------------------------------------------------------------------- */

static att_classifier_form swin_classifier(const void *options)
{
    const att_swin_version *version = att_swin_version_named(((const att_swin_options *)options)->swin_version);
    bool uniform = version->start == ATT_START_UNIFORM;
    return (att_classifier_form){.scope = "head.fc", .build = uniform ? att_nn_classifier : att_token_classifier};
}

extern const att_family att_family_swin;

const att_family att_family_swin = {
    .name = "swin",
    .signatures = {"layers.0.blocks.0.norm1.weight", "stages.0.blocks.0.norm1.weight"},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &att_swin_table,
    .hooks = ATT_TOKEN_HOOK_SET,
    .accepted_arguments = accepted_arguments,
    .classifier = swin_classifier,
    .variants = &att_swin_variants,
    .complete = swin_complete,
    .build = att_swin_build,
    .foreign = att_swin_foreign,
    .recognise = att_swin_recognise,
    .disambiguate = att_swin_disambiguate,
    .explain_size = att_swin_explain_size,
    .take_argument = take_argument,
    .timm = &timm_form,
    .check_undetermined = att_swin_check_undetermined,
    .regrids = att_swin_regrids,
    .is_added = att_swin_is_added,
    .layer = att_swin_layer,
};
