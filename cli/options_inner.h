/* options_inner.h - what parsing and showing options share. */
#ifndef CLI_OPTIONS_INNER_H
#define CLI_OPTIONS_INNER_H

#include "options.h"

enum { CLI_NUMBER_TEXT = 96, CLI_MOST_CHOICES = 8 };

/* A row and the struct its value lies in. */
typedef struct cli_found {
    const cli_option *option; /* NULL: there is none */
    char *values;
    const void *defaults; /* such a struct with the defaults */
    bool no;              /* asked for as --no-name */
} cli_found;

/* Row `index` of all groups together; option NULL past the last. */
cli_found cli_option_at(const cli_table *table, int index);
int cli_option_count(const cli_table *table);
/* Where its value lies. */
void *cli_value_of(const cli_found *found);
int cli_choice_count(const cli_option *option);

#endif
