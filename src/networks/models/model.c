#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "networks/heads/heads.h"
#include "networks/models/config.h"
#include "networks/models/family.h"
#include "networks/models/list.h"

#define DECLARE(name) extern const att_family att_family_##name;
ATT_FAMILY_LIST(DECLARE)
#define POINTER(name) &att_family_##name,
static const att_family *const families[] = {ATT_FAMILY_LIST(POINTER)};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

struct att_model {
    att_context *context;
    att_graph *graph;
    const char *name;
    const att_family *family;
    int variant; /* index within the family */
    const att_task *task;
    att_option_values options;
    att_settings_buffer settings; /* the options, in the family's struct */
    att_features features;
    att_preprocess preprocess;
};

/* --- families ---------------------------------------------------------------------------------------------------- */

int att_family_count(void)
{
    return FAMILY_COUNT;
}

const att_family *att_family_at(int index)
{
    return index >= 0 && index < FAMILY_COUNT ? families[index] : NULL;
}

int att_model_family_count(void)
{
    return FAMILY_COUNT;
}

att_family_info att_model_family_at(int index)
{
    const att_family *family = att_family_at(index);
    if (!family)
        return (att_family_info){0};
    return (att_family_info){.name = family->name,
                             .options = family->options->options,
                             .option_count = family->options->count,
                             .hooks = family->hooks.items,
                             .hook_count = family->hooks.count};
}

att_family_info att_model_family_of(const char *network)
{
    for (int f = 0; network && f < FAMILY_COUNT; f++)
        for (int i = 0; i < families[f]->variants->count; i++)
            if (strcmp(families[f]->variants->rows[i].name, network) == 0)
                return att_model_family_at(f);
    return (att_family_info){0};
}

const att_option *att_family_option(const char *key)
{
    const att_option *option = NULL;
    for (int f = 0; f < FAMILY_COUNT && !option; f++)
        option = att_option_find(families[f]->options, key);
    return option;
}

const char *att_task_choice_in(const att_context *context, int index)
{
    return index < att_task_count(context) ? att_task_at(context, index).name : NULL;
}

const char *att_module_choice_in(const att_context *context, int index)
{
    const att_module *module = att_module_at(context, index - 1);
    return index == 0 ? "none" : module ? module->name : NULL;
}

const char *att_task_choice_name(int index)
{
    return att_task_choice_in(NULL, index);
}

const char *att_module_choice_name(int index)
{
    return att_module_choice_in(NULL, index);
}

const char *att_head_choice_name(int index)
{
    static const char *const names[] = {ATT_HEAD_LINEAR, ATT_HEAD_UPER, ATT_HEAD_RCNN, ATT_HEAD_RCNN_V2};
    return index < 4 ? names[index] : NULL;
}

const char *att_neck_choice_name(int index)
{
    static const char *const names[] = {ATT_NECK_NONE, ATT_NECK_PYRAMID, ATT_NECK_MULTI_LEVEL};
    return index < 3 ? names[index] : NULL;
}

const att_family *att_family_detect(const att_tensors *file)
{
    for (int f = FAMILY_COUNT; f-- > 0;)
        for (const char *const *signature = families[f]->signatures; *signature; signature++)
            if (att_tensors_find(file, *signature) >= 0 && (!families[f]->claims || families[f]->claims(file)))
                return families[f];
    return NULL;
}

static att_foreign foreign_of(att_context *context, const att_family *family, const att_tensors *file)
{
    return family->rules ? att_rules_foreign(context, family, file) : family->foreign(context, file);
}

att_status att_family_recognise(att_context *context, const att_family *family, const att_tensors *file,
                                att_option_values *found)
{
    return family->rules ? att_rules_recognise(context, family, file, found) : family->recognise(context, file, found);
}

bool att_family_is_added(const att_context *context, const att_family *family, const char *name)
{
    return family->rules ? att_rules_is_added(context, family->rules, name)
                         : family->is_added && family->is_added(context, name);
}

