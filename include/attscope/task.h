/* attscope/task.h - what a network is trained for: targets of samples, loss, metrics.
 *
 * A task knows which head a network has and what its outputs are, what the targets of a sample are and how they follow
 * the changes of its image, which loss compares both, and which metrics an evaluation reports. Loader, training,
 * evaluation and records take all of that from here. Tasks are found by name; "classification" is the first. A
 * network's task is its option "task".
 */
#ifndef ATTSCOPE_TASK_H
#define ATTSCOPE_TASK_H

#include <attscope/data.h>
#include <attscope/graph.h>
#include <attscope/nn.h>
#include <attscope/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_json_writer att_json_writer; /* attscope/lab/json.h makes and fills one */

/* One figure of an evaluation. Events call it "eval_" and its name. A metric called "loss" is the mean of the task's
 * loss over the evaluated images; the training loss has its unit. */
typedef struct att_metric {
    const char *name;  /* "top1" */
    const char *label; /* for people: "top-1" */
    const char *unit;  /* "%", "nats"; "": a number without a unit */
    bool larger_is_better;
} att_metric;

enum { ATT_MAX_METRICS = 16 };

/* What a task says about itself; texts are one line. */
typedef struct att_task_info {
    const char *name, *help;
    const char *head_scope; /* of the head's parameters, "detector"; NULL: the head is the network's own classifier */
    const att_metric *metrics; /* in the order in which figures are written */
    int metric_count;          /* 1..ATT_MAX_METRICS */
    int best;                  /* the metric that decides which epoch is best, where nobody names another */
    const att_option *options; /* of targets and loss */
    int option_count;
} att_task_info;
/* The tasks that a context has: the built-in ones, then those that were registered, in that order. context NULL: the
 * built-in ones. index: 0..count-1. */
ATT_API int att_task_count(const att_context *context);
ATT_API att_task_info att_task_at(const att_context *context, int index);
/* ERR_NOT_FOUND, with the names there are. */
ATT_API att_status att_task_find(att_context *context, const char *name, att_task_info *info);
/* Index of the metric called `name`; -1: none. */
ATT_API int att_task_metric(const att_task_info *info, const char *name);

/* Sets every option of the task that is called so to its default; others stay. Names that no task has set nothing. */
ATT_API void att_task_defaults(const att_context *context, const char *name, att_option_values *options);

/* What a task is told of the network and of its training. */
typedef struct att_task_setup {
    int classes;                      /* of the network's head */
    bool mixed;                       /* training: images are mixed with each other (att_mix_options) */
    const att_option_values *options; /* of the task; those that are missing, or all where NULL, have their defaults */
} att_task_setup;

/* Adds to a graph what training needs besides the network: an input for each target, and the output "loss", a scalar of
 * each sample. Their nodes have the scope "loss". Errors: ERR_NOT_FOUND (no such task, or the graph lacks an output
 * that its loss reads), ERR_ARGUMENT (an option out of range, or that the task lacks).
 *
 * "classification" reads the output "logits" [classes]. Its target is "target": the class, I32, with
 * t = (1 - smoothing) onehot + smoothing / classes (option "smoothing", in [0, 1); default 0.1, as timm's); or, where
 * images are mixed, t itself, [classes] of the graph's type. The loss is -sum t ln softmax(logits). */
ATT_API att_status att_task_add_loss(const char *task, att_graph *graph, const att_task_setup *setup);

/* How a network's answer to one image is shown. */
typedef struct att_answer_options {
    const char *const *labels; /* names of the classes, by number; those from label_count on have none */
    int label_count;
    int most;     /* classes to name, the likeliest: at least 1 */
    bool outputs; /* the network's outputs too */
} att_answer_options;
/* The member of an answer in JSON that names its image, which whoever begins the object writes. */
#define ATT_ANSWER_IMAGE "image"
/* Writes what an answer (attscope/network.h) means as members of the JSON object that is open. Of classification:
 * "top", an array of {"class", "label" where there is one, "probability"}, the likeliest first; with `outputs` also
 * "logits", an array of all of them. Errors: ERR_NOT_FOUND (task), ERR_MISMATCH (the task reads an output that the
 * answer lacks), ERR_UNSUPPORTED (the task does not say what an answer means), ERR_MEMORY. */
ATT_API att_status att_task_write(att_context *context, const char *task, const att_batch *answer,
                                  const att_answer_options *options, att_json_writer *writer);
/* The same for people, line by line: calls line(user, text) for each; the text has no newline. */
ATT_API att_status att_task_describe(att_context *context, const char *task, const att_batch *answer,
                                     const att_answer_options *options, void (*line)(void *user, const char *text),
                                     void *user);

/* The `k` largest logits, largest first (of equal ones the lower class first), with their softmax over all classes.
 * Returns how many were written: min(k, classes). */
typedef struct att_ranked {
    int class_number;
    float logit;
    double probability;
} att_ranked;
ATT_API int att_rank_classes(const float *logits, int classes, att_ranked *top, int k);

/* --- a task of one's own -----------------------------------------------------------------------------------------
 *
 * A task is one descriptor. A program registers its own and says it as a network's option:
 *
 *     static const att_task mine = {.info = {.name = "mine", ...}, .head = head, .fields = fields, ...};
 *     att_task_register(context, &mine);
 *     att_options_set_text(&options, "task", "mine");
 *
 * From then on it is as good as a built-in one in every call for this context, and for no other context. Checkpoints
 * record it by its name; a program that opens such a checkpoint registers the task before. examples/task.c is a whole
 * program; CONTRIBUTING.md has a longer example, with options. */

