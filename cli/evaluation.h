/* evaluation.h - for commands that show a checkpoint a data set. */
#ifndef CLI_EVALUATION_H
#define CLI_EVALUATION_H

#include "network.h"

typedef struct cli_evaluation_data {
    const char *data_dir, *split, *class_map;
    bool coarse_labels;
    int64_t cache_bytes;
    const char *checkpoint;
    bool use_ema;
    int batch_size, workers;
    bool skip_corrupt;
} cli_evaluation_data;
extern const att_flag_group cli_group_evaluation_data;

/* Options, each part a group of its own. */
typedef struct cli_evaluation {
    cli_evaluation_data data;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_engine engine;
    bool test_images; /* no flag: as in cli_load_options */
} cli_evaluation;

/* Loads data.checkpoint, which is not NULL, into the context of cli_engine_open(). *loaded is zero before, and the
 * caller's whatever comes back: CLI_OK or a code. */
int cli_evaluation_load(cli_app *cli, const cli_evaluation *options, cli_loaded *loaded);
/* Then opens data.data_dir, which is not NULL, for that network. *dataset is NULL before, and the caller's as above. */
int cli_evaluation_open(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, att_dataset **dataset);

/* Every image once. Says how fast it was, and why there is no result. CLI_OK or a code. */
int cli_evaluate(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const att_dataset *dataset,
                 att_evaluation *result);
/* Says which images were left out, and how fast it was. */
void cli_evaluation_say(cli_app *cli, const att_evaluation *evaluation);

#endif
