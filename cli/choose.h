/* choose.h - images of a data set that the user names. */
#ifndef CLI_CHOOSE_H
#define CLI_CHOOSE_H

#include "cli.h"

/* Zero-initialise. */
typedef struct cli_choice {
    int64_t *images; /* numbers in the data set, none twice */
    int count;
} cli_choice;

/* The images that a list names, in its order. Commas separate its items; a comma in a name is "\,". Digits are the
 * image's number, from 0; anything else is the short name of an image (att_dataset_short_name()) or what stands behind
 * a '/' in it, '*' and '?' allowed: every image of that name is taken. CLI_OK or a code: of an item that names no
 * image. To be freed in any case. */
int cli_choose_images(const att_dataset *dataset, const char *list, cli_choice *choice);
void cli_choice_free(cli_choice *choice);

#endif
