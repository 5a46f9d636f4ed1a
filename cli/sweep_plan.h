/* sweep_plan.h - which runs a sweep is made of: every combination of values, with every seed. */
#ifndef CLI_SWEEP_PLAN_H
#define CLI_SWEEP_PLAN_H

#include "paths.h"
#include "train_flags.h"

enum { SWEEP_AXES = 8, SWEEP_VALUES = 32, SWEEP_NAME = 200, SWEEP_FLAG = 64, SWEEP_LIST = 512 };

/* --vary FLAG=VALUE,VALUE */
typedef struct sweep_axis {
    char flag[SWEEP_FLAG];
    char *text; /* of the values */
    const char *values[SWEEP_VALUES];
    char *words[SWEEP_VALUES]; /* "--FLAG=VALUE" */
    int count;
} sweep_axis;

typedef struct sweep_run {
    char setting[SWEEP_NAME];   /* "lr=0.1", "modules=se:ratio=8" */
    char name[SWEEP_NAME + 32]; /* the folder's: "lr=0.1-seed3", "modules=se_ratio=8-seed3" */
    char folder[CLI_PATH];
    uint64_t seed;
    int choice[SWEEP_AXES];   /* of each axis */
    const char *status;       /* "waiting", "trained", "measured", "failed" or "stopped" */
    char measure[SWEEP_LIST]; /* the instruments for it */
    att_run_state found;      /* by its records */
    char failure[256];        /* what they say of a failure; "": nothing */
} sweep_run;

typedef struct sweep_asked {
    const char *recipe, *data, *seeds, *output, *experiment;
    cli_texts vary, set;
} sweep_asked;

typedef struct sweep_plan {
    const sweep_asked *asked;
    char folder[CLI_PATH]; /* OUTPUT/EXPERIMENT */
    int lock;              /* on it while the sweep works; 0: none */
    att_yaml *recipe;
    sweep_axis axes[SWEEP_AXES];
    int axis_count;
    char *set_words[CLI_MOST_TEXTS];
    int set_count;
    uint64_t seeds[ATT_SWEEP_MOST_RUNS];
    int seed_count;
    sweep_run *runs;
    int run_count;
    train_settings settings, defaults; /* of the run that was settled last */
    cli_ignored ignored;
} sweep_plan;

/* Reads the recipe and lays out the runs. Every value is tried as the option of attscope train that it is, and what is
 * wrong with it said, before anything runs. A setting that is another's again is taken once, and said. *plan is zero
 * before and the caller's whatever comes back, freed by sweep_plan_free(). CLI_OK or a code. */
int sweep_plan_make(cli_app *cli, const sweep_asked *asked, sweep_plan *plan);
void sweep_plan_free(sweep_plan *plan);

/* What the sweep's command line says of a name that is no option of its own but the training's (options.h). */
bool sweep_plan_explain(const char *name, char *text, size_t size);

/* Makes the sweep's folder and keeps other sweeps out of it until this one ends, however it ends. CLI_OK or a code. */
int sweep_plan_lock(sweep_plan *plan);

/* Makes plan->settings those of the run. CLI_OK or a code. */
int sweep_plan_settle(sweep_plan *plan, const sweep_run *run);

/* Makes the run's folder with recipe.yaml, every option that it is trained with. One that was begun with others is
 * refused, what makes no difference to the weights left aside; one whose recipe.yaml is damaged gets the status
 * "failed", and why is said. CLI_OK or a code. */
int sweep_plan_write(cli_app *cli, sweep_plan *plan, sweep_run *run);

/* After a message about a damaged file: which folder to remove so that the run is made anew. */
void sweep_advise_removal(cli_app *cli, const sweep_run *run);

#endif
