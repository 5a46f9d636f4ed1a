#include <attscope/lab/training.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <attscope/evaluate.h>
#include <attscope/file.h>
#include <attscope/network.h>
#include <attscope/store.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/flags/flags.h"
#include "base/io/file.h"
#include "base/io/yaml.h"
#include "data/dataset.h"
#include "lab/runs/recipe/network.h"
#include "lab/runs/recipe/recipe.h"
#include "lab/runs/records/folder.h"
#include "study/train/trainer.h"

struct att_training {
    att_context *context;
    att_recipe recipe;
    att_run_folder folder;
    att_trained_network network;
    att_dataset *train, *eval;
    att_transform_options train_transform, eval_transform;
    att_teacher teacher;        /* zero: none */
    char initial[ATT_RUN_PATH]; /* files.initial_checkpoint of a continued run, from its args.yaml */
    bool has_run;
    const att_sink *listener; /* NULL: none */
    att_sink records;         /* open from the first event of the training */
};

/* --- data --------------------------------------------------------------------------------------------------------- */

static att_status open_split(const att_training *t, const char *split, const att_dataset *trained,
                             att_dataset **dataset)
{
    char text[ATT_RUN_PATH];
    att_dataset_options options = att_recipe_dataset_options(t->context, &t->recipe, split);
    if (trained) {
        options.trained = att_dataset_class_names(trained);
        options.trained_count = att_dataset_class_count(trained);
    }
    att_status status = att_dataset_open(t->context, t->recipe.data.data_dir, &options, dataset);
    if (status == ATT_ERR_MISMATCH && options.class_map)
        att_log(t->context, ATT_LOG_INFO, "--class-map %s says which classes there are, one a line", options.class_map);
    ATT_TRY(status);
    att_log(t->context, ATT_LOG_INFO, "%s", att_dataset_describe(*dataset, text, sizeof text));
    return ATT_OK;
}

/* Whether each class is named by its number. */
static bool are_numbers(const att_dataset *dataset)
{
    char number[16];
    for (int c = 0; c < att_dataset_class_count(dataset); c++) {
        snprintf(number, sizeof number, "%d", c);
        if (strcmp(att_dataset_class_name(dataset, c), number) != 0)
            return false;
    }
    return true;
}

/* Refuses numbers as labels of the evaluation where names label the training: nobody says which number is which name.
 */
static att_status check_labels(const att_training *t)
{
    if (att_dataset_numbering(t->train) != ATT_NUMBERED_BY_FOLDERS ||
        att_dataset_numbering(t->eval) != ATT_NUMBERED_BY_LABELS || are_numbers(t->train))
        return ATT_OK;
    return att_fail(
        t->context, ATT_ERR_MISMATCH,
        "%s: the classes of %s have names, such as \"%s\", but the labels of %s are numbers; expected names "
        "in both, numbers in both, or --class-map FILE (class_map) with the names in the order of the numbers",
        t->recipe.data.data_dir, att_dataset_split(t->train), att_dataset_class_name(t->train, 0),
        att_dataset_split(t->eval));
}

/* Classes of the evaluation set that the training set lacks have no number. If the evaluation set's own folders
 * numbered its classes, the evaluation would be wrong. */
static att_status check_classes(const att_training *t)
{
    ATT_TRY(check_labels(t));
    const char *unknown =
        att_dataset_unknown_class(t->eval, att_dataset_class_names(t->train), att_dataset_class_count(t->train));
    if (att_dataset_numbering(t->eval) != ATT_NUMBERED_BY_FOLDERS || !unknown)
        return ATT_OK;
    return att_fail(t->context, ATT_ERR_MISMATCH, "%s: %s has the class \"%s\", which %s lacks",
                    t->recipe.data.data_dir, att_dataset_split(t->eval), unknown, att_dataset_split(t->train));
}

