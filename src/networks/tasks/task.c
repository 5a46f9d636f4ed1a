#include "networks/tasks/task.h"

#include <string.h>

#include "base/core/catalog.h"
#include "base/core/text.h"
#include "data/dataset.h"
#include "engine/graph/graph.h"
#include "networks/tasks/list.h"

#define ADDRESS(name) &att_task_##name,
static const att_task *const tasks[] = {ATT_TASK_LIST(ADDRESS)};
#undef ADDRESS
enum { TASK_COUNT = sizeof tasks / sizeof *tasks };

static const void *built_in(int index)
{
    return index < TASK_COUNT ? tasks[index] : NULL;
}

static const char *name_of(const void *task)
{
    return ((const att_task *)task)->info.name;
}

static const att_catalog catalog = {.kind = "task", .built_in = built_in, .name = name_of};

int att_task_count(const att_context *context)
{
    return att_catalog_count(&catalog, context);
}

att_task_info att_task_at(const att_context *context, int index)
{
    const att_task *task = att_catalog_at(&catalog, context, index);
    return task ? task->info : (att_task_info){0};
}

const att_task *att_task_named(const att_context *context, const char *name)
{
    return att_catalog_find(&catalog, context, name);
}

att_status att_task_choose(att_context *context, const char *name, const att_task **task)
{
    *task = att_task_named(context, name);
    if (*task)
        return ATT_OK;
    att_text names = {.context = context};
    att_catalog_list(&catalog, context, &names);
    att_status status = names.failed ? att_fail_memory(context, names.length, "the list of tasks")
                                     : att_fail(context, ATT_ERR_NOT_FOUND, "no task is named \"%s\"; there are: %s",
                                                name ? name : "", names.data);
    att_text_free(&names);
    return status;
}

att_status att_task_find(att_context *context, const char *name, att_task_info *info)
{
    const att_task *task;
    ATT_TRY(att_task_choose(context, name, &task));
    *info = task->info;
    return ATT_OK;
}

const att_task *att_task_of_parameter(const att_context *context, const char *name)
{
    const att_task *task;
    for (int i = 0; (task = att_catalog_at(&catalog, context, i)); i++) {
        const char *scope = task->info.head_scope;
        size_t length = scope ? strlen(scope) : 0;
        if (length > 0 && strncmp(name, scope, length) == 0 && name[length] == '.')
            return task;
    }
    return NULL;
}

/* --- registering -------------------------------------------------------------------------------------------------- */

att_status att_task_register(att_context *context, const att_task *task)
{
    if (!task)
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no task to register: the descriptor is NULL");
    ATT_TRY(att_catalog_check(&catalog, context, task->info.name));
    ATT_TRY(att_task_check(context, task));
    return att_catalog_add(&catalog, context, task);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static att_option_table table_of(const att_task *task)
{
    return (att_option_table){task->info.options, task->info.option_count, task->options_size};
}

void att_task_complete(const att_task *task, const att_option_values *given, att_option_values *options)
{
    *options = att_options_none();
    if (task->defaults)
        task->defaults(options);
    for (int i = 0; given && i < given->count; i++)
        att_option_copy(given->items[i].key, given, options);
}

void att_task_defaults(const att_context *context, const char *name, att_option_values *options)
{
    const att_task *task = att_task_named(context, name);
    if (task && task->defaults)
        task->defaults(options);
}

static att_status check_key(att_context *context, const att_task *task, const char *key)
{
    const att_option_table table = table_of(task);
    if (att_option_find(&table, key))
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT, "the task \"%s\" has no option \"%s\"", task->info.name, key);
}

