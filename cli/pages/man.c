/* Manual pages in man(7). */
#include <string.h>

#include "pages/pages.h"

/* Escapes text for groff: hyphens stay ASCII hyphens, and nothing is taken for a request. */
static void put(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool begins = i == 0 || text[i - 1] == '\n';
        if (begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '~')
            fputs("\\(ti", out);
        else if (text[i] == '^')
            fputs("\\(ha", out);
        else
            fputc(text[i], out);
    }
}

static void put_text(FILE *out, const char *text)
{
    put(out, text, strlen(text));
}

/* Writes text in upper case, as titles in man pages are. */
static void put_title(FILE *out, const char *name)
{
    fputs(".TH \"ATTSCOPE", out);
    if (*name)
        fputs("\\-", out);
    for (; *name; name++)
        fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
    fprintf(out, "\" 1 \"\" \"attscope %s\" \"attscope\"\n", att_version());
}

/* Writes filled paragraphs. Lines that begin with a space are kept as they are; an empty line ends a paragraph. */
static void put_paragraphs(FILE *out, const char *text)
{
    bool kept = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool keep = *text == ' ';
        if (keep != kept)
            fputs(keep ? ".PP\n.nf\n" : ".fi\n.PP\n", out);
        kept = keep;
        if (length > 0) {
            put(out, text, length);
            fputc('\n', out);
        } else {
            fputs(kept ? "\n" : ".PP\n", out);
        }
        text += length + (text[length] == '\n');
    }
    if (kept)
        fputs(".fi\n", out);
}

static void put_see_also(FILE *out, const char *own)
{
    const cli_command *command;
    fputs(".SH SEE ALSO\n", out);
    const char *comma = "";
    if (*own) {
        fputs(".BR attscope (1)", out);
        comma = ",\n";
    }
    for (int i = 0; (command = cli_command_at(i)); i++) {
        if (strcmp(command->name, own) == 0)
            continue;
        /* a comma follows the section of the previous page */
        fprintf(out, "%s.BR attscope\\-%s (1)", comma, command->name);
        comma = ",\n";
    }
    fputc('\n', out);
}

static void put_options(FILE *out, const att_flags *flags)
{
    const char *title = "";
    fputs(".SH OPTIONS\n", out);
    for (int i = 0; i < att_flags_count(flags); i++) {
        att_flag_place place = att_flags_at(flags, i);
        char text[CLI_FLAG_TEXT], about[CLI_ABOUT_TEXT];
        if (!place.flag->help)
            continue;
        if (strcmp(title, place.group->title) != 0) {
            fputs(".SS \"", out);
            put_text(out, place.group->title);
            fputs("\"\n", out);
        }
        title = place.group->title;
        cli_flag_text(place.flag, text);
        cli_about_text(flags, &place, about);
        fputs(".TP\n.B ", out);
        put_text(out, text);
        fputc('\n', out);
        put_text(out, about);
        fputs(".\n", out);
    }
}

void page_command(const page *p, FILE *out)
{
    const cli_command *command = p->command;
    put_title(out, command->name);
    fprintf(out, ".SH NAME\nattscope\\-%s \\- ", command->name);
    put_text(out, command->summary);
    fprintf(out, "\n.SH SYNOPSIS\n.B attscope %s\n", command->name);
    if (*command->operands) {
        fputs(".I ", out);
        put_text(out, command->operands);
        fputc('\n', out);
    }
    fputs("[\\fIoptions\\fR]\n.SH DESCRIPTION\n", out);
    fprintf(out, ".B attscope %s\n", command->name);
    put_text(out, command->summary);
    fputs(".\n", out);
    if (command->about) {
        fputs(".PP\n", out);
        put_paragraphs(out, command->about);
    }
    put_options(out, p->flags);
    fputs(".SH EXAMPLES\n.nf\n", out);
    put_text(out, command->example);
    fputs("\n.fi\n", out);
    put_see_also(out, command->name);
}

void page_overview(FILE *out)
{
    const cli_command *command;
    put_title(out, "");
    fputs(".SH NAME\nattscope \\- " CLI_SUMMARY
          "\n.SH SYNOPSIS\n.B attscope\n.I COMMAND\n"
          "[\\fIoptions\\fR]\n.br\n.B attscope\n.RB [ \\-\\-help | \\-\\-version ]\n.SH COMMANDS\n",
          out);
    for (int i = 0; (command = cli_command_at(i)); i++) {
        fprintf(out, ".TP\n.BR attscope\\-%s (1)\n", command->name);
        put_text(out, command->summary);
        fputs(".\n", out);
    }
    fprintf(out,
            ".SH EXIT STATUS\n.TP\n.B %d\nDone.\n.TP\n.B %d\nIt failed; one sentence on standard error says why.\n"
            ".TP\n.B %d\nThe command line or the recipe asks for what cannot be.\n"
            ".TP\n.B %d\nStopped by Ctrl-C or SIGTERM; a training run has left a checkpoint to continue from.\n",
            CLI_OK, CLI_FAILURE, CLI_USAGE, CLI_STOPPED);
    fprintf(out,
            ".SH ENVIRONMENT\n.TP\n.B ATTSCOPE_CPU\nThe features of the processor to use: baseline (none), avx2, "
            "avx512 or avx512_bf16.\n");
    put_see_also(out, "");
}
