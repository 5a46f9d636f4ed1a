/* help.h - flags as help. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include <attscope/lab/flags.h>

/* The table of a command's flags. CLI_OK or a code. */
struct cli_command;
att_status cli_flags_create(att_context *context, const struct cli_command *command, att_flags **flags);

enum { CLI_FLAG_TEXT = 64, CLI_ABOUT_TEXT = 512 };
/* "-b, --batch-size N" */
void cli_flag_text(const att_flag *flag, char text[CLI_FLAG_TEXT]);
/* What help says beside it: what it is, its choices where they are few, its default. The row must have help. */
void cli_about_text(const att_flags *flags, const att_flag_place *place, char text[CLI_ABOUT_TEXT]);

/* Every flag with its default, one group after another. */
void cli_flags_help(const att_flags *flags, FILE *out);

/* Prints words to the end of a line on which `indent` columns are taken, and to further lines of 80, indented alike. */
void cli_print_wrapped(FILE *out, const char *text, int indent);

#endif
