/* tasks/task.h - finds tasks and applies their descriptors. Each built-in task is one file that ends in its descriptor
 * (attscope/task.h), plus its line in list.h. Nothing outside that file names a target, an output or a metric of the
 * task. */
#ifndef ATT_TASKS_TASK_H
#define ATT_TASKS_TASK_H

#include <attscope/task.h>

#include "base/core/error.h"
#include "base/core/export.h"
#include "base/core/options.h"
#include "base/core/text.h"

/* Checks all members except the name, which must be valid. Errors: ERR_ARGUMENT if one is missing or invalid. */
att_status att_task_check(att_context *context, const att_task *task);

/* Returns a task; NULL if there is none of this name. */
ATT_FOR_LAB const att_task *att_task_named(const att_context *context, const char *name);
/* Finds a task. Errors: ERR_NOT_FOUND; the message lists the names. */
att_status att_task_choose(att_context *context, const char *name, const att_task **task);
/* Sets *options to `given` (NULL: none) and the defaults of the task's other options. */
void att_task_complete(const att_task *task, const att_option_values *given, att_option_values *options);
/* Returns the task whose head (att_task_info.head_scope) has the parameter `name`; NULL if there is none. */
const att_task *att_task_of_parameter(const att_context *context, const char *name);
/* Checks a setup and fills in defaults. Errors: ERR_ARGUMENT for an option that the task lacks or an invalid value. */
att_status att_task_configure(att_context *context, const att_task *task, const att_task_setup *setup,
                              att_task_settings *settings);
/* Calls the function `check_options` of every task of the context. given: options of any tasks. Errors: those of these
 * functions; ERR_ARGUMENT for an invalid value. */
ATT_FOR_LAB att_status att_tasks_check_options(att_context *context, const att_option_values *given, bool taught);
/* Sets the stages of a family that has blocks and no stages, from the blocks that the option "taps" lists, else from
 * those that `task` chooses: its `taps`, or if that is NULL the last ones. Adds nodes to the graph, which fails if the
 * choice is invalid, or if the option is given for a family with stages. */
void att_task_tap_blocks(const att_task *task, att_graph *graph, const att_option_values *options,
                         att_features *features);
/* As att_task_add_loss(). */
att_status att_task_build_loss(const att_task *task, att_graph *graph, const att_task_settings *settings);

/* Drops the outputs of a graph with a loss that only predictions need: those that `observed` does not name. Probes
 * stay. Does nothing if there is no such task. */
ATT_FOR_LAB void att_task_drop_outputs(const char *name, att_graph *graph);

/* Returns the classes of a batch's samples, by class_field; NULL if they have none. */
const int32_t *att_task_classes(const att_task *task, const att_batch *batch);
/* Returns the name of the output with a score for each class: `class_output` of the first task whose output the graph
 * has; if it has none, that of the first task. */
const char *att_task_class_output(const att_graph *graph);
/* Returns what the task `name` reads of samples besides their class (att_task.annotations); 0 if there is no such task.
 */
ATT_FOR_LAB unsigned att_task_annotations(const att_context *context, const char *name);
/* Refuses a data set without the annotations that the task reads, then calls the task's `check`, if it has one. */
att_status att_task_check_data(att_context *context, const att_task *task, const att_task_settings *settings,
                               const att_dataset *dataset);

/* Sets *rules to the rules for a loader. fields: space for the task's fields; it and `settings` must outlive the
 * loader. Errors: ERR_ARGUMENT if the task's fields() returns too many fields, one without a name, or none of the name
 * class_field. */
att_status att_task_targets(att_context *context, const att_task *task, const att_task_settings *settings,
                            att_field fields[ATT_MAX_TARGETS], att_target_rules *rules);

/* Fills *info for the task `name`. Errors: ERR_NOT_FOUND; the message lists the names. */
att_status att_task_find(att_context *context, const char *name, att_task_info *info);
/* Returns the index of the metric `name`; -1 if there is none. */
ATT_FOR_LAB int att_task_metric(const att_task_info *info, const char *name);

/* Sets every option of the task `name` to its default; other options stay. Does nothing if there is no such task. */
ATT_FOR_LAB void att_task_defaults(const att_context *context, const char *name, att_option_values *options);

/* As att_network_write() and att_network_describe(), for an answer of the task `task`. Errors: also ERR_NOT_FOUND (no
 * such task). */
att_status att_task_write(att_context *context, const char *task, const att_batch *answer,
                          const att_answer_options *options, att_json_writer *writer);
att_status att_task_describe(att_context *context, const char *task, const att_batch *answer,
                             const att_answer_options *options, void (*line)(void *user, const char *text), void *user);

#endif