/* Appends a remedy to the message of a failure. Returns `status`. */
static att_status extend_message(const att_training *t, att_status status, const char *remedy)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", att_context_message(t->context));
    return att_fail(t->context, status, "%s%s", why, remedy);
}

static att_status open_eval(att_training *t)
{
    ATT_TRY(open_split(t, t->recipe.data.val_split, t->train, &t->eval));
    return check_classes(t);
}

static att_status open_data(att_training *t)
{
    const att_recipe_data *data = &t->recipe.data;
    ATT_TRY(open_split(t, data->train_split, NULL, &t->train));
    if (!*att_dataset_split(t->train)) {
        att_log(t->context, ATT_LOG_INFO, "%s has no splits: nothing to evaluate on", data->data_dir);
        return ATT_OK;
    }
    if (!*data->val_split) {
        att_log(t->context, ATT_LOG_INFO, "no evaluation: --val-split is empty");
        return ATT_OK;
    }
    att_status status = open_eval(t);
    return status == ATT_ERR_NOT_FOUND
               ? extend_message(t, status, "; give --val-split NAME, or --val-split '' to train without evaluation")
               : status;
}

/* --- the recipe --------------------------------------------------------------------------------------------------- */

static att_status make_transforms(att_training *t)
{
    if (!t->recipe.images.no_aug)
        att_recipe_choose_images(t->context, &t->recipe);
    t->train_transform = att_evaluate_transform(&t->network.preprocess);
    t->eval_transform = att_evaluate_loading(&t->network.preprocess);
    if (t->recipe.images.no_aug)
        t->train_transform = t->eval_transform;
    return att_recipe_transform(t->context, &t->recipe.images, &t->train_transform);
}

static void set_channels(att_reals *reals, const double *values, int count)
{
    reals->count = count;
    memcpy(reals->values, values, (size_t)count * sizeof *values);
}

/* Fills in the values that the recipe leaves to the network, the checkpoint, the data and the task. */
static void complete_recipe(att_training *t)
{
    att_recipe *r = &t->recipe;
    const att_preprocess *preprocess = &t->network.preprocess;
    const att_task_info task = att_model_task(t->network.model);
    r->network.model = att_model_name(t->network.model);
    r->network.options = *att_model_options(t->network.model);
    set_channels(&r->preprocess.mean, preprocess->mean, preprocess->in_chans);
    set_channels(&r->preprocess.std, preprocess->std, preprocess->in_chans);
    r->preprocess.crop_pct = preprocess->crop_pct;
    r->preprocess.crop_mode = preprocess->crop_mode;
    r->preprocess.interpolation = preprocess->interpolation;
    r->files.resume = NULL;
    att_recipe_take_task(r, &task);
}

/* Appends the flags of the recipe's member `images` that are not at their defaults, except --no-aug itself. */
static void list_augmentation(const att_training *t, const att_flags *flags, att_text *list)
{
    for (int i = 0; i < att_flags_count(flags); i++) {
        const att_flag_place place = att_flags_at(flags, i);
        if (place.offset == offsetof(att_recipe, images) && strcmp(place.flag->name, "no-aug") != 0 &&
            !att_flag_same(&place, &t->recipe, att_flags_defaults(flags)))
            att_text_append(list, "%s--%s", list->length ? ", " : "", place.flag->name);
    }
}

