#include <stdio.h>
#include <string.h>

#include <attscope/lab/recipe.h>

#include "base/core/error.h"
#include "base/flags/flags.h"
#include "lab/runs/recipe/recipe.h"

#define ROWS(table) .rows = (table), .row_count = sizeof(table) / sizeof *(table)

/* --- choices ------------------------------------------------------------------------------------------------------ */

const char *att_choose_instrument(int index)
{
    return index == 0 ? "all" : index <= att_instrument_count(NULL) ? att_instrument_at(NULL, index - 1).name : NULL;
}

static const char step[] = "step";

/* The choices of an option of the module "step". */
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

const char *att_choose_model(int index)
{
    return index < att_model_count() ? att_model_at(index).name : NULL;
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static const att_flag named_options[] = {
    {"model", .letter = 'm', .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "timm's name, with or without a pretrained tag; attscope models lists them", .choice = att_choose_model,
     .advisory = true, ATT_FLAG_AT(att_recipe_network, model)},
    {"input-size", .kind = ATT_FLAG_REALS, .value = "C H W",
     .help = "short for --in-chans C --img-size H W, which it overrides", ATT_FLAG_AT(att_recipe_network, input_size),
     .low = 1, .high = 65536},
    {"adaptor", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "adaptor of --modules step, short for step:adaptor=NAME", .choice = choose_adaptor,
     ATT_FLAG_AT(att_recipe_network, adaptor)},
    {"adaptor-input", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "input of that adaptor, short for step:input=NAME", .choice = choose_adaptor_input,
     ATT_FLAG_AT(att_recipe_network, adaptor_input)},
};

void att_put_row(const att_flag *row, att_flag *rows, int most, int *count)
{
    if (*count < most)
        rows[*count] = *row;
    ++*count;
}

/* The declaration of a network option by the first family that has it; NULL: no family has it. */
static const att_option *find_declared(const char *key)
{
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        for (int i = 0; i < family.option_count; i++)
            if (strcmp(family.options[i].key, key) == 0)
                return &family.options[i];
    }
    return NULL;
}

void att_put_option_rows(bool training, size_t offset, att_flag *rows, int most, int *count)
{
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        for (int i = 0; i < family.option_count; i++) {
            const att_option *option = &family.options[i];
            if (option->training != training || option->internal || find_declared(option->key) != option)
                continue;
            att_flag row = att_flag_of_option(option, offset);
            att_put_row(&row, rows, most, count);
        }
    }
}

/* Puts rows after the first `made`; returns the number of all rows. Options that only training reads have rows in
 * training_flags.c. */
static int put_options(att_flag *rows, int most, int made)
{
    enum { NAMED = sizeof named_options / sizeof *named_options };
    att_put_option_rows(false, offsetof(att_recipe_network, options), rows, most, &made);
    for (int i = 1; i < NAMED; i++)
        att_put_row(&named_options[i], rows, most, &made);
    return made;
}

static int make_network_rows(att_context *context, att_flag *rows, int most)
{
    int made = 0;
    (void)context;
    att_put_row(&named_options[0], rows, most, &made);
    return put_options(rows, most, made);
}

static int make_option_rows(att_context *context, att_flag *rows, int most)
{
    (void)context;
    return put_options(rows, most, 0);
}

/* Whether a text such as "step:adaptor=dct,input=x_t" sets the option. */
static bool sets_option(const char *attn, const char *option)
{
    size_t length = strlen(option);
    for (const char *at = attn + strcspn(attn, ":,"); *at; at += 1 + strcspn(at + 1, ":,"))
        if (strncmp(at + 1, option, length) == 0 && at[1 + length] == '=')
            return true;
    return false;
}

