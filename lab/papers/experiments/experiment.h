/* experiments/experiment.h - the descriptor of an experiment. */
#ifndef ATT_EXPERIMENTS_EXPERIMENT_H
#define ATT_EXPERIMENTS_EXPERIMENT_H

#include "base/core/error.h"
#include "base/core/random.h"
#include "lab/papers/experiments/learn.h"
#include "lab/papers/experiments/san.h"

/* A running experiment, with its settings. */
typedef struct att_experiment_job {
    att_context *context;
    const struct att_experiment *experiment;
    const att_experiment_options *options;
    att_arena *arena; /* freed after the network's run */
    int epochs;
    double lr;
    int network; /* number of the network, from 0 */
} att_experiment_job;

/* An experiment is one file that ends in one of these, and a line in list.h. */
typedef struct att_experiment {
    att_experiment_info info;
    att_san_spec spec; /* without depth, heads and width, which are those of info */
    double weight_decay, clip_norm;
    att_rate_schedule schedule;
    /* Tasks with paths either have samples that are drawn independently, */
    int training, evaluation; /* numbers of samples */
    size_t x_bytes, target_bytes;
    void (*draw)(att_random *random, void *x, void *target); /* one sample; NULL: make() is given */
    /* or make their samples in the job's arena and complete the network. These are also the evaluated samples. */
    att_status (*make)(const att_experiment_job *job, att_san_spec *spec, att_samples *samples);
    /* Other experiments: the whole run of one network. NULL: a task with paths. */
    att_status (*run)(const att_experiment_job *job, att_experiment_result *result);
} att_experiment;

/* A quirk of several experiments. */
#define ATT_QUIRK_UNSHUFFLED                                    \
    {                                                           \
        "unshuffled", "trains in the same order in every epoch" \
    }

/* Whether the quirk of the experiment is on. */
bool att_experiment_has(const att_experiment_job *job, const char *quirk);

/* The experiment's network, with depth, heads and width of its info, and with the options. */
att_san_spec att_experiment_spec(const att_experiment_job *job);

/* Makes the samples of a task with paths and completes the network. evaluation->count is 0 if the training samples are
 * evaluated. */
att_status att_experiment_make(const att_experiment_job *job, att_san_spec *spec, att_samples *training,
                               att_samples *evaluation);

/* How the job trains: the experiment's values, and the options. */
att_learning att_experiment_learning(const att_experiment_job *job, const char *stage);

/* Writes the stage of a progress report: "train", or "network 2/5, train". */
void att_experiment_stage(const att_experiment_job *job, const char *what, char stage[ATT_LEARNING_STAGE]);

/* The seed of the job's network. */
uint64_t att_experiment_seed(const att_experiment_job *job);
/* A generator for one sample of a set such as "training". */
att_random att_experiment_random(const att_experiment_job *job, const char *set, int sample);

/* The whole run of one network of a task with paths. */
att_status att_experiment_run_paths(const att_experiment_job *job, att_experiment_result *result);

/* A score of one value. */
att_experiment_score att_experiment_value(double value);

#endif
