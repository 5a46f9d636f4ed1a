/* tasks/task.h - what a task is to those who write one.
 *
 * One file here that ends in one `const att_task`, plus its line in list.h. Nothing outside that file names a target,
 * an output or a metric of the task.
 */
#ifndef ATT_TASKS_TASK_H
#define ATT_TASKS_TASK_H

#include <attscope/task.h>

#include "core/error.h"
#include "core/options.h"
#include "core/text.h"
#include "tasks/head.h"

/* An att_task_setup that was checked. */
typedef struct att_task_settings {
    int classes;
    bool mixed;
    att_settings_room options; /* the task's own struct */
} att_task_settings;

/* The image that an answer is of. */
typedef struct att_task_image {
    const att_dataset *dataset;
    int64_t index;   /* in the data set */
    bool unlabelled; /* the data set's classes are not the network's: their names may be shown, their numbers not */
} att_task_image;

typedef struct att_task {
    att_task_info info;

    /* --- options: info.options, which ATT_OPTION_AT() places in a struct of this size --- */
    size_t options_size; /* 0: there are none */
    /* Gives every option its default. NULL: there are none. */
    void (*defaults)(att_option_values *options);

    /* --- head --- */
    /* Adds the head and its outputs to a family's network. Parameters of a head of its own lie in info.head_scope,
     * which no family uses. Errors: att_graph_fail(). */
    void (*head)(att_graph *graph, const att_backbone *backbone);

    /* --- targets --- */
    /* Describes the targets of a sample; returns how many there are. Names are literals. */
    int (*fields)(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS]);
    /* As in att_target_rules, for these fields; `user` is the att_task_settings. `mix` is NULL where targets cannot be
     * mixed. */
    att_status (*fill)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields);
    void (*mix)(const void *user, void *const *own, const void *const *other, const att_mixing *mixing);
    /* ERR_MISMATCH, naming the sample, where the data set has a target that the network cannot answer: see
     * att_task_check_classes(). */
    att_status (*check)(att_context *context, const att_task_settings *settings, const att_dataset *dataset);
    /* Name of the target that is the sample's class, where it is a whole number (I32): instruments compare answers with
     * it. NULL: samples have no class. */
    const char *class_field;

    /* --- loss --- */
    /* A sample's loss, from the graph's outputs and from an input for each target, which it adds. ATT_NONE after
     * att_graph_fail(). */
    att_value (*loss)(att_graph *graph, const att_task_settings *settings);

    /* --- metrics --- */
    /* Size of the state: what the metrics know of the samples so far. An empty state is all zeros. Memory that a state
     * points to comes from the context. */
    size_t state_size;
    /* Adds the samples of a batch. answers: the network's outputs for them, F32, by name. */
    att_status (*observe)(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers);
    /* Adds what another state has seen; the order of states does not matter but for rounding. */
    att_status (*merge)(att_context *context, void *state, const void *other);
    /* values[i]: info.metrics[i] of all samples so far; NaN without samples. */
    void (*report)(const void *state, double *values);
    /* Frees what the state points to, but not the state. NULL: it points to nothing. */
    void (*end)(att_context *context, void *state);

    /* --- predictions --- */
    /* As att_task_write() and att_task_describe(). */
    att_status (*write)(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer);
    att_status (*describe)(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user);
    /* Appends one line that says what an answer means and what the data set says of the image. It is how the task's
     * results are shown beside a picture, as on the page of attention maps. Of the options only `labels` count. `text`
     * is empty before, and stays so where there is nothing to say: the answer of a network without a head lacks the
     * task's outputs. The caller checks text->failed. What is longer than ATT_CAPTION_BYTES (tasks/caption.h) is cut.
     */
    att_status (*caption)(att_context *context, const att_batch *answer, const att_answer_options *options,
                          const att_task_image *image, att_text *text);
} att_task;

/* ERR_NOT_FOUND with the names that there are. */
att_status att_task_choose(att_context *context, const char *name, const att_task **task);
/* *options: those of `said` (NULL: none), and every option of the task that it lacks with its default. */
void att_task_complete(const att_task *task, const att_option_values *said, att_option_values *options);
/* The task whose own head (att_task_info.head_scope) has a parameter called so; NULL: none. */
const att_task *att_task_of_parameter(const char *name);
/* Options that the setup leaves open have their defaults. ERR_ARGUMENT where it has an option that the task lacks, or a
 * value that cannot be. */
att_status att_task_configure(att_context *context, const att_task *task, const att_task_setup *setup,
                              att_task_settings *settings);
/* As att_task_add_loss(). */
att_status att_task_build_loss(const att_task *task, att_graph *graph, const att_task_settings *settings);

/* The classes of a batch's samples by class_field; NULL where they have none. */
const int32_t *att_task_classes(const att_task *task, const att_batch *batch);
/* A `check` for targets that are the data set's classes: each must be one of the network's. */
att_status att_task_check_classes(att_context *context, const att_task_settings *settings, const att_dataset *dataset);

/* The rules for a loader. fields: room for the task's fields; it and settings outlive the loader. */
att_target_rules att_task_targets(const att_task *task, const att_task_settings *settings,
                                  att_field fields[ATT_MAX_TARGETS]);

#endif
