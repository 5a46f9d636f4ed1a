#include "flags.h"

#include <string.h>

#define ROWS(table) .options = (table), .count = sizeof(table) / sizeof *(table)

/* --- choices ------------------------------------------------------------------------------------------------------ */

static const char *choice_of(const char *const *names, int count, int index)
{
    return index < count ? names[index] : NULL;
}

static const char *choose_crop_mode(int index)
{
    static const char *const names[] = {"center", "squash", "border"};
    return choice_of(names, 3, index);
}

const char *cli_choice_interpolation(int index)
{
    static const char *const names[] = {"bicubic", "bilinear"};
    return choice_of(names, 2, index);
}

static const char *choose_pool(int index)
{
    static const char *const names[] = {"token", "avg"};
    return choice_of(names, 2, index);
}

static const char *choose_stem(int index)
{
    static const char *const names[] = {"conv7", "deep", "deep_tiered", "conv3"};
    return choice_of(names, 4, index);
}

static const char *choose_backend(int index)
{
    static const char *const names[] = {"cpu", "ref"};
    return choice_of(names, 2, index);
}

/* timm's files say float16 of trainings without mixed precision as well. */
static const char *choose_amp_dtype(int index)
{
    static const char *const names[] = {"bfloat16", "float16"};
    return choice_of(names, 2, index);
}

/* "none", then the modules that fit this place. */
static const char *choose_module(att_module_place place, int index)
{
    if (index == 0)
        return "none";
    for (int i = 0; i < att_module_count(); i++)
        if (att_module_at(i)->place == place && --index == 0)
            return att_module_at(i)->name;
    return NULL;
}

static const char *choose_broadcast(int index)
{
    return choose_module(ATT_ON_TOKENS, index);
}

static const char *choose_attn(int index)
{
    return choose_module(ATT_ON_MAPS, index);
}

static const char step[] = "step";

/* Of an option of StepNet's. */
static const char *choose_of_step(const char *option, int index)
{
    for (int m = 0; m < att_module_count(); m++)
        for (int i = 0; strcmp(att_module_at(m)->name, step) == 0 && i < att_module_at(m)->option_count; i++)
            if (strcmp(att_module_at(m)->options[i].name, option) == 0)
                return att_module_at(m)->options[i].choices[index];
    return NULL;
}

static const char *choose_adaptor(int index)
{
    return choose_of_step("adaptor", index);
}

static const char *choose_adaptor_input(int index)
{
    return choose_of_step("input", index);
}

