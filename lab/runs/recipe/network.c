#include "lab/runs/recipe/network.h"

#include <stdio.h>
#include <string.h>

#include <attscope/hub.h>

#include "base/core/error.h"
#include "base/core/log.h"
#include "base/core/options.h"
#include "base/io/file.h"
#include "lab/runs/recipe/recipe.h"
#include "networks/models/describe.h"
#include "networks/models/family.h"
#include "networks/tasks/task.h"
#include "study/network/network.h"
#include "study/train/alerts.h"
#include "study/train/options.h"

/* A recipe that names something unknown or unsupported is an invalid argument. The message is unchanged. */
static att_status as_argument(att_status status)
{
    return status == ATT_ERR_NOT_FOUND || status == ATT_ERR_UNSUPPORTED ? ATT_ERR_ARGUMENT : status;
}

/* Options that only training reads come from the recipe, not from the checkpoint. */
static void copy_training_options(const att_option_values *recipe, const char *network, att_option_values *to)
{
    const att_family_info family = att_model_family_of(network);
    for (int i = 0; i < family.option_count; i++)
        if (family.options[i].training)
            att_option_copy(family.options[i].key, recipe, to);
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

/* If the initial checkpoint is a folder, chooses the same file in it as an evaluation. */
static att_status find_initial(att_trained_network *n)
{
    if (!att_tensors_exist(n->checkpoint) && !att_hub_is_name(n->checkpoint))
        return att_fail(n->context, ATT_ERR_NOT_FOUND, "--initial-checkpoint: there is no file or folder \"%s\"",
                        n->checkpoint);
    ATT_TRY(att_network_find_file(n->context, n->checkpoint, n->path, sizeof n->path));
    if (att_file_is_folder(n->checkpoint))
        att_log(n->context, ATT_LOG_INFO, "%s is a folder; using its %s", n->checkpoint,
                n->path + strlen(n->checkpoint) + 1);
    n->checkpoint = n->path;
    return ATT_OK;
}

/* Returns the value of an option as one text. */
static const char *format_option(const att_option *option, const att_option_values *values,
                                 char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES])
{
    const int count = att_option_format(option, values, texts);
    if (count > 1)
        snprintf(texts[0] + strlen(texts[0]), ATT_OPTION_TEXT_BYTES - strlen(texts[0]), " %.64s", texts[1]);
    return count > 0 ? texts[0] : "";
}

