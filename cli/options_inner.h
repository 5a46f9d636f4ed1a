/* options_inner.h - what parsing and showing options share. */
#ifndef CLI_OPTIONS_INNER_H
#define CLI_OPTIONS_INNER_H

#include "options.h"

enum { CLI_NUMBER_TEXT = ATT_OPTION_TEXT_BYTES, CLI_MOST_CHOICES = 8, CLI_FLAG_TEXT = 64, CLI_ABOUT_TEXT = 512 };

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
/* The rows of a group. */
const cli_option *cli_group_rows(const cli_group *group, int *count);
/* Numbers that one flag may take: 0 of switches and texts. */
int cli_option_numbers(const cli_option *option);
/* Whether it has a --no-name but is not given at first. */
bool cli_option_is_switch(const cli_option *option);
bool cli_option_is_text(const cli_option *option);
/* The row of that name, dashes or underscores; option NULL: there is none. */
cli_found cli_option_find(const cli_table *table, const char *name);
/* Where its value lies. */
void *cli_value_of(const cli_found *found);
int cli_choice_count(const cli_option *option);
/* "-b, --batch-size N" */
void cli_option_flag(const cli_option *option, char *text, size_t size);
/* What help says beside it: what it is, its choices where they are few, its default. The row must have help. */
void cli_option_about(const cli_found *found, char *text, size_t size);

#endif