static const char *choose_model(int index)
{
    return index < att_model_count() ? att_model_at(index).name : NULL;
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static const cli_option network_options[] = {
    {"model", .letter = 'm', .kind = CLI_TEXT, .value = "NAME",
     .help = "timm's name, with or without a pretrained tag; attscope models lists them", .choice = choose_model,
     .advisory = true, CLI_AT(cli_network, model)},
    {"img-size", .kind = CLI_INT, .value = "N", .help = "pixels of a side", CLI_AT(cli_network, options.img_size),
     .low = 1, .high = 65536, .open = true},
    {"in-chans", .kind = CLI_INT, .value = "N", .help = "channels of an image: 1 or 3",
     CLI_AT(cli_network, options.in_chans), .low = 1, .high = 3, .open = true},
    {"num-classes", .kind = CLI_INT, .value = "N", .help = "classes, the outputs of the classifier",
     CLI_AT(cli_network, options.num_classes), .low = 1, .high = 10000000, .open = true},
    {"patch-size", .kind = CLI_INT, .value = "N", .help = "pixels of a patch's side",
     CLI_AT(cli_network, options.patch_size), .low = 1, .high = 65536, .open = true},
    {"embed-dim", .kind = CLI_INT, .value = "N", .help = "width of a token", CLI_AT(cli_network, options.embed_dim),
     .low = 1, .high = 65536, .open = true},
    {"depth", .kind = CLI_INT, .value = "N", .help = "of a ViT: blocks; of a residual network for CIFAR: layers",
     CLI_AT(cli_network, options.depth), .low = 1, .high = 1024, .open = true},
    {"num-heads", .kind = CLI_INT, .value = "N", .help = "attention heads of a block",
     CLI_AT(cli_network, options.num_heads), .low = 1, .high = 65536, .open = true},
    {"mlp-ratio", .kind = CLI_REAL, .value = "X", .help = "width of the MLP over that of a token",
     CLI_AT(cli_network, options.mlp_ratio), .low = 1e-3, .high = 64, .open = true},
    {"global-pool", .alias = "gp", .kind = CLI_WORD, .value = "NAME", .help = "pooling", .choice = choose_pool,
     CLI_AT(cli_network, options.global_pool)},
    {"class-token", .kind = CLI_SWITCH, .help = "with or without a class token",
     CLI_AT(cli_network, options.class_token)},
    {"embed-class", .kind = CLI_SWITCH, .help = "position embedding for the class token too",
     CLI_AT(cli_network, options.embed_class)},
    {"fc-norm", .kind = CLI_SWITCH, .help = "last norm after the pooling", CLI_AT(cli_network, options.fc_norm)},
    {"qkv-bias", .kind = CLI_SWITCH, .help = "queries, keys and values with a bias",
     CLI_AT(cli_network, options.qkv_bias)},
    {"init-values", .kind = CLI_REAL, .value = "X", .help = "LayerScale with this start",
     CLI_AT(cli_network, options.init_values), .low = 0, .high = 1e3, .open = true},
    {"broadcast", .kind = CLI_WORD, .value = "MODULE",
     .help = "at the end of every MLP branch, options behind a colon as in cb_s:init=0.1", .choice = choose_broadcast,
     .detailed = true, CLI_AT(cli_network, options.broadcast)},
    {"layers", .kind = CLI_WORD, .value = "LIST", .help = "residual blocks of each stage, as 3,4,6,3",
     CLI_AT(cli_network, options.layers)},
    {"stem-type", .kind = CLI_WORD, .value = "NAME",
     .help = "before the residual blocks; conv3: 3 x 3, no stride, no pool, as for CIFAR", .choice = choose_stem,
     CLI_AT(cli_network, options.stem_type)},
    {"width", .kind = CLI_INT, .value = "N", .help = "channels of the first stage of residual blocks",
     CLI_AT(cli_network, options.width), .low = 1, .high = 65536, .open = true},
    {"cardinality", .kind = CLI_INT, .value = "N", .help = "groups of a bottleneck's 3 x 3 convolution",
     CLI_AT(cli_network, options.cardinality), .low = 1, .high = 65536, .open = true},
    {"base-width", .kind = CLI_INT, .value = "N", .help = "its channels a group, in a first stage of 64",
     CLI_AT(cli_network, options.base_width), .low = 1, .high = 65536, .open = true},
    {"zero-init-last", .kind = CLI_SWITCH, .help = "the last norm of a residual branch starts at 0",
     CLI_AT(cli_network, options.zero_init_last)},
    {"attn", .kind = CLI_WORD, .value = "MODULE",
     .help = "at the end of residual branches, options behind a colon as in se:ratio=8", .choice = choose_attn,
     .detailed = true, CLI_AT(cli_network, options.attn)},
    {"adaptor", .kind = CLI_TEXT, .value = "NAME", .help = "of --attn step, as step:adaptor=NAME",
     .choice = choose_adaptor, CLI_AT(cli_network, adaptor)},
    {"adaptor-input", .kind = CLI_TEXT, .value = "NAME", .help = "what that adaptor is told, as step:input=NAME",
     .choice = choose_adaptor_input, CLI_AT(cli_network, adaptor_input)},
    {"attn-blocks", .kind = CLI_WORD, .value = "WHERE",
     .help = "which have it: all, none, every:K, 0,2,5-7; of a stage: layer3:all",
     CLI_AT(cli_network, options.attn_blocks)},
};

static void network_defaults(void *values)
{
    ((cli_network *)values)->options = att_model_options_defaults();
}

/* Whether "step:adaptor=dct,input=x_t" gives the option a value. */
static bool says(const char *attn, const char *option)
{
    size_t length = strlen(option);
    for (const char *at = attn + strcspn(attn, ":,"); *at; at += 1 + strcspn(at + 1, ":,"))
        if (strncmp(at + 1, option, length) == 0 && at[1 + length] == '=')
            return true;
    return false;
}

/* Adds what the flag says to attn's text and takes it from the flag, so that files record it once. */
static bool complete_step(cli_network *network, const char *flag, const char *option, const char **value)
{
    char completed[128], *attn = network->options.attn;
    size_t named = strcspn(attn, ":");
    if (!*value)
        return true;
    if (named != strlen(step) || strncmp(attn, step, named) != 0) {
        cli_say("--%s %s completes --attn step, but attn is %s", flag, *value, *attn ? attn : "not given");
        return false;
    }
    if (says(attn, option)) {
        cli_say("--%s %s: attn says %s already, in %s; leave one of them out", flag, *value, option, attn);
        return false;
    }
    snprintf(completed, sizeof completed, "%s%c%s=%s", attn, attn[named] ? ',' : ':', option, *value);
    if (strlen(completed) >= sizeof network->options.attn) {
        cli_say("--%s %s makes attn too long: %s", flag, *value, completed);
        return false;
    }
    strcpy(attn, completed);
    *value = NULL;
    return true;
}

static bool complete_network(void *values)
{
    cli_network *network = values;
    return complete_step(network, "adaptor", "adaptor", &network->adaptor) &&
           complete_step(network, "adaptor-input", "input", &network->adaptor_input);
}

const cli_group cli_group_network = {"Network (what is not given is the model's own)", ROWS(network_options),
                                     .defaults = network_defaults, .complete = complete_network};

/* --- preprocessing ------------------------------------------------------------------------------------------------ */

static const cli_option preprocess_options[] = {
    {"mean", .kind = CLI_REALS, .value = "X...", .help = "of pixels in 0..1: one number, or one a channel",
     CLI_AT(cli_preprocess, mean), .low = 0, .high = 1},
    {"std", .kind = CLI_REALS, .value = "X...", .help = "of pixels in 0..1: one number, or one a channel",
     CLI_AT(cli_preprocess, std), .low = 1e-6, .high = 10},
    {"crop-pct", .kind = CLI_REAL, .value = "X", .help = "size of the crop over the size that images are resized to",
     CLI_AT(cli_preprocess, crop_pct), .low = 0.01, .high = 1, .open = true},
    {"crop-mode", .kind = CLI_TEXT, .value = "NAME",
     .help = "evaluation; center: keep the aspect ratio and cover the crop; squash: ignore it; border: fit the whole "
             "image in and fill up with the mean",
     .choice = choose_crop_mode, CLI_AT(cli_preprocess, crop_mode)},
    {"interpolation", .kind = CLI_TEXT, .value = "NAME", .help = "of resizing", .choice = cli_choice_interpolation,
     CLI_AT(cli_preprocess, interpolation)},
};

const cli_group cli_group_preprocess = {"Preprocessing (what is not given is the model's own)",
                                        ROWS(preprocess_options)};

/* --- engine ------------------------------------------------------------------------------------------------------- */

static const cli_option engine_options[] = {
    {"threads", .kind = CLI_INT, .value = "N", .help = "of the engine; 0: one per processor",
     CLI_AT(cli_engine, threads), .low = 0, .high = 1024},
    {"backend", .kind = CLI_TEXT, .value = "NAME", .help = "kernels; ref is the plain reference",
     .choice = choose_backend, CLI_AT(cli_engine, backend)},
    {"amp", .kind = CLI_FLAG, .help = "mixed precision: matrix products in bf16, weights and sums in f32",
     CLI_AT(cli_engine, amp)},
    {"amp-dtype", .kind = CLI_TEXT, .value = "NAME", .help = "of mixed precision, which is done in bfloat16 only",
     .choice = choose_amp_dtype, CLI_AT(cli_engine, amp_dtype)},
    {"amp-force", .kind = CLI_FLAG, .help = "--amp without AVX512_BF16 as well: slower than f32",
     CLI_AT(cli_engine, amp_force)},
};

static void engine_defaults(void *values)
{
    cli_engine *engine = values;
    engine->backend = att_plan_options_defaults().backend;
    engine->amp_dtype = choose_amp_dtype(0);
}

const cli_group cli_group_engine = {"Engine", ROWS(engine_options), .defaults = engine_defaults};

att_precision cli_engine_precision(const cli_engine *engine)
{
    return engine->amp ? ATT_MIXED : ATT_FULL;
}

int cli_engine_open(cli_app *cli, const cli_engine *engine)
{
    if (engine->amp && strcmp(engine->amp_dtype, choose_amp_dtype(0)) != 0)
        return cli_usage("--amp is done in bfloat16, not in %s; --amp-dtype bfloat16 says so", engine->amp_dtype);
    if (engine->amp_force && !engine->amp)
        return cli_usage("--amp-force says where --amp computes all the same; it goes with --amp");
    int code = cli_open(cli, engine->threads);
    if (code != CLI_OK || !engine->amp || engine->amp_force || strcmp(engine->backend, "cpu") != 0 ||
        att_context_has_bf16(cli->context))
        return code;
    return cli_failure(
        "--amp needs a processor with AVX512_BF16; this one has %s (--amp-force computes all the same, "
        "but slower than f32)",
        att_tier_name(att_context_tier(cli->context)));
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static const cli_option output_options[] = {
    {"json", .kind = CLI_TEXT, .value = "FILE", .help = "write the figures as JSON; - is standard output",
     CLI_AT(cli_output, json), .once = true},
};

const cli_group cli_group_output = {"Output", ROWS(output_options)};
