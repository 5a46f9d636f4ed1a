/* experiments/experiment.h - the descriptor of an experiment. */
#ifndef ATT_EXPERIMENTS_EXPERIMENT_H
#define ATT_EXPERIMENTS_EXPERIMENT_H

#include "core/error.h"
#include "core/random.h"
#include "experiments/learn.h"
#include "experiments/san.h"

/* A running experiment, with its settings. */
typedef struct att_experiment_job {
    att_context *context;
    const struct att_experiment *experiment;
    const att_experiment_options *options;
    att_arena *arena; /* freed after the run */
    int epochs;
    double lr;
} att_experiment_job;

/* An experiment is one file that ends in one of these, and a line in list.h. */
typedef struct att_experiment {
    att_experiment_info info;
    att_san_spec spec; /* without depth, heads and width, which are those of info */
    double weight_decay, clip_norm;
    att_rate_schedule schedule;
    /* Tasks with paths: makes the samples in the job's arena and completes the network. An experiment that evaluates
     * its training samples leaves evaluation->count at 0. */
    att_status (*make)(const att_experiment_job *job, att_san_spec *spec, att_samples *training,
                       att_samples *evaluation);
    /* Other experiments: the whole run. NULL: make() is given. */
    att_status (*run)(const att_experiment_job *job, att_experiment_result *result);
} att_experiment;

/* The experiment's network, with depth, heads and width of its info, and with the options. */
att_san_spec att_experiment_spec(const att_experiment_job *job);

/* How the job trains: the experiment's values, and the options. */
att_learning att_experiment_learning(const att_experiment_job *job, const char *stage);

/* A generator for one sample of a set such as "training". */
att_random att_experiment_random(const att_experiment_job *job, const char *set, int sample);

#endif
