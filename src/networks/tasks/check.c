/* Checks a task's descriptor before it is registered. */
#include <string.h>

#include "base/core/catalog.h"
#include "networks/tasks/task.h"

#define SPELLING "1 to 23 letters, digits and underscores, the first a letter"

static att_status refuse(att_context *context, const att_task *task, const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "task \"%s\": %s", task->info.name, what);
}

/* what: "metric", "option" */
static att_status refuse_part(att_context *context, const att_task *task, const char *what, const char *name,
                              const char *reason)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "task \"%s\", %s \"%s\": %s", task->info.name, what, name, reason);
}

static att_status check_functions(att_context *context, const att_task *task)
{
    const struct {
        const char *name;
        bool there;
    } functions[] = {
        {"head", task->head}, {"fields", task->fields},   {"fill", task->fill},
        {"loss", task->loss}, {"observe", task->observe}, {"report", task->report},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!functions[i].there)
            return att_fail(context, ATT_ERR_ARGUMENT, "task \"%s\": it has no function `%s`", task->info.name,
                            functions[i].name);
    if (!task->teacher_field != !task->read_teacher)
        return refuse(context, task, "it needs both functions `teacher_field` and `read_teacher`, or none");
    if (!task->pixel_logits != !task->observe_pixels || !task->pixel_classes != !task->observe_pixels ||
        (task->observe_pixels && !task->counts))
        return refuse(context, task,
                      "it needs all of `pixel_logits`, `pixel_classes`, `observe_pixels` and `counts`, or none of the "
                      "first three");
    return task->state_size > 0 ? ATT_OK : refuse(context, task, "its `state_size` is 0");
}

static att_status check_metrics(att_context *context, const att_task *task)
{
    const att_task_info *info = &task->info;
    if (!info->metrics || info->metric_count < 1 || info->metric_count > ATT_MAX_METRICS)
        return refuse(context, task, "it needs 1 to 16 metrics");
    if (info->best < 0 || info->best >= info->metric_count)
        return refuse(context, task, "`best` must be the index of one of its metrics");
    for (int i = 0; i < info->metric_count; i++) {
        const att_metric *metric = &info->metrics[i];
        if (!att_name_is_valid(metric->name))
            return refuse(context, task, "each metric needs a name of " SPELLING);
        if (!metric->label || !metric->unit)
            return refuse_part(context, task, "metric", metric->name, "it needs `label` and `unit`, which may be \"\"");
        if (att_task_metric(info, metric->name) != i)
            return refuse_part(context, task, "metric", metric->name, "there are two of this name");
    }
    return ATT_OK;
}

static size_t member_size(const att_option *option)
{
    switch (option->kind) {
    case ATT_OPTION_WHOLE:
    case ATT_OPTION_SWITCH:
        return sizeof(int);
    case ATT_OPTION_SIDES:
        return sizeof(int[2]);
    case ATT_OPTION_REAL:
        return sizeof(double);
    case ATT_OPTION_TEXT:
        return option->size <= ATT_OPTION_TEXT_BYTES ? option->size : 0;
    }
    return 0;
}

/* Returns the name of a task of the context that has an option of that key; NULL if there is none. */
static const char *task_with_option(const att_context *context, const char *key)
{
    for (int t = 0; t < att_task_count(context); t++) {
        const att_task_info info = att_task_at(context, t);
        const att_option_table table = {info.options, info.option_count, 0};
        if (att_option_find(&table, key))
            return info.name;
    }
    return NULL;
}

static att_status check_option(att_context *context, const att_task *task, const att_option_table *table, int index)
{
    const att_option *option = &table->options[index];
    if (!att_name_is_valid(option->key))
        return refuse(context, task, "each option needs a key of " SPELLING);
    if (att_option_find(table, option->key) != option)
        return refuse_part(context, task, "option", option->key, "there are two of this key");
    const char *other = task_with_option(context, option->key);
    if (other && strcmp(other, task->info.name) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "task \"%s\", option \"%s\": the task \"%s\" has an option of this key", task->info.name,
                        option->key, other);
    if (strcmp(option->key, "name") == 0)
        return refuse_part(context, task, "option", option->key, "checkpoints have the task's name under this key");
    if (!option->help)
        return refuse_part(context, task, "option", option->key, "it has no `help`");
    if (option->size == 0 || option->size != member_size(option) || option->offset > task->options_size ||
        option->size > task->options_size - option->offset)
        return refuse_part(context, task, "option", option->key,
                           "its offset or size does not fit the struct of `options_size` bytes: use ATT_OPTION_AT");
    return ATT_OK;
}

/* Checks that every option has a valid default. */
static att_status check_defaults(att_context *context, const att_task *task, const att_option_table *table)
{
    att_option_values values = att_options_none();
    att_settings_buffer room;
    if (task->defaults)
        task->defaults(&values);
    for (int i = 0; i < table->count; i++)
        if (!att_options_find(&values, table->options[i].key))
            return refuse_part(context, task, "option", table->options[i].key, "`defaults` does not set it");
    for (int i = 0; i < values.count; i++)
        if (!att_option_find(table, values.items[i].key))
            return refuse_part(context, task, "option", values.items[i].key,
                               "`defaults` sets it, but it is not declared");
    return att_options_read(context, table, &values, &room);
}

static att_status check_options(att_context *context, const att_task *task)
{
    const att_option_table table = {task->info.options, task->info.option_count, task->options_size};
    if (table.count < 0 || table.count > ATT_MOST_OPTIONS || (table.count > 0 && !table.options))
        return refuse(context, task, "its options are missing, or more than 48");
    if (table.size > sizeof(att_settings_buffer))
        return refuse(context, task, "`options_size` is larger than att_settings_buffer");
    for (int i = 0; i < table.count; i++)
        ATT_TRY(check_option(context, task, &table, i));
    return check_defaults(context, task, &table);
}

/* Checks that the head's scope is unique: it identifies the head in a file. */
static att_status check_scope(att_context *context, const att_task *task)
{
    const char *scope = task->info.head_scope;
    if (!scope)
        return ATT_OK;
    if (!att_name_is_valid(scope))
        return refuse(context, task, "its `head_scope` must be " SPELLING);
    for (int i = 0; i < att_task_count(context); i++) {
        const att_task_info other = att_task_at(context, i);
        if (other.head_scope && strcmp(other.head_scope, scope) == 0)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "task \"%s\": its `head_scope` \"%s\" is that of the task \"%s\"", task->info.name, scope,
                            other.name);
    }
    return ATT_OK;
}

att_status att_task_check(att_context *context, const att_task *task)
{
    if (!task->info.help)
        return refuse(context, task, "it has no `help`");
    ATT_TRY(check_scope(context, task));
    ATT_TRY(check_functions(context, task));
    ATT_TRY(check_metrics(context, task));
    return check_options(context, task);
}
