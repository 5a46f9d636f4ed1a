#include "help.h"

#include <string.h>

#include "cli.h"

enum { INDENT = 29, WIDTH = 80, SHOWN_CHOICES = 8 };

att_status cli_flags_create(att_context *context, const cli_command *command, att_flags **flags)
{
    const att_flags_options options = {.uses = command->uses,
                                       .use_count = command->use_count,
                                       .size = command->settings_size,
                                       .command = command->name,
                                       .explain_unknown = command->explain_unknown};
    return att_flags_create(context, &options, flags);
}

void cli_print_wrapped(FILE *out, const char *text, int indent)
{
    int column = indent;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void cli_flag_text(const att_flag *flag, char text[CLI_FLAG_TEXT])
{
    char letter[8] = "";
    if (flag->letter)
        snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    snprintf(text, CLI_FLAG_TEXT, "%s--%s%s%s%s", letter, att_flag_is_declared_switch(flag) ? "[no-]" : "", flag->name,
             flag->value ? " " : "", flag->value ? flag->value : "");
}

void cli_about_text(const att_flags *flags, const att_flag_place *place, char text[CLI_ABOUT_TEXT])
{
    const att_flag *flag = place->flag;
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
    int count = att_flag_format(place, att_flags_defaults(flags), numbers, texts);
    size_t length = (size_t)snprintf(text, CLI_ABOUT_TEXT, "%s", flag->help);
    int choices = 0;
    while (att_flag_choice(flag, choices))
        choices++;
    for (int i = 0; i < choices && choices <= SHOWN_CHOICES && length < CLI_ABOUT_TEXT; i++)
        length +=
            (size_t)snprintf(text + length, CLI_ABOUT_TEXT - length, "%s %s", i ? "," : ":", att_flag_choice(flag, i));
    bool shown = count > 0 && flag->kind != ATT_FLAG_SWITCH;
    for (int i = 0; shown && i < count && length < CLI_ABOUT_TEXT; i++)
        length += (size_t)snprintf(text + length, CLI_ABOUT_TEXT - length, "%s %s", i ? "" : " (default", texts[i]);
    if (shown && length < CLI_ABOUT_TEXT)
        snprintf(text + length, CLI_ABOUT_TEXT - length, ")");
}

static void help_row(const att_flags *flags, const att_flag_place *place, FILE *out)
{
    char text[CLI_FLAG_TEXT], about[CLI_ABOUT_TEXT];
    cli_flag_text(place->flag, text);
    cli_about_text(flags, place, about);
    int width = fprintf(out, "  %s", text);
    if (width > INDENT - 2)
        fprintf(out, "\n%*s", INDENT, "");
    else
        fprintf(out, "%*s", INDENT - width, "");
    cli_print_wrapped(out, about, INDENT);
}

static bool has_details(const att_flag_group *group, const char *owner)
{
    return group->usual > 0 && strcmp(group->owner, owner) == 0;
}

static void print_left_out(const att_flag_group *group, int count, FILE *out)
{
    if (count > 0)
        fprintf(out, "  %d more flags: --help-%s\n", count, group->owner);
}

void cli_flags_help(const att_flags *flags, const char *owner, FILE *out)
{
    const att_flag_group *group = NULL;
    int left_out = 0;
    for (int i = 0, row = 0; i < att_flags_count(flags); i++) {
        const att_flag_place place = att_flags_at(flags, i);
        if (!place.flag->help || (owner && !has_details(place.group, owner)))
            continue;
        if (!group || strcmp(group->title, place.group->title) != 0) {
            print_left_out(group, left_out, out);
            fprintf(out, "\n%s:\n", place.group->title);
            row = left_out = 0;
        }
        group = place.group;
        if (owner || group->usual == 0 || row++ < group->usual)
            help_row(flags, &place, out);
        else
            left_out++;
    }
    print_left_out(group, left_out, out);
}

bool cli_has_details(const att_flags *flags, const char *owner)
{
    for (int i = 0; i < att_flags_count(flags); i++)
        if (has_details(att_flags_at(flags, i).group, owner))
            return true;
    return false;
}

char *cli_detail_text(const att_detail *option, char text[CLI_ABOUT_TEXT])
{
    int used = 0;
#define ADD(...)               \
    if (used < CLI_ABOUT_TEXT) \
    used += snprintf(text + used, (size_t)(CLI_ABOUT_TEXT - used), __VA_ARGS__)
    if (option->choices) {
        ADD("%s=%s (", option->name, option->choices[(int)option->start]);
        for (int i = 0; option->choices[i]; i++)
            ADD("%s%s", i ? ", " : "", option->choices[i]);
    } else {
        ADD("%s=%g (%g..%.10g", option->name, option->start, option->low, option->high);
    }
    ADD(")  %s", option->meaning);
#undef ADD
    return text;
}
