#include "study/train/checkpoint.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/names.h"
#include "base/core/options.h"
#include "base/io/json.h"
#include "base/io/safetensors.h"
#include "engine/weights/weights.h"
#include "networks/models/checkpoint.h"
#include "study/train/metadata.h"

static const char ema_slot[] = "ema", ema_prefix[] = "ema.";
enum { NO_SLOT = -1, PREFIX_SIZE = 96 };

/* Prefix of a parameter's tensors: "" for the weights, "ema." or "optimizer.exp_avg." for a slot. */
static char *tensor_prefix(const char *slot, char prefix[PREFIX_SIZE])
{
    if (!slot)
        prefix[0] = '\0';
    else if (strcmp(slot, ema_slot) == 0)
        snprintf(prefix, PREFIX_SIZE, "%s", ema_prefix);
    else
        snprintf(prefix, PREFIX_SIZE, "optimizer.%s.", slot);
    return prefix;
}

/* Finds the parameter's tensor in the file. name: scratch. Errors: ERR_MISMATCH if it is missing or has another
 * shape. */
static att_status find_tensor(att_context *context, const att_tensors *file, const char *prefix,
                              const att_parameter_info *parameter, att_text *name, int *index)
{
    char found[96], expected[96];
    name->length = 0;
    att_text_append(name, "%s%s", prefix, parameter->name);
    if (name->failed)
        return att_fail_memory(context, strlen(parameter->name), "a tensor's name");
    *index = att_tensors_find(file, name->data);
    if (*index < 0)
        return att_fail(context, ATT_ERR_MISMATCH, "%s has no tensor %s", att_tensors_path(file), name->data);
    att_shape shape = att_tensors_at(file, *index).shape;
    if (att_shape_equal(shape, parameter->shape))
        return ATT_OK;
    return att_fail(context, ATT_ERR_MISMATCH, "%s: tensor %s has shape %s, expected %s", att_tensors_path(file),
                    name->data, att_shape_format(shape, found, sizeof found),
                    att_shape_format(parameter->shape, expected, sizeof expected));
}

static bool has_ema(const att_tensors *file)
{
    for (int i = 0; i < att_tensors_count(file); i++) {
        if (strncmp(att_tensors_at(file, i).name, ema_prefix, strlen(ema_prefix)) == 0)
            return true;
    }
    return false;
}

att_status att_checkpoint_load_ema(const att_model *model, const att_tensors *file, att_weights *weights)
{
    att_context *context = att_graph_context(att_model_graph(model));
    if (!has_ema(file))
        return att_fail(context, ATT_ERR_NOT_FOUND, "%s holds no averaged weights: it was not trained with an EMA",
                        att_tensors_path(file));
    return att_model_load_prefixed(model, file, ema_prefix, weights);
}

att_status att_checkpoint_describe(att_context *context, const att_tensors *file, att_checkpoint_info *info)
{
    att_checkpoint_info read = {.ema = has_ema(file)};
    if (att_metadata_has_training(file)) {
        const char *seed = att_metadata_text(file, "option.seed"), *images = att_metadata_text(file, "loss_count"),
                   *eval_every = att_metadata_text(file, "option.eval_every");
        const bool in_updates = eval_every && strcmp(eval_every, "0") != 0;
        int64_t epoch, best;
        ATT_TRY(att_metadata_integer(context, file, "epoch", 0, INT32_MAX, &epoch));
        ATT_TRY(att_metadata_integer(context, file, "batch", 0, INT64_MAX, &read.batch));
        ATT_TRY(att_metadata_integer(context, file, "update", 0, INT64_MAX, &read.update));
        ATT_TRY(att_metadata_integer(context, file, "best_epoch", -1, in_updates ? INT64_MAX : INT32_MAX, &best));
        ATT_TRY(att_metadata_real(context, file, "metric", &read.metric));
        ATT_TRY(att_metadata_real(context, file, "best_metric", &read.best_metric));
        read.seed = seed ? strtoull(seed, NULL, 10) : 0;
        read.training = true;
        read.epoch = (int)epoch;
        read.unevaluated = images && strcmp(images, "0") != 0;
        read.best_epoch = in_updates ? -1 : (int)best;
        read.best_update = in_updates ? best : -1;
    }
    *info = read;
    return ATT_OK;
}

