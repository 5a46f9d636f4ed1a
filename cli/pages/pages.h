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

/* Kinds of option values, for completion. */
typedef enum page_value { PAGE_NOTHING, PAGE_CHOICE, PAGE_FILE, PAGE_FOLDER } page_value;
page_value page_value_of(const att_flag *option);
/* Option `index` of a command, without options that have no help; NULL past the last. */
const att_flag *page_option(const page *p, int index);
/* Whether the command's operands are models' names rather than files. */
bool page_takes_models(const cli_command *command);

#endif