/* Describes the first difference between the networks of the checkpoint and of the recipe. */
static void describe_difference(const att_identity *own, att_trained_network *n)
{
    char stored[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES], here[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
    const att_family_info family = att_model_family_of(own->name);
    if (strcmp(own->name, n->identity.name) != 0) {
        snprintf(n->difference, sizeof n->difference, "its network is %s, here it is %s", own->name, n->identity.name);
        return;
    }
    for (int i = 0; i < family.option_count && !*n->difference; i++) {
        const att_option *option = &family.options[i];
        if (!option->training && !att_option_same(option, &own->options, &n->identity.options))
            snprintf(n->difference, sizeof n->difference, "it was trained with %s \"%s\", not \"%s\"", option->key,
                     format_option(option, &own->options, stored), format_option(option, &n->identity.options, here));
    }
}

/* att_train_check() refuses another network, but names no option. */
static att_status compare_networks(const att_tensors *file, att_trained_network *n)
{
    att_identity own;
    if (!n->resumes)
        return ATT_OK;
    ATT_TRY(att_model_identify(n->context, file, n->checkpoint, NULL, NULL, &own));
    describe_difference(&own, n);
    return ATT_OK;
}

/* Identifies the network in the file. */
static att_status identify(const att_tensors *file, const att_recipe_network *network, att_trained_network *n)
{
    att_network_name found;
    ATT_TRY(att_checkpoint_describe(n->context, file, &n->progress));
    if (n->resumes && !n->progress.training)
        return att_fail(n->context, ATT_ERR_MISMATCH, "%s holds weights, but no training that can be resumed",
                        n->checkpoint);
    if (*att_tensors_skipped(file))
        att_log(n->context, ATT_LOG_INFO, "%s: skipped, because the network does not use them: %s", n->checkpoint,
                att_tensors_skipped(file));
    if (network->model)
        ATT_TRY(as_argument(att_model_resolve(n->context, network->model, &found)));
    ATT_TRY(att_model_identify(n->context, file, n->checkpoint, network->model, &network->options, &n->identity));
    return compare_networks(file, n);
}

/* The network's options come from the file. In a new training the number of classes comes from the recipe. */
static void choose_options(att_recipe_network *network, att_trained_network *n)
{
    const att_option_values recipe = network->options;
    network->options = n->identity.options;
    if (!n->resumes)
        att_option_copy("num_classes", &recipe, &network->options);
    copy_training_options(&recipe, n->identity.name, &network->options);
    n->name = n->identity.name;
}

static att_status read_checkpoint(att_recipe *recipe, att_trained_network *n)
{
    att_tensors *file = NULL;
    char text[ATT_IDENTITY_DESCRIPTION];
    if (!n->resumes)
        ATT_TRY(find_initial(n));
    ATT_TRY(att_model_open_file_as(n->context, n->checkpoint, recipe->network.model, &file));
    att_status status = identify(file, &recipe->network, n);
    att_tensors_close(&file);
    ATT_TRY(status);
    att_preprocess taken = n->identity.preprocess;
    ATT_TRY(att_recipe_preprocess_apply(n->context, &recipe->preprocess, &taken));
    if (n->resumes && recipe->network.model) /* from args.yaml, which is part of what is resumed */
        snprintf(n->identity.brief, sizeof n->identity.brief, "args.yaml");
    att_log(n->context, ATT_LOG_INFO, "the checkpoint: %s",
            att_identity_describe(n->context, &n->identity, &taken, text));
    if (!n->resumes && n->progress.ema)
        att_log(n->context, ATT_LOG_INFO,
                "%s has averaged weights too, which are not used: attscope convert --use-ema makes a file of them",
                n->checkpoint);
    choose_options(&recipe->network, n);
    return ATT_OK;
}

static att_status name_network(const att_recipe *recipe, att_trained_network *n)
{
    att_network_name found;
    n->name = recipe->network.model;
    if (!n->name)
        return att_fail(n->context, ATT_ERR_ARGUMENT,
                        "no network is named; give --model NAME (attscope models lists the names)");
    ATT_TRY(as_argument(att_model_resolve(n->context, n->name, &found)));
    if (found.deprecated)
        att_log(n->context, ATT_LOG_INFO, "%s is timm's deprecated name of %s%s%s", n->name, found.network,
                *found.tag ? "." : "", found.tag);
    return ATT_OK;
}

static att_status build(const att_recipe *recipe, const att_trained_network *n, att_model **model)
{
    att_option_values options = recipe->network.options;
    if (!att_options_find(&options, "num_classes"))
        att_options_set(&options, "num_classes", 1);
    return att_model_create(n->context, n->name, &options, ATT_F32, model);
}

att_status att_trained_network_sees(const att_recipe *recipe, const att_trained_network *n, const char *with,
                                    bool *sees)
{
    att_model *model = NULL;
    att_measure *measure = NULL;
    att_status status = build(recipe, n, &model);
    if (status == ATT_OK)
        status = att_measure_create(att_model_graph(model), with, "*", &measure);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    *sees = status == ATT_OK;
    return status == ATT_ERR_NOT_FOUND ? ATT_OK : status;
}

static att_status try_model(const att_recipe *recipe, const att_model *model, att_trained_network *n, const char *with,
                            const char *nodes)
{
    const att_task_info task = att_model_task(model);
    att_measure *measure = NULL;
    ATT_TRY(att_recipe_check_task(n->context, recipe, &task));
    n->preprocess = att_model_preprocess(model);
    ATT_TRY(att_recipe_preprocess_apply(n->context, &recipe->preprocess, &n->preprocess));
    if (!with)
        return ATT_OK;
    att_status status = as_argument(att_measure_create(att_model_graph(model), with, nodes, &measure));
    att_measure_destroy(&measure);
    return status;
}

att_status att_trained_network_try(const att_recipe *recipe, att_trained_network *n, const char *with,
                                   const char *nodes)
{
    att_model *model = NULL;
    ATT_TRY(build(recipe, n, &model));
    att_status status = try_model(recipe, model, n, with, nodes);
    att_model_destroy(&model);
    return status;
}

/* A network's name would be a teacher with random weights. */
static att_status find_teacher(att_context *context, const char *teacher, bool resumes)
{
    char path[ATT_RUN_PATH];
    if (!teacher)
        return ATT_OK;
    if (!att_tensors_exist(teacher) && !att_hub_is_name(teacher))
        return att_fail(context, ATT_ERR_NOT_FOUND, "--teacher: there is no file or folder \"%s\"%s", teacher,
                        resumes ? "; if it has moved, give its new place with --teacher FILE" : "");
    return att_network_find_file(context, teacher, path, sizeof path);
}

/* Those that the recipe names, and with alerts those that the rules read, if the network has them. */
static att_status list_instruments(const att_recipe *recipe, att_trained_network *n)
{
    const char *with = recipe->measure.with;
    n->with.context = n->context;
    if (with)
        att_text_append(&n->with, "%s%s", with[0] == '-' ? "all," : "", with);
    if (recipe->train.alert)
        att_text_append(&n->with, "%s%s", with ? "," : "", att_alerts_instruments());
    return n->with.failed ? att_fail_memory(n->context, n->with.length, "a list of instruments") : ATT_OK;
}

att_status att_trained_network_find(att_recipe *recipe, const char *resume, att_trained_network *n)
{
    ATT_TRY(list_instruments(recipe, n));
    if (n->with.length > 0)
        ATT_TRY(as_argument(att_instruments_check(n->context, n->with.data)));
    n->resumes = *resume != '\0';
    ATT_TRY(find_teacher(n->context, recipe->files.teacher, n->resumes));
    n->checkpoint = n->resumes ? resume : recipe->files.initial_checkpoint;
    ATT_TRY(n->checkpoint ? read_checkpoint(recipe, n) : name_network(recipe, n));
    if (!n->checkpoint && recipe->train.freeze && *recipe->train.freeze)
        att_log(n->context, ATT_LOG_WARNING,
                "--freeze keeps the random numbers with which the network begins; --initial-checkpoint gives it "
                "pretrained weights");
    return att_trained_network_try(recipe, n, n->with.data, recipe->measure.nodes);
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* Sets the number of classes, unless it is given, to that of the data or of the class map. A continued training keeps
 * the number of classes of its checkpoint. */
static void choose_class_count(att_recipe *recipe, const att_dataset *data, const att_trained_network *n)
{
    int in_data = att_dataset_class_count(data);
    bool mapped = att_dataset_numbering(data) == ATT_NUMBERED_BY_MAP;
    if (att_options_find(&recipe->network.options, "num_classes"))
        return;
    att_options_set(&recipe->network.options, "num_classes", in_data);
    att_log(n->context, ATT_LOG_INFO, "--num-classes %d, as many as %s", in_data,
            mapped ? "the class map names" : "the data has");
}

static att_status check_classes(const att_trained_network *n, const att_dataset *data)
{
    int in_data = att_dataset_class_count(data), classes = att_model_classes(n->model);
    if (att_model_task(n->model).head_scope || classes == in_data)
        return ATT_OK;
    if (classes > in_data) {
        att_log(n->context, ATT_LOG_INFO,
                "the network has %d classes, but the data has %d; --num-classes %d leaves the others out", classes,
                in_data, in_data);
        return ATT_OK;
    }
    return att_fail(n->context, ATT_ERR_ARGUMENT,
                    "--num-classes %d, but the data has %d classes, each of which needs an output", classes, in_data);
}

/* Logs hints if the network and the images differ in channels or size. */
static void compare_images(const att_recipe *recipe, const att_trained_network *n, const att_dataset *data)
{
    const att_preprocess *network = &n->preprocess;
    att_recipe chosen = *recipe;
    att_recipe_choose_images(n->context, &chosen);
    /* the settings of these modes, not the network, give images their size */
    const bool scaled =
        !recipe->images.no_aug && (att_recipe_keeps_all(&chosen.images) || strcmp(chosen.images.crop_mode, "rsc") == 0);
    att_image image;
    att_colours colours = att_dataset_colours(data, n->context);
    if (network->in_chans == 0)
        return;
    if (network->in_chans == 3 && colours == ATT_COLOURS_GREY)
        att_log(n->context, ATT_LOG_INFO, "the images are grey: --in-chans 1 builds a network for grey images");
    if (network->in_chans == 1 && colours == ATT_COLOURS_ANY)
        att_log(n->context, ATT_LOG_INFO, "the images are converted to grey, because the network takes grey images");
    if (att_dataset_read(data, n->context, 0, network->in_chans, &image) != ATT_OK)
        return;
    if (!scaled && strcmp(network->crop_mode, "keep") != 0 && strcmp(network->crop_mode, "within") != 0 &&
        2 * image.width <= network->width && 2 * image.height <= network->height)
        att_log(n->context, ATT_LOG_INFO,
                "images of %d x %d pixels are enlarged to %d x %d; --img-size and --patch-size give a smaller network",
                image.width, image.height, network->width, network->height);
    att_image_free(n->context, &image);
}

static void log_network(const att_trained_network *n)
{
    const att_option_values *options = att_model_options(n->model);
    char inputs[ATT_INPUTS_TEXT], head[ATT_HEAD_TEXT], additions[ATT_ADDITIONS_TEXT];
    att_additions_describe(options, additions);
    if (n->preprocess.in_chans > 0)
        snprintf(inputs, sizeof inputs, "%d x %d x %d", n->preprocess.height, n->preprocess.width,
                 n->preprocess.in_chans);
    else
        att_model_inputs_describe(n->model, inputs);
    att_log(n->context, ATT_LOG_INFO, "trains %s, %s, %s, %lld parameters, %s", n->name, inputs,
            att_head_describe(n->context, options, head),
            (long long)att_graph_parameter_elements(att_model_graph(n->model)), *additions ? additions : "no modules");
}

/* Instruments that compare answers with classes record nothing while images are mixed. */
static void log_unmeasured(const att_trained_network *n)
{
    for (int i = 0; i < att_measure_instrument_count(n->measure); i++)
        if (att_measure_instrument_at(n->measure, i).needs_labels)
            att_log(n->context, ATT_LOG_INFO, "%s is not measured while training: mixed images have no single class",
                    att_measure_instrument_at(n->measure, i).name);
}

static att_status make_measure(const att_recipe *recipe, att_trained_network *n)
{
    const att_recipe_measure *m = &recipe->measure;
    if (n->with.length == 0)
        return ATT_OK;
    ATT_TRY(as_argument(att_measure_create(att_model_graph(n->model), n->with.data, m->nodes, &n->measure)));
    if (att_train_mixes(&recipe->train))
        log_unmeasured(n);
    return ATT_OK;
}

att_status att_trained_network_make(att_recipe *recipe, const att_dataset *data, att_trained_network *n)
{
    choose_class_count(recipe, data, n);
    ATT_TRY(att_model_create(n->context, n->name, &recipe->network.options, ATT_F32, &n->model));
    ATT_TRY(att_model_need_image(n->model));
    ATT_TRY(check_classes(n, data));
    n->preprocess = n->checkpoint ? n->identity.preprocess : att_model_preprocess(n->model);
    ATT_TRY(att_recipe_preprocess_apply(n->context, &recipe->preprocess, &n->preprocess));
    att_model_set_preprocess(n->model, &n->preprocess);
    log_network(n);
    if (!n->checkpoint)
        compare_images(recipe, n, data);
    ATT_TRY(make_measure(recipe, n));
    return att_weights_create(att_model_graph(n->model), "cpu", &n->weights);
}

/* --- the teacher ------------------------------------------------------------------------------------------------- */

/* The teacher takes inputs of the network's shapes. */
static att_network_options teacher_options(const att_recipe *recipe, const att_trained_network *n,
                                           att_option_values *options)
{
    att_network_options made = att_network_options_defaults();
    *options = att_options_none();
    att_model_copy_varying(n->model, options);
    made.options = options;
    made.model = recipe->files.teacher_model;
    made.backend = recipe->engine.backend;
    made.precision = att_recipe_precision(&recipe->engine);
    return made;
}

static att_status fail_teacher(att_trained_network *n, const char *teacher, att_status status)
{
    char why[1024], inputs[ATT_INPUTS_TEXT];
    snprintf(why, sizeof why, "%s", att_context_message(n->context));
    return att_fail(n->context, status, "--teacher %s, for %s: %s%s", teacher,
                    att_model_inputs_describe(n->model, inputs), why,
                    status == ATT_ERR_NOT_FOUND ? "; for a teacher it is --teacher-model NAME (teacher_model)" : "");
}

static void log_teacher(const att_recipe *recipe, const att_trained_network *n)
{
    const att_preprocess own = att_network_trained_preprocess(n->teacher);
    char text[ATT_IDENTITY_DESCRIPTION];
    att_log(n->context, ATT_LOG_INFO, "the teacher %s: %s", recipe->files.teacher,
            att_identity_describe(n->context, att_network_identity(n->teacher), &own, text));
}

att_status att_trained_network_open_teacher(const att_recipe *recipe, const att_dataset *data, att_trained_network *n)
{
    const char *teacher = recipe->files.teacher;
    att_option_values options;
    if (!teacher)
        return ATT_OK;
    const att_network_options how = teacher_options(recipe, n, &options);
    att_log_about(n->context, "the teacher: ");
    att_status status = att_network_open(n->context, teacher, &how, &n->teacher);
    att_log_about(n->context, NULL);
    if (status != ATT_OK)
        return fail_teacher(n, teacher, status);
    log_teacher(recipe, n);
    /* The training refuses a teacher of other classes than the network's. */
    if (att_model_classes(att_network_model(n->teacher)) != att_model_classes(n->model))
        return ATT_OK;
    att_log_about(n->context, "the teacher: ");
    status = att_network_compare_classes(n->teacher, data, false);
    att_log_about(n->context, NULL);
    return status;
}

/* --- filling ------------------------------------------------------------------------------------------------------ */

static att_status load(const att_dataset *data, att_trained_network *n)
{
    att_tensors *file;
    att_new_head head;
    ATT_TRY(att_model_open_file_as(n->context, n->checkpoint, n->name, &file));
    att_status status = att_model_load_pretrained(n->model, file, n->weights, &head);
    if (status == ATT_OK && !*head.names && att_model_classes(n->model) == att_dataset_class_count(data))
        status = att_network_note_kept_classes(n->model, n->checkpoint, file, data);
    att_tensors_close(&file);
    if (status == ATT_OK && *head.names && head.classes == 0)
        att_log(n->context, ATT_LOG_INFO, "%s: initialised, because %s has none", head.names, n->checkpoint);
    else if (status == ATT_OK && *head.names)
        att_log(n->context, ATT_LOG_INFO, "%s: re-initialised, because the file has %lld classes and the network %d",
                head.names, (long long)head.classes, att_model_classes(n->model));
    return status;
}

att_status att_trained_network_fill(const att_recipe *recipe, const att_dataset *data, att_trained_network *n)
{
    if (n->resumes)
        return ATT_OK;
    ATT_TRY(att_weights_initialise(n->weights, recipe->train.seed));
    return n->checkpoint ? load(data, n) : ATT_OK;
}

void att_trained_network_free(att_trained_network *n)
{
    att_measure_destroy(&n->measure);
    att_text_free(&n->with);
    att_network_close(&n->teacher);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}