/* What a family's network computes for a head: each ATT_NONE where the family has none. */
enum { ATT_FEATURE_STAGES = 4 };
typedef struct att_features {
    att_value tokens; /* [N, C] of the last block, behind the last norm where that comes before the pooling */
    att_value pooled; /* [C]: what a classifier reads */
    int stage_count;
    att_value stages[ATT_FEATURE_STAGES]; /* [h, w, C], what each stage gives */
} att_features;

/* The linear layer that a classifier is in the family's files. */
typedef struct att_classifier_form {
    const char *scope; /* of its tensors, whose first axis is the classes: "head" */
    att_value (*build)(const att_scope *scope, att_value features, int64_t classes);
} att_classifier_form;

/* A network without its head. */
typedef struct att_backbone {
    att_features features;
    att_classifier_form classifier;
    int classes;      /* the option "num_classes", at least 1 */
    double drop_rate; /* of dropout in the head */
} att_backbone;
/* Dropout and the family's classifier: [classes]. */
ATT_API att_value att_backbone_classify(att_graph *graph, const att_backbone *backbone);

/* An att_task_setup that was checked. */
typedef struct att_task_settings {
    int classes;
    bool mixed;
    att_settings_room options; /* the task's own struct: *(const mine_options *)(const void *)&settings->options */
} att_task_settings;

/* The image that an answer is of. */
typedef struct att_task_image {
    const att_dataset *dataset;
    int64_t index;   /* in the data set */
    bool unlabelled; /* the data set's classes are not the network's: their names may be shown, their numbers not */
} att_task_image;

/* A text that grows. */
typedef struct att_text att_text;
/* As printf(). Where memory is out, whoever gave the text finds out. */
ATT_API void att_text_append(att_text *text, const char *format, ...) ATT_PRINTF(2, 3);

/* Functions that return att_status report their failure with att_fail(). Members that may be NULL say so. */
typedef struct att_task {
    /* name, and head_scope where there is one: 1 to 23 letters, digits and underscores, the first a letter. No metric
     * comes twice. Keys of options are those of no family and of no other task. */
    att_task_info info;

    /* --- options: info.options, which ATT_OPTION_AT() places in a struct of this size --- */
    size_t options_size; /* at most sizeof(att_settings_room); 0: there are none */
    /* Gives every option its default. NULL: there are none. */
    void (*defaults)(att_option_values *options);

    /* --- head --- */
    /* Adds the head and its outputs to a family's network. Parameters of a head of its own lie in info.head_scope,
     * which no family and no other task uses. Errors: att_graph_fail(). */
    void (*head)(att_graph *graph, const att_backbone *backbone);

    /* --- targets --- */
    /* Describes the targets of a sample; returns how many there are. Names live as long as the descriptor. */
    int (*fields)(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS]);
    /* As in att_target_rules, for these fields; `user` is the att_task_settings. fill() runs on the loader's threads.
     * `mix` is NULL where targets cannot be mixed. */
    att_status (*fill)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields);
    void (*mix)(const void *user, void *const *own, const void *const *other, const att_mixing *mixing);
    /* ERR_MISMATCH, naming the sample, where the data set has a target that the network cannot answer: see
     * att_task_check_classes(). NULL: the network can answer all of them. */
    att_status (*check)(att_context *context, const att_task_settings *settings, const att_dataset *dataset);
    /* Name of the target that is the sample's class, where it is a whole number (I32): instruments compare answers with
     * it. NULL: samples have no class. */
    const char *class_field;

    /* --- loss --- */
    /* A sample's loss, from the graph's outputs (att_graph_find_output()) and from an input for each target that it
     * needs, which it adds by the target's name: a scalar. ATT_NONE after att_graph_fail(). */
    att_value (*loss)(att_graph *graph, const att_task_settings *settings);

    /* --- metrics --- */
    /* Size of the state, at least 1: what the metrics know of the samples so far. An empty state is all zeros. What a
     * state points to is the task's own, and end() frees it. */
    size_t state_size;
    /* Adds the samples of a batch. answers: the network's outputs for them, F32, by name (att_batch_field()). */
    att_status (*observe)(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers);
    /* Adds what another state has seen; the order of states does not matter but for rounding. */
    att_status (*merge)(att_context *context, void *state, const void *other);
    /* values[i]: info.metrics[i] of all samples so far; NaN without samples. */
    void (*report)(const void *state, double *values);
    /* Frees what the state points to, but not the state. NULL: it points to nothing. */
    void (*end)(att_context *context, void *state);

    /* --- predictions --- */
    /* As att_task_write() and att_task_describe(), which refuse a task where these are NULL. */
    att_status (*write)(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer);
    att_status (*describe)(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user);
    /* Appends one line that says what an answer means and what the data set says of the image. It is how the task's
     * results are shown beside a picture, as on the page of attention maps. Of the options only `labels` count. `text`
     * is empty before, and stays so where there is nothing to say: the answer of a network without a head lacks the
     * task's outputs. A longer line than 4096 bytes is cut. NULL: it never has anything to say. */
    att_status (*caption)(att_context *context, const att_batch *answer, const att_answer_options *options,
                          const att_task_image *image, att_text *text);
} att_task;

/* Registers a task with the context. The descriptor is not copied: it, and all that it points to, must outlive the
 * context. Not while another call for this context runs. Errors, the context is then as before: ERR_ARGUMENT, in one
 * sentence, for a name that there is already (a second registration, too) or that cannot be one, for a member that is
 * missing or cannot be, and for an option without a default; ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_task_register(att_context *context, const att_task *task);

/* A `check` for targets that are the data set's classes: each must be one of the network's. */
ATT_API att_status att_task_check_classes(att_context *context, const att_task_settings *settings,
                                          const att_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