/* Moves the value of a flag into the text of the option `modules`, so that files record the value once. */
static att_status move_into_modules(att_context *context, att_recipe_network *network, const char *flag,
                                    const char *option, const char **value)
{
    char completed[2 * ATT_OPTION_TEXT_BYTES];
    const char *modules = att_options_text(&network->options, "modules");
    size_t named = strcspn(modules, ":@"), module = strcspn(modules, "@");
    if (!*value)
        return ATT_OK;
    if (named != strlen(step) || strncmp(modules, step, named) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "--%s %s is an option of --modules step, but --modules is %s", flag,
                        *value, *modules ? modules : "not given");
    if (sets_option(modules, option))
        return att_fail(context, ATT_ERR_ARGUMENT, "--%s %s: --modules already sets %s, in %s; leave one of them out",
                        flag, *value, option, modules);
    snprintf(completed, sizeof completed, "%.*s%c%s=%s%s", (int)module, modules, named < module ? ',' : ':', option,
             *value, modules + module);
    if (strlen(completed) >= find_declared("modules")->size)
        return att_fail(context, ATT_ERR_ARGUMENT, "--%s %s makes modules too long: %s", flag, *value, completed);
    att_options_set_text(&network->options, "modules", completed);
    *value = NULL;
    return ATT_OK;
}

static bool is_whole(double number)
{
    return number == (int)number;
}

/* --input-size overrides img_size and in_chans of the same source and of earlier ones. */
static att_status merge_input_size(att_context *context, void *values)
{
    att_recipe_network *network = values;
    const double *size = network->input_size.values;
    int count = network->input_size.count;
    if (count == 0)
        return ATT_OK;
    if (count != 3 || !is_whole(size[0]) || !is_whole(size[1]) || !is_whole(size[2]))
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "--input-size needs three whole numbers: channels, height, width (--img-size needs one or two)");
    att_options_set(&network->options, "in_chans", size[0]);
    att_options_set_sides(&network->options, "img_size", (int)size[1], (int)size[2]);
    network->input_size.count = 0;
    return ATT_OK;
}

static att_status complete_network(att_context *context, void *values)
{
    att_recipe_network *network = values;
    ATT_TRY(move_into_modules(context, network, "adaptor", "adaptor", &network->adaptor));
    return move_into_modules(context, network, "adaptor-input", "input", &network->adaptor_input);
}

const att_flag_group att_recipe_network_group = {"Network (default: the model's own)",
                                                 .make_rows = make_network_rows,
                                                 .merge = merge_input_size,
                                                 .complete = complete_network,
                                                 .owner = "network",
                                                 .usual = 5},
                     att_recipe_options_group = {"Network (default: as named)", .make_rows = make_option_rows,
                                                 .merge = merge_input_size, .complete = complete_network,
                                                 .owner = "network"};

/* --- preprocessing ------------------------------------------------------------------------------------------------ */

static const att_flag preprocess_options[] = {
    {"mean", .kind = ATT_FLAG_REALS, .value = "X...", .help = "of pixels in 0..1: one number, or one for each channel",
     ATT_FLAG_AT(att_recipe_preprocess, mean), .low = 0, .high = 1},
    {"std", .kind = ATT_FLAG_REALS, .value = "X...", .help = "of pixels in 0..1: one number, or one for each channel",
     ATT_FLAG_AT(att_recipe_preprocess, std), .low = 1e-6, .high = 10},
    {"crop-pct", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "size of the crop over the size that images are resized to", ATT_FLAG_AT(att_recipe_preprocess, crop_pct),
     .low = 0.01, .high = 10, .open = true},
    {"crop-mode", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "evaluation; center: keep the aspect ratio and cover the crop; floor: as center, with offsets rounded "
             "down, as transformers does; squash: ignore the aspect ratio; border: fit the whole "
             "image in and fill up with the mean; keep: keep the aspect ratio of the whole image, so that images have "
             "several sizes, and fill up with 0 to multiples of 32; within: as keep, with sides rounded down, as "
             "torchvision's "
             "detectors do",
     .choices = (const char *const[]){"center", "floor", "squash", "border", "keep", "within", NULL},
     ATT_FLAG_AT(att_recipe_preprocess, crop_mode)},
    {"interpolation", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "of resizing; bicubic_float, bilinear_float: without rounding to bytes, as DINOv3's in transformers; "
             "bilinear_plain: also without antialiasing, as torchvision's detectors",
     .choices = (const char *const[]){"bicubic", "bilinear", "nearest", "bicubic_float", "bilinear_float",
                                      "bilinear_plain", NULL},
     ATT_FLAG_AT(att_recipe_preprocess, interpolation)},
    {"exif-transpose", .kind = ATT_FLAG_SWITCH,
     .help = "turn photographs as their EXIF data say; without it they are read as they are stored, as in timm",
     ATT_FLAG_AT(att_recipe_preprocess, exif_transpose)},
};

