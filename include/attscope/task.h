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
ATT_API int att_task_count(void);
/* 0..count-1. */
ATT_API att_task_info att_task_at(int index);
/* ERR_NOT_FOUND, with the names there are. */
ATT_API att_status att_task_find(att_context *context, const char *name, att_task_info *info);
/* Index of the metric called `name`; -1: none. */
ATT_API int att_task_metric(const att_task_info *info, const char *name);

/* Sets every option of the task that is called so to its default; others stay. Names that no task has set nothing. */
ATT_API void att_task_defaults(const char *name, att_option_values *options);

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
 * answer lacks), ERR_MEMORY. */
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

#ifdef __cplusplus
}
#endif
#endif
