/* pages.h - what the build makes of the commands' descriptors: manual pages, and completion for shells. */
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

/* attscope(1), and the page of a command. In man(7). */
void page_overview(FILE *out);
void page_command(const page *p, FILE *out);

/* A script to be sourced by bash, and a function to be found by zsh, of all commands. */
void page_bash(const page *pages, FILE *out);
void page_zsh(const page *pages, FILE *out);

/* What a value of an option can be, for completion. */
typedef enum page_value { PAGE_NOTHING, PAGE_CHOICE, PAGE_FILE, PAGE_FOLDER } page_value;
page_value page_value_of(const att_flag *option);
/* Option `index` of a command, options without help left out; NULL past the last. */
const att_flag *page_option(const page *p, int index);
/* Whether the command's operands are models' names rather than files. */
bool page_takes_models(const cli_command *command);

#endif
