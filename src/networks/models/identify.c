#include "networks/models/identify.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/models/patches.h"

void att_identify_disambiguate(const att_identification *s, const att_family *family, const att_option_values *own,
                               att_option_values *found)
{
    if (family->disambiguate)
        family->disambiguate(s->file, &(att_known){&s->config.options, &s->from_file, own}, found);
}

/* Sets *found to the options that the variant's family finds in the tensors, *own and *preprocess to the variant's
 * values. */
static att_status read_tensors(const att_identification *s, const att_variant *variant, att_option_values *found,
                               att_option_values *own, att_preprocess *preprocess)
{
    *found = att_options_none();
    ATT_TRY(att_family_recognise(s->context, variant->family, s->file, found));
    att_variant_defaults(variant, found, own, preprocess);
    att_identify_disambiguate(s, variant->family, own, found);
    att_patches_adopt_size(own, found);
    return ATT_OK;
}

/* Decides from the tensors whether there is a classifier: side files of networks without a head often give the number
 * of classes of another checkpoint. */
static void resolve_classes(const att_identification *s, const att_option_values *found, att_option_values *options)
{
    for (int i = 0; i < att_tensors_count(s->file); i++)
        if (att_task_of_parameter(s->context, att_tensors_at(s->file, i).name))
            return; /* the task brings its own head */
    static const char key[] = "num_classes";
    bool headless = att_options_number(found, key, 1) == 0, given_headless = att_options_number(options, key, 1) == 0;
    if (!s->caller_gives_classes && att_options_find(found, key) && headless != given_headless)
        att_option_copy(key, found, options);
}

/* For options of which the tensors only show whether they are 0, takes the value of the variant. */
static void take_present_values(const att_option_table *table, const att_option_values *own, att_option_values *found)
{
    for (int i = 0; i < table->count; i++) {
        const char *key = table->options[i].key;
        if (table->options[i].compare_presence && att_options_number(found, key, 0) > 0 &&
            att_options_number(own, key, 0) > 0)
            att_option_copy(key, own, found);
    }
}

/* Sets the options that only the tensors determine. */
static att_status fit(const att_identification *s, const att_family *family, att_option_values *options)
{
    att_settings_buffer settings;
    ATT_TRY(att_options_read(s->context, family->options, options, &settings));
    ATT_TRY(family->fit(s->context, s->file, &settings));
    att_options_write(family->options, &settings, options);
    return ATT_OK;
}

/* Refuses a side file that describes a network of another size than the tensors. */
static att_status check_side_files(const att_identification *s, const att_option_values *found)
{
    static const char *const keys[] = {"depth", "embed_dim"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *from = att_identify_provider(s, keys[i]);
        const double given = att_options_number(&s->config.options, keys[i], 0),
                     shown = att_options_number(found, keys[i], given);
        if ((from == att_from_config || from == att_from_arguments) && given != shown)
            return att_fail(s->context, ATT_ERR_MISMATCH,
                            "%s: %s says %s %g, but the tensors show %g; if %s belongs to another file, move that file "
                            "to a folder of its own",
                            s->path, from, keys[i], given, shown, from);
    }
    return ATT_OK;
}

static att_status resolve_options(const att_identification *s, const att_variant *variant, att_option_values found,
                                  const att_option_values *own, att_option_values *options)
{
    const att_family *family = variant->family;
    *options = s->config.options;
    resolve_classes(s, &found, options);
    ATT_TRY(check_side_files(s, &found));
    ATT_TRY(att_family_check(s->context, family, options));
    const char *modules = att_options_text(&found, "modules");
    ATT_TRY(att_placed_complete(s->context, *modules ? modules : att_options_text(own, "modules"), options));
    if (family->check_undetermined)
        ATT_TRY(family->check_undetermined(s->context, s->file,
                                           &(att_option_sources){s->path, s->config.name, options, &found, own}));
    take_present_values(family->options, own, &found);
    att_options_fill(options, &found);
    att_options_fill(options, own);
    att_options_drop_training(options);
    /* Values found from tensors are not trusted either. */
    if (att_family_check(s->context, family, options) != ATT_OK)
        return att_fail(s->context, ATT_ERR_FORMAT,
                        "%s: its tensors have dimensions that no model of attscope can have", s->path);
    ATT_TRY(att_family_complete(s->context, family, options));
    return family->fit ? fit(s, family, options) : ATT_OK;
}

