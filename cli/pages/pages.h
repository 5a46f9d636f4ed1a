/* pages.h - generates manual pages and shell completion from the commands' descriptors, at build time. */
#ifndef CLI_PAGES_PAGES_H
#define CLI_PAGES_PAGES_H

#include <stdio.h>

#include "commands.h"
#include "help.h"

/* A command with its flags. */
typedef struct page {
    const cli_command *command; /* NULL: past the last */
    att_flags *flags;
} page;

/* Write attscope(1), and the page of a command, in man(7) format. */
void page_overview(FILE *out);
void page_command(const page *p, FILE *out);

/* Write the completion of all commands: a script to source in bash, and a function for zsh. */
void page_bash(const page *pages, FILE *out);
void page_zsh(const page *pages, FILE *out);

/* What completes the value of an option: the texts around its choices, or that for its kind. */
typedef struct page_values {
    const char *before, *after, *file, *folder, *nothing;
} page_values;
void page_put_value(FILE *out, const att_flag *option, const page_values *texts);
/* Option `index` of a command, without options that have no help; NULL past the last. */
const att_flag *page_option(const page *p, int index);
/* Whether the command's operands are models' names rather than files. */
bool page_takes_models(const cli_command *command);

#endif
