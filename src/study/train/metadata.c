#include "study/train/metadata.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "networks/models/family.h"
#include "networks/tasks/draw.h"
#include "study/train/numbers.h"
#include "study/train/options.h"

enum { WHAT_SIZE = 64, KEY_SIZE = WHAT_SIZE + 16, VALUE_SIZE = 512, REASON_SIZE = 3 * VALUE_SIZE };
/* The oldest version of attscope whose training runs can be resumed. Raise it with every change that alters any bit of
 * the results or the metadata that a resume reads. */
static const char version_key[] = "version", training_version[] = "0.3";
static const char images_line[] = "data.images", listing_line[] = "data.listing", eval_listing_line[] = "eval.listing",
                  sample_line[] = "data.sample", eval_sample_line[] = "eval.sample", teacher_line[] = "teacher.digest",
                  teacher_name_line[] = "teacher.name";
/* The number of the best checkpoint: its epoch, or with eval_every the updates done. */
static const char best_line[] = "best_epoch";

void att_metadata_free(att_metadata *metadata)
{
    att_arena_free(&metadata->arena);
    metadata->count = 0;
}

static void put(att_metadata *metadata, const char *key, const char *value)
{
    att_safetensors_pair pair = {att_arena_string(&metadata->arena, key), att_arena_string(&metadata->arena, value)};
    if (!pair.key || !pair.value || metadata->count == ATT_METADATA_MAX)
        metadata->failed = true;
    else
        metadata->pairs[metadata->count++] = pair;
}

static char *train_key(const char *what, char key[KEY_SIZE])
{
    snprintf(key, KEY_SIZE, "attscope.train.%s", what);
    return key;
}

static void put_text(att_metadata *metadata, const char *what, const char *value)
{
    char key[KEY_SIZE];
    put(metadata, train_key(what, key), value);
}

static void put_integer(att_metadata *metadata, const char *what, int64_t value)
{
    char text[ATT_NUMBER_TEXT];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_text(metadata, what, text);
}

static void put_real(att_metadata *metadata, const char *what, double value)
{
    char text[ATT_NUMBER_TEXT];
    put_text(metadata, what, att_bits_format(value, text));
}

static att_status finish(const att_metadata *metadata)
{
    return metadata->failed ? att_fail_memory(metadata->arena.context, sizeof *metadata, "the checkpoint's metadata")
                            : ATT_OK;
}

att_status att_metadata_identity(att_metadata *metadata, const att_model *model, bool projects)
{
    char text[ATT_IDENTITY_TEXT];
    att_identity identity = att_model_identity(model);
    ATT_TRY(att_model_identity_text(metadata->arena.context, &identity, text, sizeof text));
    put(metadata, ATT_IDENTITY_KEY, text);
    if (projects)
        put(metadata, ATT_PROJECTION_KEY, "true");
    return finish(metadata);
}

att_status att_metadata_classes(att_metadata *metadata, const char *lines, const char *known)
{
    if (lines)
        put_text(metadata, "classes", lines);
    else if (known)
        put(metadata, ATT_CLASSES_KEY, known);
    return finish(metadata);
}

static char *transform_text(const att_transform_options *options, char text[VALUE_SIZE])
{
    char numbers[12][ATT_NUMBER_TEXT];
    const double shape[6] = {options->crop_pct, options->scale[0], options->scale[1],
                             options->ratio[0], options->ratio[1], options->flip};
    for (int i = 0; i < 6; i++)
        att_format_number(shape[i], numbers[i]);
    for (int c = 0; c < 3; c++) {
        att_format_number((float)options->mean[c], numbers[6 + c]);
        att_format_number((float)options->std[c], numbers[9 + c]);
    }
    int length = snprintf(text, VALUE_SIZE, "%dx%dx%d crop=%d interpolation=%d pad=%d", options->height, options->width,
                          options->channels, (int)options->crop, (int)options->interpolation, options->pad);
    for (int i = 0; i < 12 && length < VALUE_SIZE; i++)
        length += snprintf(text + length, (size_t)(VALUE_SIZE - length), "%s%s", i ? "," : " numbers=", numbers[i]);
    return text;
}

