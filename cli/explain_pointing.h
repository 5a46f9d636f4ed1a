/* explain_pointing.h - the questions of the pointing game (attscope/relevance.h) on a data set with boxes. */
#ifndef CLI_EXPLAIN_POINTING_H
#define CLI_EXPLAIN_POINTING_H

#include "image_input.h"

/* The classes of the network that objects of a category can have. */
typedef struct cli_pointed {
    int *classes;
    int count;     /* 0: the category takes no part */
    int questions; /* so far */
} cli_pointed;

/* Zero-initialise. */
typedef struct cli_pointing {
    cli_app *cli;
    const att_dataset *dataset;
    cli_pointed *categories; /* [count], by the label of a box */
    int count;
    int *asked; /* the category of each question */
    int questions;
} cli_pointing;

/* Finds the classes of the categories: in the file, with a line "NAME: NUMBERS" for each category, such as
 * "dog: 151-268"; or by their names, file NULL. A note names the categories. The data set has boxes. Returns CLI_OK or
 * an exit code. */
int cli_pointing_open(cli_app *cli, const att_network *network, const att_dataset *dataset, const char *file,
                      cli_pointing *pointing);
/* The caller calls it also after a failure. */
void cli_pointing_close(cli_pointing *pointing);
/* The most questions that the data set has. */
int64_t cli_pointing_most(const cli_pointing *pointing);

/* The next category of image `index` after `label` (-1: the first) that takes part; -1: there is none. */
int cli_pointing_next(const cli_pointing *pointing, int64_t index, int label);
/* Notes a question about this category. Call it once for each. */
void cli_pointing_ask(cli_pointing *pointing, int label);

#endif
