/* help.h - help text of flags. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include <attscope/lab/flags.h>

/* Creates the table of a command's flags. */
struct cli_command;
att_status cli_flags_create(att_context *context, const struct cli_command *command, att_flags **flags);

enum { CLI_FLAG_TEXT = 64, CLI_ABOUT_TEXT = 512 };
/* Writes "-b, --batch-size N". */
void cli_flag_text(const att_flag *flag, char text[CLI_FLAG_TEXT]);
/* Writes the help text of a flag: its meaning, its choices if they are few, its default. The flag must have help. */
void cli_about_text(const att_flags *flags, const att_flag_place *place, char text[CLI_ABOUT_TEXT]);

/* Writes an option of a module or an instrument with its default, its range and its meaning: "ratio=8 (1..64)  ...".
 * Returns `text`. */
char *cli_detail_text(const att_detail *option, char text[CLI_ABOUT_TEXT]);

/* Prints the flags with their defaults, group by group. owner: prints the groups of which --help-OWNER shows more than
 * --help; NULL: what --help shows. */
void cli_flags_help(const att_flags *flags, const char *owner, FILE *out);
/* Whether there are such groups. */
bool cli_has_details(const att_flags *flags, const char *owner);

/* Prints text, wrapped at 80 columns. The first line has `indent` columns already; further lines are indented by as
 * many. */
void cli_print_wrapped(FILE *out, const char *text, int indent);

#endif
