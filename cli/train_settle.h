/* train_settle.h - what the flags of attscope train come to. */
#ifndef CLI_TRAIN_SETTLE_H
#define CLI_TRAIN_SETTLE_H

#include "train_flags.h"

/* Checks what can be refused before any image is read, and completes the recipe and the network's options. CLI_OK or a
 * code. */
int cli_train_settle(cli_app *cli, train_settings *settings);
/* Makes evaluation's transform that of training. */
void cli_train_transform(const train_images *images, att_transform_options *transform);

#endif