att_status att_task_configure(att_context *context, const att_task *task, const att_task_setup *setup,
                              att_task_settings *settings)
{
    const att_option_table table = table_of(task);
    att_option_values options;
    *settings = (att_task_settings){
        .classes = setup->classes, .mixed = setup->mixed, .taught = setup->taught, .network = setup->network};
    if (setup->taught && !task->teacher_field)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "networks for the task \"%s\" cannot learn from a teacher",
                        task->info.name);
    att_task_complete(task, setup->options, &options);
    for (int i = 0; i < options.count; i++)
        ATT_TRY(check_key(context, task, options.items[i].key));
    return att_options_read(context, &table, &options, &settings->options);
}

att_status att_tasks_check_options(att_context *context, const att_option_values *given, bool taught)
{
    const att_task *task;
    for (int t = 0; (task = att_catalog_at(&catalog, context, t)); t++) {
        const att_option_table table = table_of(task);
        att_option_values options;
        att_task_settings settings = {.taught = taught};
        if (!task->check_options)
            continue;
        att_task_complete(task, given, &options);
        ATT_TRY(att_options_read(context, &table, &options, &settings.options));
        ATT_TRY(task->check_options(context, &settings));
    }
    return ATT_OK;
}

unsigned att_task_annotations(const att_context *context, const char *name)
{
    const att_task *task = att_catalog_find(&catalog, context, name);
    return task ? task->annotations : 0;
}

int att_task_metric(const att_task_info *info, const char *name)
{
    int index = info->metric_count - 1;
    while (index >= 0 && (!name || strcmp(info->metrics[index].name, name) != 0))
        index--;
    return index;
}

const int32_t *att_task_classes(const att_task *task, const att_batch *batch)
{
    for (int f = 0; task->class_field && f < batch->field_count; f++)
        if (strcmp(batch->fields[f].name, task->class_field) == 0 && batch->fields[f].dtype == ATT_I32)
            return batch->data[f];
    return NULL;
}

const char *att_task_class_output(const att_graph *graph)
{
    const att_task *task;
    for (int t = 0; (task = att_catalog_at(&catalog, graph->context, t)); t++)
        if (task->class_output && att_graph_find_output(graph, task->class_output) != ATT_NONE)
            return task->class_output;
    return tasks[0]->class_output;
}

att_status att_task_check_data(att_context *context, const att_task *task, const att_task_settings *settings,
                               const att_dataset *dataset)
{
    if (task->annotations & ~att_dataset_annotations(dataset)) {
        char text[256];
        return att_fail(context, ATT_ERR_MISMATCH, "the task \"%s\" needs %s, which this data set lacks: %s",
                        task->info.name, att_annotation_name(task->annotations),
                        att_dataset_describe(dataset, text, sizeof text));
    }
    return task->check ? task->check(context, settings, dataset) : ATT_OK;
}

att_status att_task_check_classes(att_context *context, const att_task_settings *settings, const att_dataset *dataset)
{
    char name[256];
    int64_t count = att_dataset_count(dataset);
    if (settings->classes == 0)
        return att_fail(context, ATT_ERR_MISMATCH, "the model has no head and so no classes to compare with labels");
    for (int64_t i = 0; i < count; i++) {
        int32_t label = att_dataset_label(dataset, i);
        if (label < 0 || label >= settings->classes)
            return att_fail(context, ATT_ERR_MISMATCH, "%s is of class %d, but the model has %d class%s",
                            att_dataset_name(dataset, i, name, sizeof name), (int)label, settings->classes,
                            settings->classes == 1 ? "" : "es");
    }
    return ATT_OK;
}

/* Checks the fields that the function of a registered task returned. */
static att_status check_fields(att_context *context, const att_task *task, const att_field *fields, int count)
{
    const char *name = task->info.name;
    bool has_class = !task->class_field;
    if (count < 0 || count > ATT_MAX_TARGETS)
        return att_fail(context, ATT_ERR_ARGUMENT, "task \"%s\": its function `fields` returned %d, expected 0 to %d",
                        name, count, ATT_MAX_TARGETS);
    for (int f = 0; f < count; f++) {
        if (!fields[f].name || !*fields[f].name)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "task \"%s\": its function `fields` gave target %d no name, by which the loss finds it",
                            name, f);
        has_class = has_class || strcmp(fields[f].name, task->class_field) == 0;
    }
    return has_class ? ATT_OK
                     : att_fail(context, ATT_ERR_ARGUMENT,
                                "task \"%s\": its `class_field` is \"%s\", but none of its targets has this name", name,
                                task->class_field);
}