/* Logs which flags --no-aug makes useless. */
static att_status log_no_augmentation(const att_training *t)
{
    att_flags *flags = NULL;
    att_text list = {.context = t->context};
    if (!t->recipe.images.no_aug)
        return ATT_OK;
    ATT_TRY(att_recipe_flags(t->context, &flags));
    list_augmentation(t, flags, &list);
    att_flags_destroy(&flags);
    if (list.length)
        att_log(t->context, ATT_LOG_INFO, "without effect, because of --no-aug: %s", list.data);
    const att_status status = list.failed ? att_fail_memory(t->context, list.length, "a message") : ATT_OK;
    att_text_free(&list);
    return status;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_train_data data_of(const att_training *t)
{
    return (att_train_data){t->train, t->eval, &t->train_transform, &t->eval_transform};
}

/* att_recipe.train with the members that the training sets. */
static att_train_options options_of(const att_training *t)
{
    att_train_options options = t->recipe.train;
    options.backend = t->recipe.engine.backend;
    options.precision = att_recipe_precision(&t->recipe.engine);
    options.task_options = &t->recipe.task;
    options.teacher = t->teacher.model ? &t->teacher : NULL;
    options.measure = t->network.measure;
    options.output = t->folder.folder;
    options.resume = *t->folder.resume ? t->folder.resume : NULL;
    return options;
}

static att_status open_teacher(att_training *t)
{
    ATT_TRY(att_trained_network_open_teacher(&t->recipe, t->train, &t->network));
    const att_network *teacher = t->network.teacher;
    if (teacher)
        t->teacher = (att_teacher){.model = att_network_model(teacher),
                                   .weights = att_network_weights(teacher),
                                   .name = t->recipe.files.teacher};
    return ATT_OK;
}

/* Initialises or loads the weights. This takes time, so it comes after all checks. */
static att_status fill_weights(att_training *t)
{
    att_train_data data = data_of(t);
    att_train_options options = options_of(t);
    att_status status = att_train_check(t->network.model, t->network.weights, &data, &options);
    if (status == ATT_ERR_MISMATCH && *t->network.difference)
        return att_fail(t->context, status, "%s cannot be resumed exactly: %s", t->folder.resume,
                        t->network.difference);
    ATT_TRY(status);
    return att_trained_network_fill(&t->recipe, t->train, &t->network);
}

/* --- the continued run -------------------------------------------------------------------------------------------- */

/* Returns the first value of a key of args.yaml; NULL: none. yaml: NULL: there is no args.yaml. */
static const char *recorded(const att_yaml *yaml, const char *key)
{
    for (int i = 0; yaml && i < att_yaml_count(yaml); i++) {
        const att_yaml_entry entry = att_yaml_at(yaml, i);
        if (strcmp(entry.key, key) == 0 && entry.value_count > 0)
            return entry.values[0];
    }
    return NULL;
}

static att_status refuse_other(const att_training *t, const char *flag, const char *given, const char *found)
{
    return att_fail(t->context, ATT_ERR_ARGUMENT,
                    "%s %s contradicts --resume %s, whose %s is %s; leave %s out to continue this training", flag,
                    given, t->folder.resume, flag, found ? found : "null", flag);
}

/* name: in args.yaml, or NULL. The run may have been moved to a folder of another name. */
static att_status check_name(const att_training *t, const char *folder, const char *name)
{
    const char *given = t->recipe.files.experiment, *last = att_path_last(folder);
    if (!given || strcmp(given, last) == 0 || (name && strcmp(given, name) == 0))
        return ATT_OK;
    return refuse_other(t, "--experiment", given, name ? name : last);
}

/* initial: in args.yaml, or NULL. Fills it in if the recipe names none. */
static att_status take_initial(att_training *t, const char *initial)
{
    const char **given = &t->recipe.files.initial_checkpoint;
    if (*given && !(initial && (strcmp(*given, initial) == 0 || att_file_is_same(*given, initial))))
        return refuse_other(t, "--initial-checkpoint", *given, initial);
    if (*given || !initial)
        return ATT_OK;
    *given = t->initial;
    return att_path_copy(t->context, initial, t->initial, sizeof t->initial);
}

static att_status compare_files(att_training *t, const char *folder, const att_yaml *yaml)
{
    ATT_TRY(check_name(t, folder, recorded(yaml, "experiment")));
    return yaml ? take_initial(t, recorded(yaml, "initial_checkpoint")) : ATT_OK;
}

/* Refuses a name and initial weights that are not those of the continued run, which args.yaml in its folder gives. */
static att_status check_continued(att_training *t)
{
    char folder[ATT_RUN_PATH], path[ATT_RUN_PATH];
    att_yaml *yaml = NULL;
    ATT_TRY(att_path_folder(t->context, t->folder.resume, folder, sizeof folder));
    ATT_TRY(att_path_join(t->context, folder, "args.yaml", path, sizeof path));
    if (att_file_exists(path))
        ATT_TRY(att_yaml_read(t->context, path, &yaml));
    att_status status = compare_files(t, folder, yaml);
    att_yaml_destroy(&yaml);
    return status;
}

/* The folder of a continued run gives the network; the folder of a new run is named after the network. */
static att_status find_network(att_training *t)
{
    const att_recipe_files *files = &t->recipe.files;
    const att_run_place place = {files->output, files->experiment, files->resume};
    att_run_folder *run = &t->folder;
    ATT_TRY(att_run_place_check(t->context, &place));
    if (files->resume)
        ATT_TRY(att_run_find_resume(t->context, &place, run->resume, sizeof run->resume));
    if (*run->resume)
        ATT_TRY(check_continued(t));
    ATT_TRY(att_trained_network_find(&t->recipe, run->resume, &t->network));
    return att_run_folder_choose(t->context, &place, t->network.name, t->network.preprocess.height,
                                 t->network.preprocess.width, run);
}

static att_status prepare(att_training *t)
{
    ATT_TRY(att_recipe_resolve(t->context, &t->recipe));
    if (!t->recipe.data.data_dir)
        return att_fail(t->context, ATT_ERR_ARGUMENT, "no data set is named; give --data-dir DATA");
    ATT_TRY(find_network(t));
    ATT_TRY(open_data(t));
    ATT_TRY(att_trained_network_make(&t->recipe, t->train, &t->network));
    ATT_TRY(make_transforms(t));
    complete_recipe(t);
    ATT_TRY(att_recipe_resolve(t->context, &t->recipe)); /* args.yaml must hold valid values, also the network's own */
    ATT_TRY(log_no_augmentation(t));
    ATT_TRY(open_teacher(t));
    return fill_weights(t);
}

att_status att_training_open(att_context *context, const att_recipe *recipe, att_training **training)
{
    ATT_TRY(att_require(context, recipe, "the recipe of a training run"));
    ATT_TRY(att_require(context, training, "the result of att_training_open()"));
    att_training *t;
    ATT_TRY(att_new(context, &t, 1, "a training run"));
    t->context = t->network.context = context;
    t->recipe = *recipe;
    att_status status = prepare(t);
    if (status != ATT_OK)
        att_training_close(&t);
    else
        *training = t;
    return status;
}

void att_training_close(att_training **training)
{
    if (!training || !*training)
        return;
    att_training *t = *training;
    att_trained_network_free(&t->network);
    att_dataset_close(&t->eval);
    att_dataset_close(&t->train);
    att_free(t->context, t);
    *training = NULL;
}

const att_recipe *att_training_recipe(const att_training *t)
{
    return &t->recipe;
}

const att_run_folder *att_training_folder(const att_training *t)
{
    return &t->folder;
}

const att_model *att_training_model(const att_training *t)
{
    return t->network.model;
}

att_weights *att_training_weights(const att_training *t)
{
    return t->network.weights;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Writes the class names, one per line. The file can be used for class names, and as a class map. */
static att_status write_classes(const att_training *t)
{
    char path[ATT_RUN_PATH];
    att_text text = {.context = t->context};
    ATT_TRY(att_path_join(t->context, t->folder.folder, "classes.txt", path, sizeof path));
    for (int c = 0; c < att_dataset_class_count(t->train); c++)
        att_text_append(&text, "%s\n", att_dataset_class_name(t->train, c));
    att_status status = text.failed ? att_fail_memory(t->context, text.length, path)
                                    : att_file_replace(t->context, path, text.data ? text.data : "", text.length);
    att_text_free(&text);
    return status;
}

static bool has_field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0)
            return true;
    return false;
}

