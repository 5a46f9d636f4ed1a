#include "tasks/task.h"

#include <string.h>

#include "core/text.h"
#include "graph/graph.h"
#include "tasks/list.h"

#define ADDRESS(name) &att_task_##name,
static const att_task *const tasks[] = {ATT_TASK_LIST(ADDRESS)};
#undef ADDRESS
enum { TASKS = sizeof tasks / sizeof *tasks };

int att_task_count(void)
{
    return TASKS;
}

att_task_info att_task_at(int index)
{
    return tasks[index]->info;
}

att_status att_task_choose(att_context *context, const char *name, const att_task **task)
{
    *task = NULL;
    for (int i = 0; name && i < TASKS; i++)
        if (strcmp(tasks[i]->info.name, name) == 0) {
            *task = tasks[i];
            return ATT_OK;
        }
    att_text names = {.context = context};
    for (int i = 0; i < TASKS; i++)
        att_text_append(&names, "%s%s", i ? ", " : "", tasks[i]->info.name);
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

att_status att_task_check_classes(att_context *context, const att_task_setup *setup, const att_dataset *dataset)
{
    char name[256];
    int64_t count = att_dataset_count(dataset);
    if (setup->classes == 0)
        return att_fail(context, ATT_ERR_MISMATCH, "the model has no head and so no classes to compare with labels");
    for (int64_t i = 0; i < count; i++) {
        int32_t label = att_dataset_label(dataset, i);
        if (label < 0 || label >= setup->classes)
            return att_fail(context, ATT_ERR_MISMATCH, "%s is of class %d, but the model has %d class%s",
                            att_dataset_name(dataset, i, name, sizeof name), (int)label, setup->classes,
                            setup->classes == 1 ? "" : "es");
    }
    return ATT_OK;
}

att_target_rules att_task_targets(const att_task *task, const att_task_setup *setup, att_field fields[ATT_MAX_TARGETS])
{
    return (att_target_rules){
        .fields = fields, .count = task->fields(setup, fields), .fill = task->fill, .mix = task->mix, .user = setup};
}

att_status att_task_add_loss(const char *name, att_graph *graph, const att_task_setup *setup)
{
    const att_task *task;
    ATT_TRY(att_task_choose(graph->context, name, &task));
    if (!(setup->smoothing >= 0 && setup->smoothing < 1))
        return att_fail(graph->context, ATT_ERR_ARGUMENT, "smoothing must be at least 0 and less than 1, not %g",
                        setup->smoothing);
    att_graph_scope(graph, "loss");
    att_graph_output(graph, "loss", task->loss(graph, setup));
    return graph->status;
}

att_status att_task_write(att_context *context, const char *name, const att_batch *answer,
                          const att_answer_options *options, att_json_writer *writer)
{
    const att_task *task;
    ATT_TRY(att_task_choose(context, name, &task));
    return task->write(context, answer, options, writer);
}

att_status att_task_describe(att_context *context, const char *name, const att_batch *answer,
                             const att_answer_options *options, void (*line)(void *user, const char *text), void *user)
{
    const att_task *task;
    ATT_TRY(att_task_choose(context, name, &task));
    return task->describe(context, answer, options, line, user);
}