att_status att_task_targets(att_context *context, const att_task *task, const att_task_settings *settings,
                            att_field fields[ATT_MAX_TARGETS], att_target_rules *rules)
{
    const int count = task->fields(settings, fields);
    ATT_TRY(check_fields(context, task, fields, count));
    *rules = (att_target_rules){.fields = fields,
                                .count = count,
                                .fill = task->fill,
                                .choose_crop = task->choose_crop,
                                .mix = task->mix,
                                .cuts_only = task->annotations & ATT_ANNOTATION_MASK,
                                .user = settings,
                                .local = task->counts};
    return ATT_OK;
}

att_status att_task_build_loss(const att_task *task, att_graph *graph, const att_task_settings *settings)
{
    att_graph_scope(graph, "loss");
    att_graph_output(graph, "loss", task->loss(graph, settings));
    return graph->status;
}

att_status att_task_add_loss(const char *name, att_graph *graph, const att_task_setup *setup)
{
    const att_task *task;
    att_task_settings settings;
    ATT_TRY(att_task_choose(graph->context, name, &task));
    ATT_TRY(att_task_configure(graph->context, task, setup, &settings));
    return att_task_build_loss(task, graph, &settings);
}

static bool is_observed(const att_task *task, const att_named_value *output)
{
    int i = 0;
    while (task->observed[i] && strcmp(task->observed[i], output->name) != 0)
        i++;
    return output->probe || task->observed[i] || strcmp(output->name, "loss") == 0;
}

void att_task_drop_outputs(const char *name, att_graph *graph)
{
    const att_task *task = att_task_named(graph->context, name);
    int kept = 0;
    if (!task || !task->observed)
        return;
    for (int i = 0; i < graph->outputs.count; i++)
        if (is_observed(task, &graph->outputs.items[i]))
            graph->outputs.items[kept++] = graph->outputs.items[i];
    graph->outputs.count = kept;
}

static att_status refuse_to_tell(att_context *context, const att_task *task)
{
    return att_fail(context, ATT_ERR_UNSUPPORTED, "the task \"%s\" cannot describe its predictions in this form",
                    task->info.name);
}

att_answer_options att_answer_options_defaults(void)
{
    return (att_answer_options){.topk = 5};
}

att_status att_task_write(att_context *context, const char *name, const att_batch *answer,
                          const att_answer_options *options, att_json_writer *writer)
{
    const att_task *task;
    const att_answer_options defaults = att_answer_options_defaults();
    ATT_TRY(att_require(context, answer, "the answer of a network"));
    ATT_TRY(att_task_choose(context, name, &task));
    if (!task->write)
        return refuse_to_tell(context, task);
    ATT_TRY(att_require(context, writer, "the writer of a prediction"));
    return task->write(context, answer, options ? options : &defaults, writer);
}

att_status att_task_describe(att_context *context, const char *name, const att_batch *answer,
                             const att_answer_options *options, void (*line)(void *user, const char *text), void *user)
{
    const att_task *task;
    const att_answer_options defaults = att_answer_options_defaults();
    ATT_TRY(att_require(context, answer, "the answer of a network"));
    ATT_TRY(att_task_choose(context, name, &task));
    if (!task->describe)
        return refuse_to_tell(context, task);
    if (!line)
        return att_fail(context, ATT_ERR_ARGUMENT, "the function for the lines of a prediction is missing: it is NULL");
    return task->describe(context, answer, options ? options : &defaults, line, user);
}