const char *att_checkpoint_classes(const att_tensors *file)
{
    const char *own = att_metadata_text(file, "classes");
    return own ? own : att_tensors_metadata(file, ATT_TENSORS_CLASSES);
}

/* Stores an option's value from text. Parses "HEIGHT WIDTH", which option_line() (metadata.c) writes for pairs of
 * sides. */
static bool store_joined(const att_option *option, const char *text, att_option_values *options)
{
    char first[ATT_OPTION_TEXT_BYTES];
    const char *space = option->kind == ATT_OPTION_SIDES ? strchr(text, ' ') : NULL;
    if (!space)
        return att_option_store(option, &text, 1, options);
    snprintf(first, sizeof first, "%.*s", (int)(space - text), text);
    return att_option_store(option, (const char *const[]){first, space + 1}, 2, options);
}

att_status att_checkpoint_task_options(att_context *context, const att_tensors *file, const att_task_info *task,
                                       att_option_values *options)
{
    const char *trained = att_metadata_text(file, "task.name");
    for (int i = 0; trained && strcmp(trained, task->name) == 0 && i < task->option_count; i++) {
        char what[ATT_OPTION_KEY + sizeof "task."], expected[ATT_OPTION_TEXT_BYTES];
        snprintf(what, sizeof what, "task.%s", task->options[i].key);
        const char *text = att_metadata_text(file, what);
        if (text && !store_joined(&task->options[i], text, options))
            return att_fail(context, ATT_ERR_FORMAT, "%s: the option %s of its training is \"%.40s\", expected %s",
                            att_tensors_path(file), task->options[i].key, text,
                            att_option_describe(&task->options[i], expected, sizeof expected));
    }
    return ATT_OK;
}

/* --- which data set the classes are from -------------------------------------------------------------------------- */

static const char IMAGENET[] = "imagenet-1k";
enum { NORMALIZED_SIZE = 256 };

/* Writes the letters (in lower case) and digits of the last `count` components of a path, and drops other
 * characters. */
static void normalize_suffix(const char *path, int count, char ending[NORMALIZED_SIZE])
{
    const char *from = path + strlen(path);
    while (from > path && (from[-1] != '/' || --count > 0))
        from--;
    size_t length = 0;
    for (; *from && length + 1 < NORMALIZED_SIZE; from++)
        if (isalnum((unsigned char)*from))
            ending[length++] = (char)tolower((unsigned char)*from);
    ending[length] = '\0';
}

/* Whether the last components of a path contain the data set's name and no digit follows: "cifar100" does not contain
 * "cifar10". */
static bool suffix_contains(const char *path, int parts, const char *data_set)
{
    char ending[NORMALIZED_SIZE], name[NORMALIZED_SIZE];
    normalize_suffix(path, parts, ending);
    normalize_suffix(data_set, 1, name);
    for (const char *at = ending; (at = strstr(at, name)); at++)
        if (!isdigit((unsigned char)at[strlen(name)]))
            return true;
    return false;
}

/* Returns the known data set that has `classes` classes and whose name the text contains; NULL if there is none. */
static const att_known_classes *known_classes_in_path(const char *text, int parts, int classes)
{
    for (int i = 0; i < att_known_classes_count(); i++) {
        const att_known_classes *known = att_known_classes_at(i);
        if (known->count == classes && suffix_contains(text, parts, known->name))
            return known;
    }
    return NULL;
}

/* Whether a component of a path, or of a name such as "tfds/imagenet2012:5.0", equals the data set's name. With
 * `allow_suffix`, the component may also begin with the name ("imagenet-1k-wds") if no digit follows. */
static bool has_component(const char *path, const char *data_set, bool allow_suffix)
{
    char part[NORMALIZED_SIZE], own[NORMALIZED_SIZE], name[NORMALIZED_SIZE];
    normalize_suffix(data_set, 1, name);
    size_t length = strlen(name);
    for (; *path; path += strspn(path, "/:")) {
        size_t size = strcspn(path, "/:");
        snprintf(part, sizeof part, "%.*s", (int)size, path);
        normalize_suffix(part, 1, own);
        path += size;
        if (strncmp(own, name, length) == 0 && (!own[length] || (allow_suffix && !isdigit((unsigned char)own[length]))))
            return true;
    }
    return false;
}