/* The family that knows most of the tensors, the first of several; *foreign: those that it does not know. */
static const att_family *find_nearest(att_context *context, const att_tensors *file, att_foreign *foreign)
{
    const att_family *nearest = families[0];
    *foreign = foreign_of(context, nearest, file);
    for (int f = 1; f < FAMILY_COUNT; f++) {
        att_foreign other = foreign_of(context, families[f], file);
        if (other.count < foreign->count) {
            nearest = families[f];
            *foreign = other;
        }
    }
    return nearest;
}

const att_family *att_family_nearest(att_context *context, const att_tensors *file)
{
    att_foreign foreign;
    const att_family *detected = att_family_detect(file);
    return detected ? detected : find_nearest(context, file, &foreign);
}

att_status att_family_check_tensors(att_context *context, const att_tensors *file)
{
    att_foreign foreign;
    const att_family *nearest = find_nearest(context, file, &foreign);
    const char *before = foreign.sign ? ", a sign of " : "", *sign = foreign.sign ? foreign.sign : "";
    const char *path = att_tensors_path(file);
    ATT_TRY(att_check_stop(context, path));
    if (foreign.count == 0)
        return ATT_OK;
    if (foreign.count == foreign.total)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s: no network of attscope has any of its %d tensors, such as \"%.100s\"%s%s", path,
                        foreign.total, foreign.name, before, sign);
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "%s: no network of attscope has all of its tensors: the nearest family, %s, lacks %d of %d, such as "
        "\"%.100s\"%s%s",
        path, nearest->name, foreign.count, foreign.total, foreign.name, before, sign);
}

static const char *key_at(const void *family, int index)
{
    return ((const att_family *)family)->options->options[index].key;
}

/* The family's option with the meaning of another family's option `key`; NULL if there is none. */
static const char *option_instead(const att_family *family, const char *key)
{
    for (int i = 0; i < family->options->count; i++) {
        const att_option *option = &family->options->options[i];
        if (option->instead_of && strcmp(option->instead_of, key) == 0)
            return option->key;
    }
    return NULL;
}

