/* pages.h - what the build makes of the commands' descriptors: manual pages, and completion for shells. */
#ifndef CLI_PAGES_PAGES_H
#define CLI_PAGES_PAGES_H

#include <stdio.h>

#include "commands.h"
#include "options_inner.h"

/* attscope(1), and the page of a command, whose table holds the defaults. In man(7). */
void page_overview(FILE *out);
void page_command(const cli_command *command, const cli_table *table, FILE *out);

/* A script to be sourced by bash, and a function to be found by zsh. */
void page_bash(FILE *out);
void page_zsh(FILE *out);

/* What a value of an option can be, for completion. */
typedef enum page_value { PAGE_NOTHING, PAGE_CHOICE, PAGE_FILE, PAGE_FOLDER } page_value;
page_value page_value_of(const cli_option *option);
/* Option `index` of a command, options without help left out; NULL past the last. */
const cli_option *page_option(const cli_command *command, int index);
/* Whether the command's operands are models' names rather than files. */
bool page_takes_models(const cli_command *command);

#endif