/* Returns the known data set that has `classes` classes and that a run's option names. Alternative names of
 * ImageNet-1k must match a whole component, because names of other data sets begin with them. */
static const att_known_classes *known_classes_of_option(const char *value, int classes)
{
    static const char *const names[] = {"imagenet", "imagenet2012", "ilsvrc", "ilsvrc2012", "imnet"};
    const att_known_classes *imagenet = att_known_classes_find(IMAGENET);
    for (size_t i = 0; classes == imagenet->count && i < sizeof names / sizeof *names; i++)
        if (has_component(value, names[i], false))
            return imagenet;
    for (int i = 0; i < att_known_classes_count(); i++) {
        const att_known_classes *known = att_known_classes_at(i);
        if (known->count == classes && has_component(value, known->name, true))
            return known;
    }
    return NULL;
}

/* Looks for the data set in the options of a training script. *known: the data set with these classes, NULL if unknown.
 * Returns false if the options name no data set. */
static bool known_classes_of_options(const att_tensors *file, int classes, const att_known_classes **known)
{
    static const char *const keys[] = {"dataset", "data_dir", "data", "data_set", "data_path"};
    const char *text = att_tensors_metadata(file, ATT_TENSORS_OPTIONS);
    json_t *options = text ? json_loads(text, 0, NULL) : NULL;
    bool named = false;
    *known = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !*known; i++) {
        const char *value = json_string_value(json_object_get(options, keys[i]));
        if (!value || !*value)
            continue;
        named = true;
        *known = known_classes_of_option(value, classes);
    }
    json_decref(options);
    return named;
}

/* Returns the order of ImageNet's classes with this number of them, of which there is at most one; else NULL. */
static const att_known_classes *imagenet_of(int classes)
{
    for (int i = 0; i < att_known_classes_count(); i++) {
        const att_known_classes *known = att_known_classes_at(i);
        if (known->has_synsets && known->count == classes)
            return known;
    }
    return NULL;
}