/* Reports a key that the family lacks. */
static att_status fail_key(att_context *context, const att_family *family, const char *key)
{
    char having[128] = "";
    size_t length = 0;
    int count = 0, named = 0;
    for (int f = 0; f < FAMILY_COUNT; f++)
        count += att_option_find(families[f]->options, key) != NULL;
    for (int f = 0; f < FAMILY_COUNT && length < sizeof having; f++)
        if (att_option_find(families[f]->options, key)) {
            const char *before = named == 0 ? "" : named == count - 1 ? " and " : ", ";
            length += (size_t)snprintf(having + length, sizeof having - length, "%s\"%s\"", before, families[f]->name);
            named++;
        }
    const char *instead = option_instead(family, key);
    if (count > 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s is an option of the %s %s, not of \"%s\"%s%s%s", key,
                        count > 1 ? "families" : "family", having, family->name, instead ? ", which has " : "",
                        instead ? instead : "", instead ? " instead" : "");
    const char *nearest = att_text_nearest(key, key_at, family, family->options->count);
    return att_fail(context, ATT_ERR_ARGUMENT, "networks have no option \"%s\"%s%s%s", key,
                    nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

att_status att_family_check(att_context *context, const att_family *family, const att_option_values *options)
{
    if (att_options_number(options, "in_chans", 1) == 2)
        return att_fail(context, ATT_ERR_ARGUMENT, "in_chans must be 1 or 3, not 2");
    for (int i = 0; i < options->count; i++) {
        const char *key = options->items[i].key;
        if (!att_option_find(family->options, key))
            return fail_key(context, family, key);
    }
    att_settings_buffer settings;
    return att_options_read(context, family->options, options, &settings);
}

void att_family_note_ignored(att_context *context, const att_family *family, const att_option_values *given,
                             const att_option_values *options)
{
    for (int i = 0; i < family->options->count; i++) {
        const att_option *option = &family->options->options[i];
        char from[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES], to[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
        if (option->kind == ATT_OPTION_TEXT || option->implied_by || !(att_options_number(given, option->key, 0) > 0) ||
            att_option_same(option, given, options) || !att_option_format(option, given, from) ||
            !att_option_format(option, options, to))
            continue;
        att_log(context, ATT_LOG_INFO, "%s %.32s has no effect: with the other options of this network it is %.32s",
                option->key, from[0], to[0]);
    }
}

static att_status complete(att_context *context, const att_family *family, att_option_values *options,
                           att_settings_buffer *settings)
{
    ATT_TRY(att_options_read(context, family->options, options, settings));
    ATT_TRY(family->complete(context, settings));
    att_options_write(family->options, settings, options);
    return ATT_OK;
}

att_status att_family_complete(att_context *context, const att_family *family, att_option_values *options)
{
    att_settings_buffer settings;
    return complete(context, family, options, &settings);
}

/* --- variants ---------------------------------------------------------------------------------------------------- */

int att_variant_count(void)
{
    int count = 0;
    for (int f = 0; f < FAMILY_COUNT; f++)
        count += families[f]->variants->count;
    return count;
}

att_variant att_variant_at(int index)
{
    int f = 0;
    while (f < FAMILY_COUNT - 1 && index >= families[f]->variants->count)
        index -= families[f++]->variants->count;
    return (att_variant){.family = families[f], .index = index, .tag = att_config_none()};
}

static const att_variant_row *row_of(const att_variant *variant)
{
    return &variant->family->variants->rows[variant->index];
}

int att_model_count(void)
{
    return att_variant_count();
}

att_model_info att_model_at(int index)
{
    if (index < 0 || index >= att_model_count())
        return (att_model_info){0};
    const att_variant variant = att_variant_at(index);
    const att_variant_row *row = row_of(&variant);
    return (att_model_info){
        .name = row->name, .summary = row->summary, .height = row->img_size, .width = row->img_size};
}

static void read_settings(const att_family *family, const char *settings, att_config *config)
{
    /* cannot fail: the tests read the settings of every variant */
    (void)att_config_read_settings(NULL, family->options, settings, strlen(settings), config);
}

/* The settings of a variant without those of its tag. */
static att_config config_of(const att_variant *variant)
{
    static const char every_family[] = "modules=none drop_rate=0 drop_path_rate=0";
    static const char every_image[] = "in_chans=3 crop_mode=center interpolation=bicubic";
    const att_variant_row *row = row_of(variant);
    att_config config = att_config_none();
    config.crop_pct = row->crop_pct;
    if (row->img_size > 0)
        att_options_set_sides(&config.options, "img_size", row->img_size, row->img_size);
    att_options_set(&config.options, "num_classes", row->num_classes);
    read_settings(variant->family, row->settings, &config);
    read_settings(variant->family, variant->family->variants->shared, &config);
    read_settings(variant->family, every_family, &config);
    if (row->img_size > 0)
        read_settings(variant->family, every_image, &config);
    return config;
}

/* Replaces the images of the network if an option of the caller implies others. Returns whether it does. */
static bool take_other_images(const att_variant *variant, const att_option_values *given, att_config *config)
{
    const char *key = variant->family->variants->images_by.key, *value = variant->family->variants->images_by.value;
    att_config other = att_config_none();
    if (!key || !given || strcmp(att_options_text(given, key), value) != 0 ||
        strcmp(att_options_text(&config->options, key), value) == 0)
        return false;
    read_settings(variant->family, variant->family->variants->images_by.settings, &other);
    att_config_fill(&other, config);
    *config = other;
    return true;
}

void att_variant_defaults(const att_variant *variant, const att_option_values *given, att_option_values *options,
                          att_preprocess *preprocess)
{
    att_settings_buffer settings;
    att_config config = config_of(variant);
    bool other_images = take_other_images(variant, given, &config);
    *options = att_options_none();
    if (att_options_read(NULL, variant->family->options, &config.options, &settings) == ATT_OK)
        att_options_write(variant->family->options, &settings, options);
    att_options_set_text(options, "task", att_task_at(NULL, 0).name);
    if (!other_images) {
        att_option_values tagged = variant->tag.options;
        att_options_fill(&tagged, options);
        *options = tagged;
    }
    *preprocess = (att_preprocess){0};
    att_options_size(options, preprocess);
    att_config_apply(&config, preprocess);
    if (!other_images) /* else the images are not those of the tag's weights */
        att_config_apply(&variant->tag, preprocess);
}

att_status att_model_count_cost(att_context *context, att_model_info *info)
{
    att_model *model;
    ATT_TRY(att_model_create(context, info->name, NULL, ATT_F32, &model));
    info->parameters = att_graph_parameter_elements(model->graph);
    info->gmacs = att_graph_cost(model->graph).macs / 1e9;
    att_model_destroy(&model);
    return ATT_OK;
}

/* --- one model --------------------------------------------------------------------------------------------------- */

att_value *att_features_of_tokens(att_graph *graph, int prefix, int height, int width, int count,
                                  att_features *features)
{
    att_value *blocks = att_graph_values(graph, count);
    features->prefix = prefix;
    features->grid[0] = height;
    features->grid[1] = width;
    features->block_count = blocks ? count : 0;
    features->blocks = blocks;
    return blocks;
}

static att_value find_image(const att_graph *graph)
{
    for (int i = 0; i < graph->inputs.count; i++)
        if (strcmp(graph->inputs.items[i].name, ATT_IMAGE) == 0)
            return graph->inputs.items[i].value;
    return ATT_NONE;
}

/* Without classes the output is the input of a classifier. */
static void add_head(att_model *model)
{
    if (model->task->taps)
        att_task_tap_blocks(model->task, model->graph, &model->options, &model->features);
    if (att_graph_status(model->graph) != ATT_OK)
        return;
    const att_backbone backbone = {.image = find_image(model->graph),
                                   .features = model->features,
                                   .options = &model->options,
                                   .classifier = model->family->classifier(&model->settings),
                                   .classes = att_model_classes(model),
                                   .drop_rate = att_options_number(&model->options, "drop_rate", 0)};
    if (backbone.classes > 0)
        model->task->head(model->graph, &backbone);
    else
        att_graph_output(model->graph, ATT_FEATURES, model->features.pooled);
}

/* An option of a family and an option of its task would be one setting, flag and line of a recipe. */
static att_status check_task_keys(const att_model *model)
{
    const att_task_info *info = &model->task->info;
    for (int i = 0; i < info->option_count; i++)
        if (att_family_option(info->options[i].key))
            return att_fail(model->context, ATT_ERR_ARGUMENT,
                            "task \"%s\", option \"%s\": networks have an option of this key; give it another one",
                            info->name, info->options[i].key);
    return ATT_OK;
}

/* Refuses options of heads that read maps if the task has another head. */
static att_status check_map_options(const att_model *model)
{
    for (int i = 0; i < model->options.count && !model->task->taps; i++) {
        const att_option *option = att_option_find(model->family->options, model->options.items[i].key);
        if (option && option->of_maps)
            return att_fail(
                model->context, ATT_ERR_ARGUMENT,
                "%s is an option of heads that read maps of features, as those of the tasks \"segment\" and "
                "\"detect\"; the head of the task \"%s\" does not",
                option->key, model->task->info.name);
    }
    return ATT_OK;
}

/* Parameters in a task's own scope belong to its head (att_task_of_parameter()). */
static att_status check_head_scope(const att_model *model)
{
    const char *scope = model->task->info.head_scope;
    size_t length = scope ? strlen(scope) : 0;
    bool taken = scope && strcmp(scope, model->family->classifier(&model->settings).scope) == 0;
    for (int i = 0; scope && !taken && i < att_graph_parameter_count(model->graph); i++) {
        const char *name = att_graph_parameter_at(model->graph, i).name;
        taken = strncmp(name, scope, length) == 0 && (name[length] == '.' || !name[length]);
    }
    return taken ? att_fail(model->context, ATT_ERR_ARGUMENT,
                            "task \"%s\": its `head_scope` \"%s\" is a scope of the network %s; give it another name",
                            model->task->info.name, scope, model->name)
                 : ATT_OK;
}

/* Checks that runs have something to return. "loss" is reserved for the loss of a training run. */
static att_status check_outputs(const att_model *model)
{
    for (int i = 0; i < model->graph->outputs.count; i++) {
        const att_named_value *output = &model->graph->outputs.items[i];
        if (!output->probe && strcmp(output->name, "loss") != 0)
            return ATT_OK;
    }
    return att_fail(
        model->context, ATT_ERR_ARGUMENT,
        "task \"%s\": its function `head` adds no output; it must call att_graph_output() with a name other "
        "than \"loss\"",
        model->task->info.name);
}

static att_status build_graph(att_model *model, att_dtype dtype)
{
    ATT_TRY(att_graph_create(model->context, dtype, &model->graph));
    model->features =
        (att_features){.tokens = ATT_NONE, .pooled = ATT_NONE, .classified = {ATT_NONE, ATT_NONE}, .shares = ATT_NONE};
    model->family->build(model->graph, &model->settings, &model->features);
    ATT_TRY(check_head_scope(model));
    add_head(model);
    ATT_TRY(att_graph_status(model->graph));
    return check_outputs(model);
}

bool att_task_take_images(const att_context *context, const char *task, att_option_values *options,
                          att_preprocess *preprocess)
{
    const att_task *found = att_task_named(context, task);
    if (!found || !found->images)
        return false;
    if (found->images->height > 0)
        att_options_set_sides(options, "img_size", found->images->height, found->images->width);
    preprocess->crop_pct = 1;
    snprintf(preprocess->crop_mode, sizeof preprocess->crop_mode, "%s", found->images->crop_mode);
    if (found->images->interpolation)
        snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", found->images->interpolation);
    return true;
}

/* Sets options, preprocessing and task of a model from the variant and the caller's options (NULL: none). */
static att_status resolve_options(att_model *model, const att_variant *variant, const att_option_values *options)
{
    att_option_values own;
    att_variant_defaults(variant, options, &own, &model->preprocess);
    if (options)
        (void)att_task_take_images(model->context, att_options_text(options, "task"), &own, &model->preprocess);
    model->options = options ? *options : att_options_none();
    model->name = row_of(variant)->name;
    model->family = variant->family;
    model->variant = variant->index;
    att_options_use_keys(model->family->options, &model->options);
    ATT_TRY(att_family_check(model->context, model->family, &model->options));
    if (*att_options_text(&model->options, "modules") == '@')
        ATT_TRY(att_placed_complete(model->context, att_options_text(&own, "modules"), &model->options));
    att_options_fill(&model->options, &own);
    ATT_TRY(complete(model->context, model->family, &model->options, &model->settings));
    if (options)
        att_family_note_ignored(model->context, model->family, options, &model->options);
    ATT_TRY(att_task_choose(model->context, att_options_text(&model->options, "task"), &model->task));
    ATT_TRY(check_task_keys(model));
    ATT_TRY(check_map_options(model));
    att_options_size(&model->options, &model->preprocess);
    att_preprocess_average(&model->preprocess);
    return ATT_OK;
}

att_status att_model_build(att_context *context, const att_variant *variant, const att_option_values *options,
                           att_dtype dtype, att_model **out)
{
    att_model *model;
    ATT_TRY(att_new(context, &model, 1, "a model"));
    *model = (att_model){.context = context};
    att_status status = resolve_options(model, variant, options);
    if (status == ATT_OK)
        status = build_graph(model, dtype);
    if (status != ATT_OK)
        att_model_destroy(&model);
    else
        *out = model;
    return status;
}

att_status att_model_create(att_context *context, const char *name, const att_option_values *options, att_dtype dtype,
                            att_model **model)
{
    att_variant variant;
    ATT_TRY(att_variant_find(context, name, &variant));
    return att_model_build(context, &variant, options, dtype, model);
}

att_status att_model_rebuild(const att_model *model, const att_option_values *options, att_model **out)
{
    const att_variant variant = {.family = model->family, .index = model->variant, .tag = att_config_none()};
    ATT_TRY(att_model_build(model->context, &variant, options ? options : &model->options,
                            att_graph_dtype(model->graph), out));
    att_model_set_preprocess(*out, &model->preprocess);
    return ATT_OK;
}

void att_model_destroy(att_model **model)
{
    if (!model || !*model)
        return;
    att_graph_destroy(&(*model)->graph);
    att_free((*model)->context, *model);
    *model = NULL;
}

att_graph *att_model_graph(const att_model *model)
{
    return model->graph;
}

const char *att_model_name(const att_model *model)
{
    return model->name;
}

const att_family *att_model_family(const att_model *model)
{
    return model->family;
}

/* Values in f32 are read into the second half of `values`, then widened from the front. */
att_status att_model_parameter(const att_model *model, const att_weights *weights, int index, int64_t count,
                               double *values)
{
    if (att_graph_dtype(att_model_graph(model)) == ATT_F64)
        return att_weights_get(weights, -1, index, values, count);
    float *narrow = (float *)values + count;
    ATT_TRY(att_weights_get(weights, -1, index, narrow, count));
    for (int64_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, (const char *)values + sizeof value * (size_t)(count + i), sizeof value);
        values[i] = (double)value;
    }
    return ATT_OK;
}

/* Values in f32 are narrowed from the front: each is written after it was read. */
att_status att_model_set_parameter(const att_model *model, att_weights *weights, int index, int64_t count,
                                   double *values)
{
    if (att_graph_dtype(att_model_graph(model)) == ATT_F64)
        return att_weights_set(weights, -1, index, values, count);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)values[i];
        memcpy((char *)values + sizeof value * (size_t)i, &value, sizeof value);
    }
    return att_weights_set(weights, -1, index, values, count);
}

