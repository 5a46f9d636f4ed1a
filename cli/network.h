/* network.h - from flags and a checkpoint to a network that can run. */
#ifndef CLI_NETWORK_H
#define CLI_NETWORK_H

#include "cli.h"
#include "flags.h"

typedef struct cli_loaded {
    att_tensors *file;
    att_identity identity; /* its preprocess: the flags' included */
    att_model *model;
    att_weights *weights;
    att_transform_options transform; /* evaluation's */
} cli_loaded;

/* Finds the network of the checkpoint at `path`, says on stderr what was taken from where, and loads its weights (the
 * averaged ones with `ema`). *loaded is zero before, and to be freed by cli_unload() whatever comes back: CLI_OK or a
 * code. */
int cli_load(cli_app *cli, const char *path, const cli_network *network, const cli_preprocess *flags, bool ema,
             cli_loaded *loaded);
void cli_unload(cli_loaded *loaded);

/* Lays the flags over *preprocess. CLI_OK or a code. */
int cli_preprocess_flags(const cli_preprocess *flags, att_preprocess *preprocess);

/* Opens a data set and says on stderr what is in it and where its class numbers come from. split: NULL as in
 * att_dataset_options. CLI_OK or a code. */
int cli_dataset_open(cli_app *cli, const char *path, const char *split, const char *class_map, int64_t cache_bytes,
                     att_dataset **dataset);

#endif
