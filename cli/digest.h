/* digest.h - what weights and images are, wherever they lie: sixteen hexadecimal digits. */
#ifndef CLI_DIGEST_H
#define CLI_DIGEST_H

#include "cli.h"

enum { CLI_DIGEST = 17 };

/* The bits of all weights: two checkpoints with the same weights have the same. ERR_MEMORY. */
att_status cli_weights_digest(const att_weights *weights, char digest[CLI_DIGEST]);

/* The images of a data set: their short names, in whatever order, and the pixels of a few of them. Classes do not
 * count. */
void cli_images_digest(cli_app *cli, const att_dataset *dataset, char digest[CLI_DIGEST]);

#endif