const void *att_model_settings(const att_model *model)
{
    return &model->settings;
}

const att_features *att_model_features(const att_model *model)
{
    return &model->features;
}

const att_option_values *att_model_options(const att_model *model)
{
    return &model->options;
}

int att_model_classes(const att_model *model)
{
    return (int)att_options_number(&model->options, "num_classes", 0);
}

att_task_info att_model_task(const att_model *model)
{
    return model->task->info;
}

const att_task *att_model_task_of(const att_model *model)
{
    return model->task;
}

static bool is_in_scope(const char *scope, const char *name)
{
    size_t length = scope ? strlen(scope) : 0;
    return scope && strncmp(name, scope, length) == 0 && name[length] == '.';
}

bool att_model_is_head(const att_model *model, const char *name)
{
    const att_classifier_form classifier = model->family->classifier(&model->settings);
    return att_task_of_parameter(model->context, name) || is_in_scope(classifier.scope, name) ||
           is_in_scope(classifier.second, name);
}

int att_model_layer(const att_model *model, const char *name)
{
    return model->family->rules ? att_rules_layer(model->family->rules, name) : model->family->layer(name);
}

int64_t att_model_tokens(const att_model *model)
{
    int64_t most = 0;
    for (int i = 0; i < model->graph->nodes.count; i++) {
        const att_node *node = &model->graph->nodes.items[i];
        if (!att_is_attention(node))
            continue;
        int64_t keys = att_attention_keys(model->graph, node);
        most = keys > most ? keys : most;
    }
    return most;
}

att_model_input att_model_input_at(const att_model *model, int index)
{
    const att_family_input *input = att_family_input_of(model->family, &model->options, index);
    if (!input)
        return (att_model_input){0};
    const char *limit = input->counts ? input->counts : input->below;
    return (att_model_input){.field = {.name = input->name,
                                       .dtype = input->dtype,
                                       .shape = att_family_input_shape(model->family, input, &model->options)},
                             .image = input->image ? &model->preprocess : NULL,
                             .least = input->counts ? 1 : 0,
                             .most = limit ? (int32_t)att_options_number(&model->options, limit, 1) - !input->counts
                                           : INT32_MAX};
}

att_preprocess att_model_preprocess(const att_model *model)
{
    return model->preprocess;
}

void att_model_set_preprocess(att_model *model, const att_preprocess *preprocess)
{
    model->preprocess = *preprocess;
    att_options_size(&model->options, &model->preprocess);
}

att_identity att_model_identity(const att_model *model)
{
    att_identity identity = {.options = model->options, .preprocess = model->preprocess};
    snprintf(identity.name, sizeof identity.name, "%s", model->name);
    att_options_drop_training(&identity.options);
    return identity;
}