/* Describes the random augmentations except for crop and horizontal flip; "" if there are none. */
static char *augment_text(const att_transform_options *options, char text[VALUE_SIZE])
{
    const att_rand_augment *rand_augment = &options->rand_augment;
    const double reals[] = {options->vertical_flip,
                            options->color_jitter[0],
                            options->color_jitter[1],
                            options->color_jitter[2],
                            options->erase,
                            rand_augment->layers > 0 ? rand_augment->magnitude : 0,
                            rand_augment->layers > 0 ? rand_augment->deviation : 0,
                            rand_augment->layers > 0 ? rand_augment->most : 0,
                            rand_augment->layers > 0 ? rand_augment->probability : 0};
    enum { COUNT = sizeof reals / sizeof *reals };
    bool any = rand_augment->layers > 0;
    int length =
        snprintf(text, VALUE_SIZE, "layers=%d increasing=%d erasing=%d,%d numbers=", rand_augment->layers,
                 (int)(rand_augment->layers > 0 && rand_augment->increasing),
                 options->erase > 0 ? (int)options->erase_mode : 0, options->erase > 0 ? options->erase_count : 0);
    for (int i = 0; i < COUNT; i++) {
        char number[ATT_NUMBER_TEXT];
        any |= reals[i] > 0;
        if (length < VALUE_SIZE)
            length += snprintf(text + length, (size_t)(VALUE_SIZE - length), "%s%s", i ? "," : "",
                               att_format_number(reals[i], number));
    }
    if (!any)
        *text = '\0';
    if (options->three_augment)
        snprintf(text + strlen(text), VALUE_SIZE - strlen(text), "%sthree_augment", any ? " " : "");
    return text;
}

/* Describes the crops that keep the aspect ratio, and photometric distortion; "" if there are none. */
static char *sizes_text(const att_transform_options *options, char text[VALUE_SIZE])
{
    const bool keeps = options->crop == ATT_CROP_KEEP, scales = options->crop == ATT_CROP_SCALED;
    const double reals[] = {options->factor[0], options->factor[1], options->cat_max_ratio};
    char numbers[3][ATT_NUMBER_TEXT];
    int length = 0;
    *text = '\0';
    for (int i = 0; i < 3; i++)
        att_format_number(reals[i], numbers[i]);
    if (keeps || scales)
        length = snprintf(text, VALUE_SIZE, "longer=%d shorter=%d divisor=%d ", options->longer, options->shorter,
                          options->divisor);
    if (scales)
        length += snprintf(text + length, (size_t)(VALUE_SIZE - length), "numbers=%s,%s,%s ", numbers[0], numbers[1],
                           numbers[2]);
    if (options->photometric)
        snprintf(text + length, (size_t)(VALUE_SIZE - length), "photometric");
    return text;
}

static char *option_text(const att_option *option, const att_option_values *options, char text[VALUE_SIZE])
{
    char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
    int count = att_option_format(option, options, texts);
    snprintf(text, VALUE_SIZE, "%s%s%s", count > 0 ? texts[0] : "", count > 1 ? " " : "", count > 1 ? texts[1] : "");
    return text;
}

/* Passes one option to `line`. of: "task" or "model". defaults: the values in training runs that lack the option; NULL:
 * none lacks it. */
static void option_line(const char *of, const att_option *option, const att_option_values *options,
                        const att_option_values *defaults, att_metadata_line line, void *user)
{
    char what[WHAT_SIZE], value[VALUE_SIZE], by_default[VALUE_SIZE];
    snprintf(what, sizeof what, "%s.%s", of, option->key);
    line(user, what, option_text(option, options, value), defaults ? option_text(option, defaults, by_default) : NULL);
}

/* Passes the model's options that affect training only. The other options are in the model's identity. */
static void each_training_option(const att_model *model, att_metadata_line line, void *user)
{
    const att_option_table *table = att_model_family(model)->options;
    for (int i = 0; i < table->count; i++)
        if (table->options[i].training)
            option_line("model", &table->options[i], att_model_options(model), NULL, line, user);
}

/* A file that lacks an option is of a version without this option, which trained as its default does. */
static void each_task_line(const att_train_run *run, att_metadata_line line, void *user)
{
    const att_task_info task = att_model_task(run->model);
    att_option_values options, defaults;
    att_task_complete(att_model_task_of(run->model), run->options->task_options, &options);
    att_task_complete(att_model_task_of(run->model), NULL, &defaults);
    line(user, "task.name", task.name, NULL);
    for (int i = 0; i < task.option_count; i++)
        option_line("task", &task.options[i], &options, &defaults, line, user);
}

