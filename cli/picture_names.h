/* picture_names.h - names for the files that a command makes of photographs. */
#ifndef CLI_PICTURE_NAMES_H
#define CLI_PICTURE_NAMES_H

#include "cli.h"

/* The names so far. Zero-initialise. */
typedef struct cli_picture_names {
    void *taken; /* as tsearch() keeps them */
} cli_picture_names;

/* Writes the last part of the path `photograph` without the ending of an image; "NAME-2" for the second photograph of
 * this name, and so on. Upper and lower case count as equal. Returns CLI_OK or an exit code. */
int cli_picture_names_take(cli_picture_names *names, const char *photograph, char name[CLI_PATH]);
void cli_picture_names_free(cli_picture_names *names);

#endif