static att_status take_channels(att_context *context, const char *name, const att_reals *reals, int channels,
                                double values[3])
{
    if (reals->count == 0)
        return ATT_OK;
    if (reals->count != 1 && reals->count != channels)
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "--%s has %d numbers, but the network's images have %d channel%s; give one number, or one a channel", name,
            reals->count, channels, channels == 1 ? "" : "s");
    for (int i = 0; i < 3; i++)
        values[i] = reals->values[i < reals->count ? i : 0];
    return ATT_OK;
}

att_status att_recipe_preprocess_apply(att_context *context, const att_recipe_preprocess *given,
                                       att_preprocess *preprocess)
{
    ATT_TRY(take_channels(context, "mean", &given->mean, preprocess->in_chans, preprocess->mean));
    ATT_TRY(take_channels(context, "std", &given->std, preprocess->in_chans, preprocess->std));
    if (given->crop_pct > 0)
        preprocess->crop_pct = given->crop_pct;
    if (given->crop_mode)
        snprintf(preprocess->crop_mode, sizeof preprocess->crop_mode, "%s", given->crop_mode);
    if (given->interpolation)
        snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", given->interpolation);
    preprocess->exif_transpose = given->exif_transpose;
    return ATT_OK;
}

const att_flag_group att_recipe_preprocess_group = {"Preprocessing (default: the model's own)",
                                                    ROWS(preprocess_options), .owner = "preprocess"};

/* --- engine ------------------------------------------------------------------------------------------------------- */

static const char bfloat16[] = "bfloat16";

/* float16 is listed because timm's files contain it even without mixed precision. att_recipe_engine_check() refuses it
 * with amp. */
static const att_flag engine_options[] = {
    {"threads", .kind = ATT_FLAG_INT, .value = "N",
     .help = "of the engine; 0: one per processor, or an equal share for each of several processes on a machine",
     ATT_FLAG_AT(att_recipe_engine, threads), .low = 0, .high = 1024},
    {"backend", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "cpu",
     .help = "where to compute; cuda: an NVIDIA GPU; ref: the plain reference",
     .choices = (const char *const[]){"cpu", "cuda", "ref", NULL}, ATT_FLAG_AT(att_recipe_engine, backend)},
    {"amp", .kind = ATT_FLAG_SWITCH, .help = "mixed precision: matrix products in bf16, weights and sums in f32",
     ATT_FLAG_AT(att_recipe_engine, amp)},
    {"amp-dtype", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = bfloat16,
     .help = "data type of mixed precision; only bfloat16 is supported",
     .choices = (const char *const[]){bfloat16, "float16", NULL}, ATT_FLAG_AT(att_recipe_engine, amp_dtype)},
    {"amp-force", .kind = ATT_FLAG_SWITCH, .help = "allow --amp without AVX-512: slower than f32",
     ATT_FLAG_AT(att_recipe_engine, amp_force)},
};

const att_flag_group att_recipe_engine_group = {"Engine", ROWS(engine_options), .owner = "engine"};

att_status att_recipe_engine_check(att_context *context, const att_recipe_engine *engine)
{
    if (engine->amp && strcmp(engine->amp_dtype, bfloat16) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "--amp computes in %s only, not in %s; use --amp-dtype %s", bfloat16,
                        engine->amp_dtype, bfloat16);
    if (engine->amp_force && !engine->amp)
        return att_fail(context, ATT_ERR_ARGUMENT, "--amp-force has no effect without --amp; give both or none");
    if (!engine->amp || engine->amp_force || strcmp(engine->backend, "cpu") != 0 ||
        (att_context_features(context) & ATT_AVX512))
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "--amp needs a processor with AVX-512; this one has %s (--amp-force "
                    "uses it nevertheless, slower than f32)",
                    att_context_tier(context));
}

att_precision att_recipe_precision(const att_recipe_engine *engine)
{
    return engine->amp ? ATT_MIXED : ATT_FULL;
}
