/* labels.h - the names of a network's classes, from a file with one a line. */
#ifndef CLI_LABELS_H
#define CLI_LABELS_H

/* Zero-initialise. */
typedef struct cli_labels {
    char *text;
    char **names; /* into text */
    int count;
} cli_labels;

/* A line is a class; a carriage return before its end is no part of it. CLI_OK, or a code after a message; to be freed
 * in any case. */
int cli_labels_read(const char *path, int classes, cli_labels *labels);
/* From a checkpoint that keeps those of its training (NULL: it does not), likewise: not more than there are classes,
 * and without what would steer a terminal. */
int cli_labels_take(const char *names, int classes, cli_labels *labels);
void cli_labels_free(cli_labels *labels);
/* NULL where nothing names the class. */
const char *cli_label_of(const cli_labels *labels, int class_number);

#endif
