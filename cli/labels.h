/* labels.h - the names of a network's classes: from a file with one a line, a checkpoint, or built in. */
#ifndef CLI_LABELS_H
#define CLI_LABELS_H

#include "cli.h"

#define CLI_LABELS_HELP                                                                                          \
    "names of the network's classes: those of a data set (imagenet-1k, cifar10, cifar100, fashion-mnist) or of " \
    "a file, one a line from class 0; without it the training's, or ImageNet's where the file is of its networks"

/* Zero-initialise. */
typedef struct cli_labels {
    char *text;
    char **names; /* into text */
    int count;
} cli_labels;

/* For people: what `said` (--labels; NULL: not given) names, a built-in data set or else a file; otherwise the names of
 * the checkpoint's training, or those of the data set whose network it is known to be, which a note says. A name that
 * is a synset of ImageNet has its label behind it. Names from a file or a data set must be as many as there are
 * classes. CLI_OK, or a code after a message; to be freed in any case. */
int cli_labels_choose(cli_app *cli, const char *said, const att_tensors *file, int classes, cli_labels *labels);
/* Those of a checkpoint's training as they are (NULL: it keeps none); none where they are more than the classes.
 * Otherwise likewise. */
int cli_labels_take(const char *names, int classes, cli_labels *labels);
void cli_labels_free(cli_labels *labels);
/* NULL where nothing names the class. */
const char *cli_label_of(const cli_labels *labels, int class_number);

#endif