void att_metadata_each(const att_train_run *run, att_metadata_line line, void *user)
{
    char what[WHAT_SIZE], value[VALUE_SIZE], option[ATT_TRAIN_OPTION_TEXT], first[ATT_TRAIN_OPTION_TEXT];
    const att_train_options defaults = att_train_options_defaults();
    const att_flag *row;
    for (int i = 0; (row = att_train_option_at(i)); i++) {
        snprintf(what, sizeof what, "option.%s", row->member);
        line(user, what, att_train_option_text(run->options, row, option),
             att_train_option_text(&defaults, row, first));
    }
    snprintf(value, sizeof value, "%" PRId64, att_dataset_count(run->data->train));
    line(user, images_line, value, NULL);
    line(user, listing_line, run->listing, run->listing);
    line(user, sample_line, run->sample, run->sample);
    line(user, eval_listing_line, run->eval_listing, run->eval_listing);
    line(user, eval_sample_line, run->eval_sample, run->eval_sample);
    line(user, "eval.eval_metric", run->metric, run->metric);
    line(user, "data.transform", transform_text(run->data->train_transform, value), NULL);
    line(user, "data.augment", augment_text(run->data->train_transform, value), "");
    line(user, "data.sizes", sizes_text(run->data->train_transform, value), "");
    line(user, teacher_line, run->teacher_digest, "");
    line(user, "model.name", att_model_name(run->model), NULL);
    each_training_option(run->model, line, user);
    each_task_line(run, line, user);
    line(user, "fingerprint", run->fingerprint, NULL);
}

static void put_line(void *user, const char *what, const char *value, const char *default_value)
{
    (void)default_value;
    put_text(user, what, value);
}

/* Stores the class names, one per line. Stores nothing if a name is not valid UTF-8, or if the name of every class is
 * its number. */
static void put_classes(att_metadata *metadata, const att_dataset *dataset)
{
    att_text lines = {.context = metadata->arena.context};
    bool plain = true, informative = false;
    for (int c = 0; c < att_dataset_class_count(dataset); c++) {
        const char *name = att_dataset_class_name(dataset, c);
        char number[ATT_NUMBER_TEXT];
        snprintf(number, sizeof number, "%d", c);
        informative = informative || strcmp(name, number) != 0;
        plain = plain && att_utf8_valid(name);
        att_text_append(&lines, "%s\n", name);
    }
    metadata->failed |= lines.failed;
    if (plain && informative && lines.data)
        put_text(metadata, "classes", lines.data);
    att_text_free(&lines);
}

/* Stores the colours of the classes, "#0060ff" on each line, if the data set has them. */
static void put_colours(att_metadata *metadata, const att_dataset *dataset)
{
    const uint8_t(*colours)[3] = att_dataset_class_colours(dataset);
    char colour[ATT_COLOUR_TEXT];
    att_text lines = {.context = metadata->arena.context};
    for (int c = 0; colours && c < att_dataset_class_count(dataset); c++)
        att_text_append(&lines, "%s\n", att_colour_text(*colours, c, colour));
    metadata->failed |= lines.failed;
    if (lines.data && !lines.failed)
        put_text(metadata, "class_colours", lines.data);
    att_text_free(&lines);
}

/* Stores the ids that classes of boxes have in the data set, one per line, if it gives one to each of them. */
static void put_ids(att_metadata *metadata, const att_dataset *dataset)
{
    const bool boxes = att_dataset_annotations(dataset) & ATT_ANNOTATION_BOXES;
    bool all = boxes;
    att_text lines = {.context = metadata->arena.context};
    for (int c = 0; all && c < att_dataset_class_count(dataset); c++) {
        const int64_t id = att_dataset_class_id(dataset, c);
        all = id >= 0;
        att_text_append(&lines, "%" PRId64 "\n", id);
    }
    metadata->failed |= lines.failed;
    if (all && lines.data && !lines.failed)
        put_text(metadata, "class_ids", lines.data);
    att_text_free(&lines);
}

att_status att_metadata_training(att_metadata *metadata, const att_train_run *run, const att_train_state *state)
{
    ATT_TRY(att_metadata_identity(metadata, run->model, false));
    put_text(metadata, version_key, training_version);
    att_metadata_each(run, put_line, metadata);
    if (run->teacher)
        put_text(metadata, teacher_name_line, run->teacher);
    put_classes(metadata, run->data->train);
    if (run->shapes.data)
        put_text(metadata, "shapes", run->shapes.data);
    put_colours(metadata, run->data->train);
    put_ids(metadata, run->data->train);
    put_integer(metadata, "lanes", run->lanes);
    put_integer(metadata, "parts", run->parts);
    put_integer(metadata, "memory", run->memory);
    put_integer(metadata, "epoch", state->epoch);
    put_integer(metadata, "batch", state->batch);
    put_integer(metadata, "update", state->update);
    put_real(metadata, "loss_sum", state->loss_sum);
    put_integer(metadata, "loss_count", state->loss_count);
    put_integer(metadata, "corrupt", state->corrupt);
    put_real(metadata, "metric", state->metric);
    put_real(metadata, "best_metric", state->history.best_metric);
    put_integer(metadata, best_line, state->history.best);
    put_integer(metadata, "evicted", state->history.evicted);
    att_text kept = {.context = run->context}, alerts = {.context = run->context};
    att_history_write(&state->history, &kept);
    put_text(metadata, "history", kept.data ? kept.data : "");
    if (state->alerts)
        att_alerts_write(state->alerts, &alerts);
    if (alerts.data)
        put_text(metadata, "alerts", alerts.data);
    metadata->failed |= kept.failed || alerts.failed;
    att_text_free(&kept);
    att_text_free(&alerts);
    return finish(metadata);
}

