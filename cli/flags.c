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

const char *cli_choice_instrument(int index)
{
    return index == 0 ? "all" : index <= att_instrument_count(NULL) ? att_instrument_at(NULL, index - 1).name : NULL;
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

static const char step[] = "step";

/* Of an option of StepNet's. */
static const char *choose_of_step(const char *option, int index)
{
    for (int m = 0; m < att_module_count(NULL); m++)
        for (int i = 0; strcmp(att_module_at(NULL, m)->name, step) == 0 && i < att_module_at(NULL, m)->option_count;
             i++)
            if (strcmp(att_module_at(NULL, m)->options[i].name, option) == 0)
                return att_module_at(NULL, m)->options[i].choices[index];
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

static const cli_option named_options[] = {
    {"model", .letter = 'm', .kind = CLI_TEXT, .value = "NAME",
     .help = "timm's name, with or without a pretrained tag; attscope models lists them", .choice = choose_model,
     .advisory = true, CLI_AT(cli_network, model)},
    {"input-size", .kind = CLI_REALS, .value = "C H W",
     .help = "--in-chans C and --img-size H W in one, and in their place where both are given",
     CLI_AT(cli_network, input_size), .low = 1, .high = 65536},
    {"adaptor", .kind = CLI_TEXT, .value = "NAME", .help = "of --modules step, as step:adaptor=NAME",
     .choice = choose_adaptor, CLI_AT(cli_network, adaptor)},
    {"adaptor-input", .kind = CLI_TEXT, .value = "NAME", .help = "what that adaptor is told, as step:input=NAME",
     .choice = choose_adaptor_input, CLI_AT(cli_network, adaptor_input)},
};

void cli_flag_of(const att_option *option, char flag[ATT_OPTION_KEY])
{
    snprintf(flag, ATT_OPTION_KEY, "%s", option->flag ? option->flag : option->key);
    for (char *c = flag; *c; c++)
        if (*c == '_')
            *c = '-';
}

const att_option *cli_declared_find(const char *key)
{
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        for (int i = 0; i < family.option_count; i++)
            if (strcmp(family.options[i].key, key) == 0)
                return &family.options[i];
    }
    return NULL;
}

cli_option cli_declared_row(const att_option *declared, const char *name, size_t offset)
{
    return (cli_option){.name = name,
                        .alias = declared->alias,
                        .kind = CLI_DECLARED,
                        .declared = declared,
                        .value = declared->value,
                        .help = declared->help,
                        .choice = declared->choice,
                        .detailed = declared->detailed,
                        .offset = offset,
                        .size = sizeof(att_option_values)};
}

/* What every family declares, once each, in the families' order; what only training reads has flags of train's. */
static const cli_option *network_rows(int *count)
{
    enum { NAMED = sizeof named_options / sizeof *named_options };
    static cli_option rows[NAMED + ATT_MOST_OPTIONS];
    static char names[ATT_MOST_OPTIONS][ATT_OPTION_KEY];
    static int made;
    int declared = 0;
    *count = made;
    if (made > 0)
        return rows;
    rows[made++] = named_options[0];
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        for (int i = 0; i < family.option_count; i++) {
            const att_option *option = &family.options[i];
            if (option->training || option->internal || cli_declared_find(option->key) != option)
                continue;
            cli_flag_of(option, names[declared]);
            rows[made++] = cli_declared_row(option, names[declared++], offsetof(cli_network, options));
        }
    }
    for (int i = 1; i < NAMED; i++)
        rows[made++] = named_options[i];
    att_family_info old = att_model_old_options();
    for (int i = 0; i < old.option_count; i++) {
        cli_flag_of(&old.options[i], names[declared]);
        rows[made] = cli_declared_row(&old.options[i], names[declared++], offsetof(cli_network, options));
        rows[made].help = NULL;
        rows[made++].old = true;
    }
    *count = made;
    return rows;
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
    char completed[2 * ATT_OPTION_TEXT_BYTES];
    const char *modules = att_options_text(&network->options, "modules");
    size_t named = strcspn(modules, ":@"), module = strcspn(modules, "@");
    if (!*value)
        return true;
    if (named != strlen(step) || strncmp(modules, step, named) != 0) {
        cli_say("--%s %s completes --modules step, but modules is %s", flag, *value, *modules ? modules : "not given");
        return false;
    }
    if (says(modules, option)) {
        cli_say("--%s %s: modules says %s already, in %s; leave one of them out", flag, *value, option, modules);
        return false;
    }
    snprintf(completed, sizeof completed, "%.*s%c%s=%s%s", (int)module, modules, named < module ? ',' : ':', option,
             *value, modules + module);
    if (strlen(completed) >= cli_declared_find("modules")->size) {
        cli_say("--%s %s makes modules too long: %s", flag, *value, completed);
        return false;
    }
    att_options_set_text(&network->options, "modules", completed);
    *value = NULL;
    return true;
}

static bool is_whole(double number)
{
    return number == (int)number;
}

/* --input-size replaces what its own source, and those before it, say as img_size and in_chans. */
static bool merge_size(void *values)
{
    cli_network *network = values;
    const double *size = network->input_size.values;
    int count = network->input_size.count;
    if (count == 0)
        return true;
    if (count != 3 || !is_whole(size[0]) || !is_whole(size[1]) || !is_whole(size[2])) {
        cli_say("--input-size needs three whole numbers: channels, height, width");
        return false;
    }
    att_options_set(&network->options, "in_chans", size[0]);
    att_options_set_sides(&network->options, "img_size", (int)size[1], (int)size[2]);
    network->input_size.count = 0;
    return true;
}

static bool complete_network(void *values)
{
    cli_network *network = values;
    att_model_renew_options(&network->options);
    return complete_step(network, "adaptor", "adaptor", &network->adaptor) &&
           complete_step(network, "adaptor-input", "input", &network->adaptor_input);
}

const cli_group cli_group_network = {"Network (what is not given is the model's own)", .rows = network_rows,
                                     .merge = merge_size, .complete = complete_network};

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
