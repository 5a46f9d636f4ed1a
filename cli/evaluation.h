/* evaluation.h - for commands that run a checkpoint on a data set. */
#ifndef CLI_EVALUATION_H
#define CLI_EVALUATION_H

#include "network.h"

typedef struct cli_evaluation_data {
    const char *data_dir, *split, *class_map;
    bool coarse_labels;
    int reduce_zero_label, ignore_label;
    int64_t cache_bytes;
    const char *checkpoint;
    bool use_ema;
    int batch_size, workers;
    bool skip_corrupt;
} cli_evaluation_data;
extern const att_flag_group cli_group_evaluation_data;
/* The same for a command that takes both as operands only: --checkpoint and --data-dir are not listed, and the command
 * refuses them. */
extern const att_flag_group cli_group_operand_data;

/* Changes of the images, and which answers are right: flags of an att_evaluate_options. */
extern const att_flag_group cli_group_robustness;

/* Options in groups. */
typedef struct cli_evaluation {
    cli_evaluation_data data;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_engine engine;
    att_evaluate_options evaluate; /* of flags: robustness only */
    cli_passes passes;             /* of validate only */
    bool test_images;              /* these two are no flags; see cli_load_options */
    att_dtype dtype;
    bool unlabelled; /* no flag: images without classes are accepted */
    int init_seed;   /* of measure only; see cli_load_options */
} cli_evaluation;

/* Takes CHECKPOINT and DATA from the operands, unless flags gave them. *used: how many operands these were. Returns
 * CLI_OK, or CLI_USAGE if one of both is missing. */
int cli_evaluation_operands(const char *command, cli_evaluation_data *data, const char *const *operands, int count,
                            int *used);
/* Sets options->dtype by a command's flag --f64. Returns CLI_OK, or CLI_USAGE if --amp is set as well. */
int cli_evaluation_precision(const char *command, bool f64, cli_evaluation *options);
/* Loads data.checkpoint, which is not NULL, into the context of cli_engine_open(). *loaded is zeroed before the call.
 * The caller calls cli_unload(), also after a failure. Returns CLI_OK or an exit code. */
int cli_evaluation_load(cli_app *cli, const cli_evaluation *options, cli_loaded *loaded);
/* Opens data.data_dir, which is not NULL, for the loaded network. *dataset is NULL before the call. The caller closes
 * it, also after a failure. Returns CLI_OK or an exit code. */
int cli_evaluation_open(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, att_dataset **dataset);

/* Evaluates all images. Prints the speed, or why there is no result. Returns CLI_OK or an exit code. */
int cli_evaluate(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const att_dataset *dataset,
                 att_evaluation *result);
/* Prints how many images were skipped, and the speed. */
void cli_evaluation_say(cli_app *cli, const att_evaluation *evaluation);

#endif