const char *att_metadata_text(const att_tensors *file, const char *what)
{
    char key[KEY_SIZE];
    return att_tensors_metadata(file, train_key(what, key));
}

bool att_metadata_has_training(const att_tensors *file)
{
    return att_metadata_text(file, version_key) != NULL;
}

att_status att_metadata_check_version(att_context *context, const att_tensors *file)
{
    const char *version = att_metadata_text(file, version_key), *path = att_tensors_path(file);
    if (!version)
        return att_fail(context, ATT_ERR_MISMATCH, "%s holds weights, but no training that can be resumed", path);
    if (strcmp(version, training_version) == 0)
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "%s holds a training run by attscope %.40s, which attscope %s cannot resume; --initial-checkpoint %s "
        "starts a new training from its weights",
        path, version, training_version, path);
}

typedef struct comparison {
    const att_train_run *run;
    const att_tensors *file;
    att_status status;
} comparison;

/* Moves *a and *b to the first words that differ between two texts, and sets the words' lengths. The word is empty for
 * a text that ends earlier. */
static void first_difference(const char **a, size_t *a_length, const char **b, size_t *b_length)
{
    do {
        *a_length = strcspn(*a, " ");
        *b_length = strcspn(*b, " ");
        if (*a_length != *b_length || memcmp(*a, *b, *a_length) != 0)
            return;
        *a += *a_length + ((*a)[*a_length] == ' ');
        *b += *b_length + ((*b)[*b_length] == ' ');
    } while (**a || **b);
}

/* The digests of two teachers differ. */
static void explain_teacher(const comparison *c, char reason[REASON_SIZE])
{
    const char *stored = att_metadata_text(c->file, teacher_name_line), *here = c->run->teacher;
    if (!here)
        snprintf(reason, REASON_SIZE, "its teacher is %.512s, here there is none", stored ? stored : "a network");
    else if (!stored)
        snprintf(reason, REASON_SIZE, "it has no teacher, here it is %.512s", here);
    else
        snprintf(reason, REASON_SIZE, "its teacher is %.512s, here it is %.512s, with other weights or preprocessing",
                 stored, here);
}

/* Returns the flag of an option of the training or of the model if it is not the option's name; NULL if it is. */
static const char *flag_of(const comparison *c, const char *name)
{
    const att_flag *row;
    const att_option *option = att_option_find(att_model_family(c->run->model)->options, name);
    for (int i = 0; (row = att_train_option_at(i)); i++)
        if (strcmp(row->member, name) == 0)
            return att_flag_is_called(row->name, name) ? NULL : row->name;
    return option ? option->flag : NULL;
}

static char *explain_difference(const comparison *c, const char *what, const char *stored, const char *current,
                                char reason[REASON_SIZE])
{
    if (strcmp(what, images_line) == 0) {
        snprintf(reason, REASON_SIZE, "it was trained on %s images, the data here has %s", stored, current);
    } else if (strcmp(what, listing_line) == 0) {
        snprintf(reason, REASON_SIZE,
                 "the names, order or classes of its training images are not those of the data here");
    } else if (strcmp(what, sample_line) == 0) {
        snprintf(reason, REASON_SIZE, "its training images have the same names as those here, but different pixels");
    } else if (strcmp(what, eval_listing_line) == 0 || strcmp(what, eval_sample_line) == 0) {
        snprintf(reason, REASON_SIZE, "it was evaluated on other images than those here");
    } else if (strcmp(what, teacher_line) == 0) {
        explain_teacher(c, reason);
    } else {
        const char *dot = strchr(what, '.'), *name = dot ? dot + 1 : what, *flag = flag_of(c, name);
        size_t stored_length, current_length;
        first_difference(&stored, &stored_length, &current, &current_length);
        snprintf(reason, REASON_SIZE, "it was trained with %s%s%s%s \"%.*s\", not \"%.*s\"%s", name, flag ? " (--" : "",
                 flag ? flag : "", flag ? ")" : "", (int)stored_length, stored, (int)current_length, current,
                 strcmp(what, "option.epochs") == 0 || strcmp(what, "option.updates") == 0
                     ? "; its learning rates depend on the length of the training"
                     : "");
    }
    return reason;
}

