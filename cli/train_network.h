/* train_network.h - the network of a training: found before the data are opened, made after, filled last. */
#ifndef CLI_TRAIN_NETWORK_H
#define CLI_TRAIN_NETWORK_H

#include "train_flags.h"

typedef struct cli_train_network {
    const char *name, *checkpoint; /* checkpoint: to start or continue from, a file; NULL: none */
    char path[CLI_PATH];           /* of the file that was found for --initial-checkpoint */
    bool resumes;                  /* it is continued */
    att_identity identity;         /* the checkpoint's */
    att_checkpoint_info stood;     /* where its training stood */
    int height, width;             /* of images */
    att_preprocess preprocess;
    att_model *model;
    att_weights *weights;
    att_measure *measure; /* NULL: none */
} cli_train_network;

/* Which network flags and checkpoint describe, put into `settings`; what cannot be built or measured is refused.
 * resume: "" for a new training. *network is zero before, and to be freed whatever comes back. CLI_OK or a code. */
int cli_train_network_find(cli_app *cli, train_settings *settings, const char *resume, cli_train_network *network);
/* Builds the network that was found as far as flags say it, with one class where they say none, and asks the
 * instruments `with` (NULL: none) of it, only to see whether that can be. CLI_OK or a code. */
int cli_train_network_try(cli_app *cli, const train_settings *settings, cli_train_network *network, const char *with,
                          const char *nodes);
/* Whether the instruments `with`, which there are, all find something in that network; says nothing. */
bool cli_train_network_sees(cli_app *cli, const train_settings *settings, const cli_train_network *network,
                            const char *with);
/* The model for that data set with its instruments, and space for its weights. */
int cli_train_network_make(cli_app *cli, train_settings *settings, const att_dataset *data, cli_train_network *network);
/* Draws the weights, or takes them from the checkpoint to start from; those of a training that is continued att_train()
 * reads. */
int cli_train_network_fill(cli_app *cli, const train_settings *settings, cli_train_network *network);
void cli_train_network_free(cli_train_network *network);

#endif
