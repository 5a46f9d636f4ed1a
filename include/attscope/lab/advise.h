/* attscope/lab/advise.h - where in a checkpoint's network would a module help?
 *
 *     const uint64_t seeds[] = {1, 2, 3, 4, 5};
 *     att_advise_options options = att_advise_options_defaults();
 *     options.checkpoint = "resnet20.th", options.data = "cifar10", options.module = "se";
 *     options.seeds = seeds, options.seed_count = 5, options.output = "output/advise";
 *     att_advice *advice = NULL;
 *     if (att_advice_open(context, &options, &advice) == ATT_OK &&
 *         att_sweep_plan_run(att_advice_plan(advice), NULL) == ATT_OK && att_advice_judge(advice) == ATT_OK)
 *         ... att_advice_at(advice, 0).gain.mean ...
 *     att_advice_close(&advice);
 *
 * A candidate is the network with the module in one block more. Candidates are ranked by a figure of their block:
 *
 *   a module with gates    zeta of the residual step that the module scales (instrument "nsi", reading attention): a
 *                          gate is a step size, and stiff steps need smaller ones (Huang et al., ICCV 2023). Steps that
 *                          begin a stage have no candidate, because zeta compares values of different shapes there
 *   other modules          entropy of the block's attention (instrument "entropy"): context broadcasting gives dense
 *                          attention where a network needs it (Hyeon-Woo et al., ICCV 2023)
 *
 * The best candidates are fine-tuned from the checkpoint, and so is the network without the additional module, with the
 * same seeds: the same order of images, the same augmentation. A module must start as the identity, so that all of them
 * start from the same answers: the option start=identity is set where a module has it, and a module that changes the
 * network's answers is refused.
 *
 * gain   score of the candidate minus score of the network without it, paired over seeds; the score is the task's main
 *        metric after the fine-tuning. Interval: Student's t on the n differences, widened so that all m intervals hold
 *        together with a probability of at least 95 % (Bonferroni, 1 - 0.05 / m each). It describes the noise of
 *        fine-tunings on these images, not that of other images
 */
#ifndef ATTSCOPE_LAB_ADVISE_H
#define ATTSCOPE_LAB_ADVISE_H

#include <attscope/lab/sweep_plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All arrays and texts must outlive the advice. */
typedef struct att_advise_options {
    const char *checkpoint; /* what att_network_open() takes, except the name of a network; required */
    const char *data;       /* a data set with a split to train on and one to evaluate on; required */
    const char *model;      /* name of the network; NULL: the file gives it */
    const char *module;     /* MODULE[:OPTION=VALUE,...][@PLACE] as in the option "modules", without blocks; required */
    int candidates;         /* most candidates to fine-tune, 1 to ATT_ADVISE_MOST */
    const char *recipe;     /* YAML file with the settings of the fine-tuning; NULL: 400 updates on images without
                               augmentation, cosine schedule; networks with batch norm: SGD with momentum 0.9, lr 0.01;
                               others: AdamW, lr 1e-4 */
    const uint64_t *seeds;  /* at least 2 */
    int seed_count;
    const char *const *set; /* as in att_sweep_options. NULL if the count is 0 */
    int set_count;
    const char *output;       /* folder for sweeps; required */
    const char *experiment;   /* name of the sweep's folder in `output`; NULL: the names of checkpoint and module */
    int batch_size;           /* of the measurement that ranks, as in att_evaluate_options */
    att_progress_fn progress; /* of that measurement; NULL: none */
    void *progress_user;
} att_advise_options;
enum { ATT_ADVISE_MOST = 31, ATT_ADVISE_CANDIDATES = 4 };
/* ATT_ADVISE_CANDIDATES candidates, the batch size of att_evaluate_options_defaults(); everything else is 0 and NULL.
 */
ATT_API att_advise_options att_advise_options_defaults(void);

typedef struct att_advice att_advice;

/* Opens the checkpoint, measures the figure of all blocks on the split "validation" of the data, ranks them, and opens
 * the sweep of the fine-tunings. The measurement is recorded in OUTPUT/EXPERIMENT/ranking, the default recipe in
 * OUTPUT/EXPERIMENT/recipe.yaml. The same options again continue a stopped sweep. On success the caller owns *advice
 * and frees it with att_advice_close() before the context; on failure *advice is unchanged. Errors: ERR_ARGUMENT (a
 * required option is missing or out of range; a module with blocks; a module that does not start as the identity);
 * ERR_UNSUPPORTED (no block has the figure: the network has no attention, or no residual steps at the place; the
 * checkpoint has parameters of modules already); those of
 * att_module_parse(), att_network_open(), att_measure_checkpoint() and att_sweep_plan_open(). */
ATT_API ATT_MUST_CHECK att_status att_advice_open(att_context *context, const att_advise_options *options,
                                                  att_advice **advice);
ATT_API void att_advice_close(att_advice **advice);

/* The sweep of the fine-tunings, for att_sweep_plan_run(). It belongs to the advice. */
ATT_API att_sweep_plan *att_advice_plan(att_advice *advice);

/* Computes gains and correlations from the runs that are finished. Errors: ERR_ARGUMENT if att_sweep_plan_run() was not
 * called, ERR_MEMORY. */
ATT_API att_status att_advice_judge(att_advice *advice);

typedef struct att_advised {
    const char *modules;           /* option "modules" of the candidate: "se:start=identity@after_branch:3" */
    const char *node;              /* where the figure was measured: "layer1.1.add" */
    int block;                     /* from 0, over the whole network */
    double predicted;              /* the figure by which blocks are ranked */
    bool tested;                   /* it is one of the best, which are fine-tuned; the rest is 0 otherwise */
    double score, score_deviation; /* of the candidate, over its seeds; NaN without a finished run */
    att_paired gain; /* in the metric's unit; above 0: better than without the module. Its interval is simultaneous. The
                        count is 0 before att_advice_judge(), and if runs are missing */
} att_advised;

/* The blocks in the order of their figures, the largest first; all zero for another index. The texts live as long as
 * the advice. */
ATT_API int att_advice_count(const att_advice *advice);
ATT_API att_advised att_advice_at(const att_advice *advice, int index);
/* "gain" if the interval lies above 0, "loss" if it lies below 0, "no evidence" otherwise; "not tested". */
ATT_API const char *att_advised_verdict(const att_advised *advised);

/* What the candidates share. */
typedef struct att_advice_facts {
    const char *instrument, *statistic, *unit; /* of the figure that ranks: "nsi", "attention", "1" */
    const char *base;                          /* option "modules" of the network without a candidate */
    const att_metric *metric;                  /* of the scores; NULL before att_advice_judge() */
    double score, score_deviation;             /* of the fine-tuning without a candidate */
    att_correlation correlation;               /* of figures and mean gains over the tested candidates */
} att_advice_facts;
ATT_API att_advice_facts att_advice_facts_of(const att_advice *advice);

/* Writes members into the JSON object that is open: checkpoint, data, base, instrument, statistic, metric, score,
 * candidates, correlation, methods, folder. */
ATT_API void att_advice_write_json(const att_advice *advice, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
