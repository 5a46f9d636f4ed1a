/* drawings.h - the folder in which a command draws answers into photographs. */
#ifndef CLI_DRAWINGS_H
#define CLI_DRAWINGS_H

#include "cli.h"

#define CLI_DRAWINGS_LEGEND "legend.txt"

typedef struct cli_drawings {
    cli_app *cli;
    const char *folder;
    const att_network *network;
    att_picture_names *names;
} cli_drawings;

/* The files of one photograph. */
typedef struct cli_drawn {
    char image[CLI_PATH];
    char index[CLI_PATH]; /* "": the answer gives no class to each pixel */
} cli_drawn;

/* Refuses a folder "", and one in which a drawing could replace or become one of the photographs: it holds a file of
 * `photographs`, or it is one of their folders or lies in one. flag: that gives it. Returns CLI_OK or an exit code. */
int cli_drawings_check(const char *flag, const char *folder, const char *const *photographs, int count);
/* Makes the folder, if it is missing, and writes a legend into it: a line with name, red, green and blue for each
 * class. Fails if predictions of the network's task cannot be drawn. Returns CLI_OK or an exit code. */
int cli_drawings_open(cli_app *cli, const char *folder, const att_network *network, cli_drawings *drawings);
/* Also after a failure of cli_drawings_open(), and for zeros. */
void cli_drawings_close(cli_drawings *drawings);

/* Draws the first answer into the photograph `name`, and writes "NAME.drawn.png" and "NAME.classes.png", where NAME is
 * the last part of `name`, without the ending of an image. A second photograph of the same NAME has "NAME-2", and so
 * on. Files of earlier commands are replaced. Returns CLI_OK or an exit code. */
int cli_drawings_add(cli_drawings *drawings, const char *name, const att_image *photograph, const att_batch *answer,
                     cli_drawn *drawn);

#endif
