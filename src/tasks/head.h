/* tasks/head.h - what a task builds its head on. */
#ifndef ATT_TASKS_HEAD_H
#define ATT_TASKS_HEAD_H

#include <attscope/nn.h>

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
att_value att_backbone_classify(att_graph *graph, const att_backbone *backbone);

#endif
