/* tasks/task.h - what a task is to those who write one.
 *
 * One file here that ends in one `const att_task`, plus its line in list.h. Nothing outside that file names a target,
 * an output or a metric of the task.
 */
#ifndef ATT_TASKS_TASK_H
#define ATT_TASKS_TASK_H

#include <attscope/task.h>

#include "core/error.h"

typedef struct att_task {
    att_task_info info;

    /* --- targets --- */
    /* Describes the targets of a sample; returns how many there are. Names are literals. */
    int (*fields)(const att_task_setup *setup, att_field fields[ATT_MAX_TARGETS]);
    /* As in att_target_rules, for these fields; `user` is the att_task_setup. mix: NULL where targets cannot be mixed.
     */
    att_status (*fill)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields);
    void (*mix)(const void *user, void *const *own, const void *const *other, const att_mixing *mixing);
    /* ERR_MISMATCH, naming the sample, where the data set has a target that the network cannot answer. */
    att_status (*check)(att_context *context, const att_task_setup *setup, const att_dataset *dataset);
    /* The class of each sample of a batch, for instruments that compare answers with it; NULL where samples have none.
     */
    const int32_t *(*classes)(const att_batch *batch);

    /* --- loss --- */
    /* A sample's loss, from the graph's outputs and from an input for each target, which it adds. ATT_NONE after
     * att_graph_fail(). */
    att_value (*loss)(att_graph *graph, const att_task_setup *setup);

    /* --- metrics --- */
    /* An empty state on the context's memory, freed by att_free(). */
    size_t state_size;
    /* Adds the samples of a batch. answers: the network's outputs for them, F32, by name. */
    void (*observe)(void *state, const att_task_setup *setup, const att_batch *batch, const att_batch *answers);
    /* Adds what another state has seen; the order of states does not matter but for rounding. */
    void (*merge)(void *state, const void *other);
    /* values[i]: info.metrics[i] of all samples so far; NaN without samples. */
    void (*report)(const void *state, double *values);

    /* --- predictions --- */
    /* As att_task_write() and att_task_describe(). */
    att_status (*write)(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer);
    att_status (*describe)(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user);
} att_task;

/* NULL where there is none of this name. */
const att_task *att_task_named(const char *name);
/* ERR_NOT_FOUND with the names that there are. */
att_status att_task_choose(att_context *context, const char *name, const att_task **task);

/* The rules for a loader. fields: room for the task's fields; it and setup outlive the loader. */
att_target_rules att_task_targets(const att_task *task, const att_task_setup *setup, att_field fields[ATT_MAX_TARGETS]);

#endif