/* Called at the first event, so that a training run that is refused before this event leaves existing files unchanged.
 * A resume continues the records where this event says: the checkpoint may have changed since att_training_open(). */
static att_status open_records(att_training *t, const att_event *begin)
{
    const att_store_resume at = {begin->epoch, begin->step, has_field(begin, "unevaluated")};
    att_store_options options = {.resume = *t->folder.resume ? &at : NULL, .database = t->folder.database};
    char path[ATT_RUN_PATH];
    ATT_TRY(att_store_open(t->context, t->folder.folder, &options, &t->records));
    ATT_TRY(att_path_join(t->context, t->folder.folder, "args.yaml", path, sizeof path));
    ATT_TRY(att_recipe_write(t->context, path, &t->recipe));
    return write_classes(t);
}

static att_status on_event(void *user, const att_event *event)
{
    att_training *t = user;
    if (event->kind == ATT_EVENT_RUN_BEGIN)
        ATT_TRY(open_records(t, event));
    if (t->records.emit)
        ATT_TRY(t->records.emit(t->records.user, event));
    return t->listener ? t->listener->emit(t->listener->user, event) : ATT_OK;
}

static att_status export_to(const att_training *t, const char *folder)
{
    att_network *network = NULL;
    att_network_options options = att_network_options_defaults();
    options.averaged = t->recipe.train.model_ema;
    if (readlink(folder, &(char){0}, 1) >= 0) /* of whoever made the folder of the run */
        return att_fail(t->context, ATT_ERR_IO, "%s is a symbolic link; the network is not written there", folder);
    ATT_TRY(att_network_open(t->context, t->folder.folder, &options, &network));
    att_status status = att_network_export(network, folder);
    att_network_close(&network);
    return status;
}

