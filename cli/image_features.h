/* image_features.h - for commands that compute features of images. */
#ifndef CLI_IMAGE_FEATURES_H
#define CLI_IMAGE_FEATURES_H

#include <attscope/embed.h>

#include "evaluation.h"

/* The flag --of, whose value is the name of the features. */
extern const att_flag_group cli_group_features;
/* The same, for a command that also takes networks for texts. */
extern const att_flag_group cli_group_features_with_texts;

/* What the commands hold until their end. Zero-initialise. */
typedef struct cli_features {
    cli_loaded loaded;
    att_dataset *dataset, *train_dataset;
    att_embedding found, train; /* of these data sets */
} cli_features;
/* Frees all of it. */
void cli_features_close(cli_app *cli, cli_features *features);
/* Refuses --checkpoint and --data-dir of a command that takes operands only. Returns CLI_OK or CLI_USAGE. */
int cli_features_check(const char *command, const char *operands, const cli_evaluation_data *data);

/* Opens the split train of `path` for the loaded network, and checks that it can classify images of `tested`
 * (att_embedding_check_sets()). *train is NULL before the call. The caller closes it, also after a failure. Returns
 * CLI_OK or an exit code. */
int cli_features_open_train(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const char *path,
                            const att_dataset *tested, att_dataset **train);
/* Computes the features of all images, and prints the speed. The caller frees *found after success. Returns CLI_OK or
 * an exit code. */
int cli_features_find(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const char *of,
                      const att_dataset *dataset, att_embedding *found);

/* Whether the first five classes say something: there are more than five. */
bool cli_features_first5(int classes);
/* "top-1  87.15 %   top-5  99.45 %"; of five classes or fewer, top-1 alone. */
enum { CLI_FEATURES_TEXT = 64 };
char *cli_features_text(const att_embedding_result *result, int classes, char text[CLI_FEATURES_TEXT]);

#endif