const att_known_classes *att_checkpoint_known_classes(const att_tensors *file, int classes)
{
    const char *value = att_tensors_metadata(file, ATT_CLASSES_KEY);
    if (att_checkpoint_classes(file) || att_metadata_has_training(file))
        return NULL;
    const att_known_classes *known =
        value ? att_known_classes_find(value) : known_classes_in_path(att_tensors_path(file), 2, classes);
    if (known && known->count == classes)
        return known;
    if (att_tensors_metadata(file, ATT_IDENTITY_KEY))
        return NULL;
    if (known_classes_of_options(file, classes, &known))
        return known;
    return imagenet_of(classes);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

typedef struct content {
    att_context *context;
    const att_weights *weights;
    const int *parameters; /* indices among the weights of the parameters to write */
    int count;             /* length of `parameters` */
    int slots;             /* slots to write in addition to the weights */
    att_metadata metadata;
    /* At most [slots + 1][count]. place: (slot + 1) * count + index in `parameters`; slot -1 is the weights. */
    att_safetensors_tensor *tensors;
    int *places;
    int tensor_count;
} content;

static att_status fill_tensor(void *user, int index, void *out, size_t bytes)
{
    const content *c = user;
    const int place = c->places[index];
    size_t size = att_safetensors_dtype_size(c->tensors[index].dtype);
    return att_weights_get(c->weights, place / c->count - 1, c->parameters[place % c->count], out,
                           (int64_t)(bytes / size));
}

/* Frozen parameters have no state of the optimiser, but an average. */
static bool is_written(const content *c, int slot, int parameter)
{
    return slot < 0 || strcmp(att_weights_slot_name(c->weights, slot), ema_slot) == 0 ||
           att_weights_in_slot(c->weights, slot, parameter);
}

static att_status name_tensors(content *c, const att_model *model)
{
    att_safetensors_dtype dtype = att_safetensors_dtype_of(att_graph_dtype(att_model_graph(model)));
    att_text name = {.context = c->context};
    for (int i = 0; i < (c->slots + 1) * c->count; i++) {
        const int slot = i / c->count - 1;
        char prefix[PREFIX_SIZE];
        if (!is_written(c, slot, c->parameters[i % c->count]))
            continue;
        tensor_prefix(slot < 0 ? NULL : att_weights_slot_name(c->weights, slot), prefix);
        att_parameter_info parameter = att_weights_at(c->weights, c->parameters[i % c->count]);
        name.length = 0;
        att_text_append(&name, "%s%s", prefix, parameter.name);
        const char *kept = name.failed ? NULL : att_arena_string(&c->metadata.arena, name.data);
        c->places[c->tensor_count] = i;
        c->tensors[c->tensor_count++] =
            (att_safetensors_tensor){.name = kept, .dtype = dtype, .shape = parameter.shape};
        name.failed |= !kept;
    }
    att_status status = name.failed ? att_fail_memory(c->context, name.capacity, "a tensor's name") : ATT_OK;
    att_text_free(&name);
    return status;
}

static att_status write_content(content *c, const att_model *model, const att_safetensors_beside *beside,
                                const char *path)
{
    size_t count = (size_t)(c->slots + 1) * (size_t)c->count;
    ATT_TRY(att_new(c->context, &c->tensors, count, "the list of tensors"));
    att_status status = att_new(c->context, &c->places, count, "the list of tensors");
    if (status == ATT_OK)
        status = name_tensors(c, model);
    if (status == ATT_OK) {
        att_safetensors_content file = {.tensors = c->tensors,
                                        .tensor_count = c->tensor_count,
                                        .metadata = c->metadata.pairs,
                                        .metadata_count = c->metadata.count,
                                        .fill = fill_tensor,
                                        .fill_user = c,
                                        .beside = beside};
        status = att_safetensors_write(c->context, path, &file);
    }
    att_free(c->context, c->tensors);
    att_free(c->context, c->places);
    return status;
}

/* Allocates `parameters` for `count` indices. */
static int *allocate_parameters(content *c, int count)
{
    int *parameters = att_arena_allocate(&c->metadata.arena, ((size_t)count + 1) * sizeof *parameters);
    c->parameters = parameters;
    c->count = count;
    return parameters;
}

static att_status select_all(content *c)
{
    int *parameters = allocate_parameters(c, att_weights_count(c->weights));
    if (!parameters)
        return att_fail_memory(c->context, (size_t)c->count * sizeof *parameters, "the list of tensors");
    for (int i = 0; i < c->count; i++)
        parameters[i] = i;
    return ATT_OK;
}

/* Finds the parameter of the model among the weights. */
static att_status find_parameter(const content *c, const att_parameter_info *parameter, int *index)
{
    char found[96], expected[96];
    *index = att_weights_find(c->weights, parameter->name);
    if (*index < 0)
        return att_fail(c->context, ATT_ERR_MISMATCH, "the weights lack \"%s\", which the network has",
                        parameter->name);
    att_shape shape = att_weights_at(c->weights, *index).shape;
    if (att_shape_equal(shape, parameter->shape))
        return ATT_OK;
    return att_fail(c->context, ATT_ERR_MISMATCH, "\"%s\" has shape %s in the weights and %s in the network",
                    parameter->name, att_shape_format(shape, found, sizeof found),
                    att_shape_format(parameter->shape, expected, sizeof expected));
}

static att_status select_of_model(content *c, const att_model *model)
{
    const att_graph *graph = att_model_graph(model);
    if (c->weights->dtype != att_graph_dtype(graph))
        return att_fail(c->context, ATT_ERR_MISMATCH, "the weights are %s, the network computes in %s",
                        att_dtype_name(c->weights->dtype), att_dtype_name(att_graph_dtype(graph)));
    int *parameters = allocate_parameters(c, att_graph_parameter_count(graph));
    if (!parameters)
        return att_fail_memory(c->context, (size_t)c->count * sizeof *parameters, "the list of tensors");
    for (int i = 0; i < c->count; i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        ATT_TRY(find_parameter(c, &parameter, &parameters[i]));
    }
    return ATT_OK;
}

att_status att_checkpoint_write(const att_train_run *run, const att_train_state *state, const char *path)
{
    content c = {.context = run->context,
                 .weights = run->weights,
                 .slots = att_weights_slot_count(run->weights),
                 .metadata = {.arena = {.context = run->context}}};
    att_status status = att_metadata_training(&c.metadata, run, state);
    if (status == ATT_OK)
        status = select_all(&c);
    if (status == ATT_OK)
        status = write_content(&c, run->model, NULL, path);
    att_metadata_free(&c.metadata);
    return status;
}

att_status att_checkpoint_export(const att_model *model, const att_weights *weights, const char *path)
{
    return att_checkpoint_export_named(model, weights, NULL, NULL, false, NULL, path);
}

att_status att_checkpoint_export_named(const att_model *model, const att_weights *weights, const char *classes,
                                       const char *known, bool projects, const att_safetensors_beside *beside,
                                       const char *path)
{
    att_context *context = att_graph_context(att_model_graph(model));
    content c = {.context = context, .weights = weights, .metadata = {.arena = {.context = context}}};
    att_status status = att_metadata_identity(&c.metadata, model, projects);
    if (status == ATT_OK)
        status = att_metadata_classes(&c.metadata, classes, known);
    if (status == ATT_OK)
        status = select_of_model(&c, model);
    if (status == ATT_OK)
        status = write_content(&c, model, beside, path);
    att_metadata_free(&c.metadata);
    return status;
}

/* --- resuming ----------------------------------------------------------------------------------------------------- */

att_status att_checkpoint_engine(att_context *context, const att_tensors *file, int *lanes, int *parts, int64_t *memory)
{
    int64_t read, shared = 0, given = 0;
    ATT_TRY(att_metadata_check_version(context, file));
    ATT_TRY(att_metadata_integer(context, file, "lanes", 1, ATT_MOST_LANES, &read));
    if (att_metadata_text(file, "parts"))
        ATT_TRY(att_metadata_integer(context, file, "parts", 1, 1024, &shared));
    if (att_metadata_text(file, "memory"))
        ATT_TRY(att_metadata_integer(context, file, "memory", 0, INT64_MAX, &given));
    *lanes = (int)read;
    *parts = (int)shared;
    *memory = given;
    return ATT_OK;
}

/* Reads all tensors of weights and slots through `buffer`. If `buffer` is NULL, only checks that they exist and have
 * the right shapes. */
static att_status read_slots(const att_train_run *run, const att_tensors *file, float *buffer, att_text *name)
{
    for (int slot = NO_SLOT; slot < att_weights_slot_count(run->weights); slot++) {
        char prefix[PREFIX_SIZE];
        tensor_prefix(slot < 0 ? NULL : att_weights_slot_name(run->weights, slot), prefix);
        for (int i = 0; i < att_weights_count(run->weights); i++) {
            att_parameter_info parameter = att_weights_at(run->weights, i);
            int64_t count = att_shape_count(parameter.shape);
            int index = -1;
            if (slot >= 0 && !att_weights_in_slot(run->weights, slot, i))
                continue;
            ATT_TRY(find_tensor(run->context, file, prefix, &parameter, name, &index));
            if (!buffer)
                continue;
            ATT_TRY(att_tensors_read(file, index, ATT_SAFETENSORS_F32, buffer, count));
            ATT_TRY(att_weights_set(run->weights, slot, i, buffer, count));
        }
    }
    return ATT_OK;
}

static int64_t largest_parameter(const att_weights *weights)
{
    int64_t most = 1;
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        most = count > most ? count : most;
    }
    return most;
}

static att_status load_slots(const att_train_run *run, const att_tensors *file)
{
    att_text name = {.context = run->context};
    size_t bytes = (size_t)largest_parameter(run->weights) * sizeof(float);
    float *buffer = att_allocate(run->context, bytes);
    att_status status =
        buffer ? read_slots(run, file, NULL, &name) : att_fail_memory(run->context, bytes, "a tensor being read");
    if (status == ATT_OK)
        status = read_slots(run, file, buffer, &name);
    att_free(run->context, buffer);
    att_text_free(&name);
    return status;
}

att_status att_checkpoint_resume(const att_train_run *run, const att_tensors *file, att_train_state *state)
{
    ATT_TRY(att_metadata_compare(run, file));
    ATT_TRY(att_metadata_state(run, file, state));
    return load_slots(run, file);
}
