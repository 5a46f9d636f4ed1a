/* tasks/task.h - tasks by name, and what the library asks of one. Each built-in task is one file here that ends in one
 * `const att_task` (attscope/task.h), plus its line in list.h. Nothing outside that file names a target, an output or a
 * metric of the task. */
#ifndef ATT_TASKS_TASK_H
#define ATT_TASKS_TASK_H

#include <attscope/task.h>

#include "core/error.h"
#include "core/options.h"
#include "core/text.h"

/* ERR_ARGUMENT, in one sentence, where a member is missing or cannot be. The name is valid. */
att_status att_task_check(att_context *context, const att_task *task);

/* ERR_NOT_FOUND with the names that there are. */
att_status att_task_choose(att_context *context, const char *name, const att_task **task);
/* *options: those of `said` (NULL: none), and every option of the task that it lacks with its default. */
void att_task_complete(const att_task *task, const att_option_values *said, att_option_values *options);
/* The task whose own head (att_task_info.head_scope) has a parameter called so; NULL: none. */
const att_task *att_task_of_parameter(const att_context *context, const char *name);
/* Options that the setup leaves open have their defaults. ERR_ARGUMENT where it has an option that the task lacks, or a
 * value that cannot be. */
att_status att_task_configure(att_context *context, const att_task *task, const att_task_setup *setup,
                              att_task_settings *settings);
/* As att_task_add_loss(). */
att_status att_task_build_loss(const att_task *task, att_graph *graph, const att_task_settings *settings);

/* The classes of a batch's samples by class_field; NULL where they have none. */
const int32_t *att_task_classes(const att_task *task, const att_batch *batch);
/* What its `check` says of the data set. */
att_status att_task_check_data(att_context *context, const att_task *task, const att_task_settings *settings,
                               const att_dataset *dataset);

/* The rules for a loader. fields: room for the task's fields; it and settings outlive the loader. */
att_target_rules att_task_targets(const att_task *task, const att_task_settings *settings,
                                  att_field fields[ATT_MAX_TARGETS]);

#endif