/* If the caller gives the network another task, which makes images of its own, these replace those of the file. */
static void take_task_images(att_identification *s, const att_option_values *flags)
{
    att_option_values options = att_options_none();
    att_preprocess images = {.height = 0};
    const char *task = att_options_text(&s->config.options, "task");
    if (strcmp(att_options_text(&s->from_file, "task"), task) == 0 ||
        !att_task_take_images(s->context, task, &options, &images))
        return;
    if (att_options_find(&options, "img_size") && !(flags && att_options_find(flags, "img_size")))
        att_option_copy("img_size", &options, &s->config.options);
    s->config.crop_pct = images.crop_pct;
    memcpy(s->config.crop_mode, images.crop_mode, sizeof s->config.crop_mode);
    if (*images.interpolation)
        memcpy(s->config.interpolation, images.interpolation, sizeof s->config.interpolation);
    s->config.test_height = s->config.test_width = 0;
    s->config.test_crop_pct = 0;
}

static void resolve_preprocess(const att_identification *s, att_preprocess *preprocess,
                               const att_option_values *options)
{
    att_options_size(options, preprocess);
    att_config_apply(&s->config, preprocess);
    att_preprocess_average(preprocess);
}

/* Returns the file's value of a text option unless the caller gives another; "" if there is none. */
static const char *left_to_file(const att_identification *s, const char *key)
{
    const char *by_file = att_options_text(&s->from_file, key);
    return strcmp(by_file, att_options_text(&s->config.options, key)) == 0 ? by_file : "";
}

/* Refuses a network with modules or tasks that another program had registered and this context lacks. */
static att_status check_registered(const att_identification *s)
{
    static const char refusal[] =
        "%s: its network has the %s \"%s\", which is neither built in nor registered with this context (%s)";
    const char *task = left_to_file(s, "task");
    char module[ATT_OPTION_TEXT_BYTES];
    att_task_info info;
    if (att_modules_find_missing(s->context, left_to_file(s, "modules"), module, sizeof module))
        return att_fail(s->context, ATT_ERR_UNSUPPORTED, refusal, s->path, "module", module, "att_module_register()");
    if (*task && att_task_find(s->context, task, &info) != ATT_OK)
        return att_fail(s->context, ATT_ERR_UNSUPPORTED, refusal, s->path, "task", task, "att_task_register()");
    return ATT_OK;
}

static att_status identify(att_identification *s, const char *name, const att_option_values *flags,
                           att_identity *identity)
{
    ATT_TRY(att_identify_read_sources(s, name, flags));
    ATT_TRY(check_registered(s));
    take_task_images(s, flags);
    if (!s->config.name[0])
        return att_identify_fail_unnamed(s);
    att_variant variant = s->variant;
    /* attscope's metadata gives every option; the layout of another program gives the name of a similar network. */
    if (s->name_from != att_from_metadata && s->name_from != s->file->identity_from && !s->is_described)
        ATT_TRY(att_identify_check_name(s, variant));
    att_identity made = {0};
    att_option_values found, own;
    snprintf(made.name, sizeof made.name, "%s", s->named.network);
    ATT_TRY(read_tensors(s, &variant, &found, &own, &made.preprocess));
    att_status status = resolve_options(s, &variant, found, &own, &made.options);
    if (status != ATT_OK)
        return status == ATT_ERR_NOT_FOUND ? ATT_ERR_ARGUMENT : status; /* NOT_FOUND: an unknown network */
    resolve_preprocess(s, &made.preprocess, &made.options);
    made.test_height = s->config.test_height;
    made.test_width = s->config.test_width;
    made.test_crop_pct = s->config.test_crop_pct;
    ATT_TRY(att_family_complete(s->context, variant.family, &own));
    ATT_TRY(att_identify_describe(s, &own, &found, &made));
    if (flags)
        att_family_note_ignored(s->context, variant.family, flags, &made.options);
    *identity = made;
    return ATT_OK;
}

static att_status search_network(att_context *context, const att_tensors *file, const char *path, const char *name,
                                 const att_option_values *flags, att_identity *identity)
{
    att_identification s = {.context = context,
                            .file = file,
                            .path = path ? path : att_tensors_path(file),
                            .config = att_config_none(),
                            .from_file = att_options_none(),
                            .notes.context = context};
    att_status status = identify(&s, name, flags, identity);
    att_text_free(&s.notes);
    return status;
}

/* Invalid options are reported as the caller's error only if the file is valid without the caller's options. */
att_status att_model_identify(att_context *context, const att_tensors *file, const char *path, const char *name,
                              const att_option_values *flags, att_identity *identity)
{
    att_identity unused;
    char message[512];
    ATT_TRY(att_require(context, file, "the file to identify"));
    att_status status = search_network(context, file, path, name, flags, identity);
    if (status != ATT_ERR_ARGUMENT)
        return status;
    snprintf(message, sizeof message, "%s", att_context_message(context));
    if (search_network(context, file, path, name, NULL, &unused) != ATT_ERR_ARGUMENT)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s", message);
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the network that the file and its side files describe cannot be built: %s; flags, such as "
                    "--num-heads for num_heads, replace what these files say",
                    path ? path : att_tensors_path(file), message);
}
