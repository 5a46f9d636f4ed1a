/* experiments/learn.h - samples in memory, training on them, and their predictions. */
#ifndef ATT_EXPERIMENTS_LEARN_H
#define ATT_EXPERIMENTS_LEARN_H

#include <attscope/lab/experiments.h>
#include <attscope/plan.h>

#include "base/core/memory.h"

/* Rows of the inputs "x", "keys" and "expected" of a graph, one for each sample. */
typedef struct att_samples {
    int count, tokens;
    size_t x_bytes, target_bytes; /* of one sample */
    char *x, *target;
    float *keys; /* [count, tokens]; NULL: none */
} att_samples;

/* Allocates the samples in the arena, zeroed. Fails with ERR_MEMORY. padded: with keys. */
att_status att_samples_create(att_arena *arena, int count, int tokens, size_t x_bytes, size_t target_bytes, bool padded,
                              att_samples *samples);

typedef enum att_rate_schedule {
    ATT_RATE_CONSTANT,
    ATT_RATE_LINEAR, /* to 0 after the last update */
    ATT_RATE_STEPS   /* times 0.91 at the begin of epochs 15, 30, 40, 50 and 60, counted from 0 */
} att_rate_schedule;

enum { ATT_LEARNING_STAGE = 64 };
typedef struct att_learning {
    const char *optimizer;   /* "adam", "adamw"; beta 0.9 and 0.999, eps 1e-8 */
    double lr, weight_decay; /* decay of all parameters, biases included, as in PyTorch */
    double clip_norm;        /* 0: none */
    att_rate_schedule schedule;
    int batch_size, epochs;
    bool shuffle;
    bool mean; /* the targets are classes; the loss is the mean over the tokens of the batch that have one. false: the
                  loss is the sum over the samples */
    char stage[ATT_LEARNING_STAGE]; /* for progress */
    uint64_t seed;
    const att_experiment_options *options; /* progress */
} att_learning;

/* What a training run did. loss: mean over the last epoch, per token or per sample. */
typedef struct att_learned {
    double loss;
    int64_t updates;
} att_learned;

/* Trains `weights` on the graph's output "loss", which is per sample and, for classes, summed over the tokens. Errors:
 * ERR_NONFINITE (with the update); ERR_STOPPED; those of plans, sessions and updates. */
att_status att_learn(att_context *context, const att_graph *graph, att_weights *weights, const att_samples *samples,
                     const att_learning *learning, att_learned *learned);

/* Inference of one output, with at most ATT_CHUNK samples per run. Zero-initialise. */
enum { ATT_CHUNK = 64 };
typedef struct att_predictor {
    att_plan *plan;
    att_session *session;
} att_predictor;
/* The weights must outlive the predictor; the graph may be freed. After a failure, too, the caller closes it. */
att_status att_predictor_open(const att_graph *graph, att_weights *weights, const char *output,
                              att_predictor *predictor);
void att_predictor_close(att_predictor *predictor);

/* Counts tokens: adds to *right those whose largest logit is that of their class, and to *all those that have a class.
 * logits [count, tokens, classes] belong to samples first, first + 1, .. */
void att_samples_score(const att_samples *samples, int first, int count, const float *logits, int64_t classes,
                       int64_t *right, int64_t *all);

#endif