static void compare_line(void *user, const char *what, const char *current, const char *default_value)
{
    comparison *c = user;
    const char *stored = att_metadata_text(c->file, what);
    stored = stored ? stored : default_value;
    if (c->status != ATT_OK || (stored && strcmp(stored, current) == 0))
        return;
    char reason[REASON_SIZE];
    c->status = att_fail(c->run->context, ATT_ERR_MISMATCH, "%s cannot be resumed exactly: %s",
                         att_tensors_path(c->file), explain_difference(c, what, stored ? stored : "", current, reason));
}

att_status att_metadata_compare(const att_train_run *run, const att_tensors *file)
{
    comparison c = {.run = run, .file = file, .status = ATT_OK};
    att_metadata_each(run, compare_line, &c);
    return c.status;
}

static att_status bad_value(att_context *context, const att_tensors *file, const char *what, const char *expected)
{
    const char *text = att_metadata_text(file, what);
    return att_fail(context, ATT_ERR_FORMAT, "%s: metadata attscope.train.%s is %s%.40s%s, expected %s",
                    att_tensors_path(file), what, text ? "\"" : "", text ? text : "missing", text ? "\"" : "",
                    expected);
}

att_status att_metadata_integer(att_context *context, const att_tensors *file, const char *what, int64_t least,
                                int64_t most, int64_t *value)
{
    const char *text = att_metadata_text(file, what);
    int64_t read;
    if (!text || !att_text_to_i64(text, &read) || read < least || read > most)
        return bad_value(context, file, what, "an integer in the valid range");
    *value = read;
    return ATT_OK;
}

att_status att_metadata_real(att_context *context, const att_tensors *file, const char *what, double *value)
{
    const char *text = att_metadata_text(file, what);
    return text && strlen(text) == 16 && att_bits_parse(text, value)
               ? ATT_OK
               : bad_value(context, file, what, "16 hexadecimal digits");
}

static bool history_is_past(const att_history *history, int64_t number)
{
    for (int i = 0; i < history->count; i++)
        if (history->kept[i].number > number)
            return false;
    return true;
}

/* alerts: NULL if this training raises none. Files without alerts that hold lack the value. */
static att_status read_alerts(att_context *context, const att_tensors *file, att_alerts *alerts)
{
    const char *text = att_metadata_text(file, "alerts");
    bool valid = true;
    if (text && alerts)
        ATT_TRY(att_alerts_read(alerts, text, &valid));
    return valid ? ATT_OK : bad_value(context, file, "alerts", "lines of a rule, a head and a node");
}

att_status att_metadata_state(const att_train_run *run, const att_tensors *file, att_train_state *state)
{
    att_context *context = run->context;
    int64_t epoch;
    ATT_TRY(att_metadata_integer(context, file, "epoch", 0, INT32_MAX, &epoch));
    state->epoch = (int)epoch;
    ATT_TRY(att_metadata_integer(context, file, "batch", 0, INT64_MAX, &state->batch));
    ATT_TRY(att_metadata_integer(context, file, "update", 0, INT64_MAX, &state->update));
    ATT_TRY(att_metadata_real(context, file, "loss_sum", &state->loss_sum));
    ATT_TRY(att_metadata_integer(context, file, "loss_count", 0, INT64_MAX, &state->loss_count));
    state->corrupt = 0;
    if (att_metadata_text(file, "corrupt"))
        ATT_TRY(att_metadata_integer(context, file, "corrupt", 0, INT64_MAX, &state->corrupt));
    ATT_TRY(att_metadata_real(context, file, "metric", &state->metric));
    const char *kept = att_metadata_text(file, "history");
    const int64_t last = att_train_state_number(run->options, state);
    att_history *history = &state->history;
    if (!kept || !att_history_read(history, kept) || !history_is_past(history, last))
        return bad_value(context, file, "history", "past checkpoints with the bits of their metrics");
    ATT_TRY(att_metadata_real(context, file, "best_metric", &history->best_metric));
    ATT_TRY(att_metadata_integer(context, file, best_line, -1, last, &history->best));
    ATT_TRY(att_metadata_integer(context, file, "evicted", -1, last, &history->evicted));
    return read_alerts(context, file, state->alerts);
}