/* Writes the best weights, of which the metric is that of the evaluations, for timm and the transformers library. They
 * have a folder of their own: a config.json beside the checkpoints would be read with each of them. A network that timm
 * lacks, or whose checkpoint does not say enough of it, is trained all the same. */
static att_status export_best(const att_training *t)
{
    char folder[ATT_RUN_PATH];
    ATT_TRY(att_path_join(t->context, t->folder.folder, "timm", folder, sizeof folder));
    att_status status = export_to(t, folder);
    if (status == ATT_OK || status == ATT_ERR_IO || status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED)
        return status;
    att_log(t->context, ATT_LOG_INFO, "%s is not written: %s", folder, att_context_message(t->context));
    return ATT_OK;
}

att_status att_training_run(att_training *t, const att_training_observer *observer, att_train_result *result)
{
    if (!t)
        return ATT_ERR_ARGUMENT;
    const att_sink sink = {.emit = on_event, .user = t};
    att_train_options options = options_of(t);
    att_train_data data = data_of(t);
    if (t->has_run)
        return att_fail(t->context, ATT_ERR_ARGUMENT,
                        "this training has run already; att_training_open() makes another one, which continues it with "
                        "files.resume set");
    t->has_run = true;
    if (att_comm_rank(options.comm) == 0)
        ATT_TRY(att_run_folder_claim(t->context, &t->folder));
    t->recipe.files.experiment = att_path_last(t->folder.folder);
    t->listener = observer ? observer->sink : NULL;
    options.sinks = &sink;
    options.sink_count = 1;
    options.progress = observer ? observer->progress : NULL;
    options.progress_user = observer ? observer->progress_user : NULL;
    att_status status = att_train(t->network.model, t->network.weights, &data, &options, result);
    if (t->records.close)
        t->records.close(t->records.user);
    t->records = (att_sink){0};
    return status == ATT_OK && att_comm_rank(options.comm) == 0 ? export_best(t) : status;
}
