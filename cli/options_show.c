/* Options as help, and as a file of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "options_inner.h"

/* --- showing values ----------------------------------------------------------------------------------------------- */

/* As few digits as read back as the same number, but six where fewer would bring an exponent ("9e+01"). */
static void format_real(double value, char *text, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

static bool is_given(const cli_found *f)
{
    const cli_option *option = f->option;
    void *at = cli_value_of(f);
    switch (option->kind) {
    case CLI_INT:
        return !option->open || *(int *)at > 0;
    case CLI_REAL:
        return !option->open || *(double *)at > 0;
    case CLI_SIZE:
        return !option->open || *(int64_t *)at > 0;
    case CLI_REALS:
        return ((cli_reals *)at)->count > 0;
    case CLI_TEXTS: /* each belongs to one call: nothing shows or writes them */
        return false;
    case CLI_TEXT:
        return *(const char **)at != NULL;
    case CLI_DECLARED:
        return att_options_find(at, option->declared->key) != NULL;
    default:
        return true;
    }
}

/* A value's parts as texts; returns how many. Numbers are written to `numbers`. */
static int value_texts(const cli_found *f, char numbers[CLI_MOST_REALS][CLI_NUMBER_TEXT],
                       const char *texts[CLI_MOST_REALS])
{
    void *at = cli_value_of(f);
    int count = 1;
    texts[0] = numbers[0];
    switch (f->option->kind) {
    case CLI_FLAG:
        texts[0] = *(bool *)at ? "true" : "false";
        break;
    case CLI_INT:
        snprintf(numbers[0], CLI_NUMBER_TEXT, "%d", *(int *)at);
        break;
    case CLI_LONG:
    case CLI_SIZE:
        snprintf(numbers[0], CLI_NUMBER_TEXT, "%" PRId64, *(int64_t *)at);
        break;
    case CLI_SEED:
        snprintf(numbers[0], CLI_NUMBER_TEXT, "%" PRIu64, *(uint64_t *)at);
        break;
    case CLI_REAL:
        format_real(*(double *)at, numbers[0], CLI_NUMBER_TEXT);
        break;
    case CLI_REALS:
        count = ((cli_reals *)at)->count;
        for (int i = 0; i < count; i++) {
            format_real(((cli_reals *)at)->values[i], numbers[i], CLI_NUMBER_TEXT);
            texts[i] = numbers[i];
        }
        break;
    case CLI_TEXT:
        texts[0] = *(const char **)at;
        break;
    case CLI_DECLARED:
        count = att_option_format(f->option->declared, at, numbers);
        for (int i = 0; i < count; i++)
            texts[i] = numbers[i];
        break;
    case CLI_TEXTS:
        count = 0;
        break;
    }
    return count;
}

enum { HELP_INDENT = 29, HELP_WIDTH = 80 };

void cli_print_wrapped(FILE *out, const char *text, int indent)
{
    int column = indent;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_WIDTH) {
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

void cli_option_flag(const cli_option *option, char *text, size_t size)
{
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(text, size, "%s--%s%s%s%s", letter, cli_option_is_switch(option) ? "[no-]" : "", option->name,
             option->value ? " " : "", option->value ? option->value : "");
}

void cli_option_about(const cli_found *f, char *text, size_t size)
{
    const cli_option *option = f->option;
    char numbers[CLI_MOST_REALS][CLI_NUMBER_TEXT];
    const char *texts[CLI_MOST_REALS];
    int count = is_given(f) ? value_texts(f, numbers, texts) : 0;
    int length = snprintf(text, size, "%s", option->help), choices = cli_choice_count(option);
    for (int i = 0; i < choices && choices <= CLI_MOST_CHOICES; i++)
        length += snprintf(text + length, size - (size_t)length, "%s %s", i ? "," : ":", option->choice(i));
    if (count > 0 && option->kind != CLI_FLAG) {
        length += snprintf(text + length, size - (size_t)length, " (default");
        for (int i = 0; i < count; i++)
            length += snprintf(text + length, size - (size_t)length, " %s", texts[i]);
        snprintf(text + length, size - (size_t)length, ")");
    }
}

static void help_row(const cli_found *f, FILE *out)
{
    char flag[CLI_FLAG_TEXT], about[CLI_ABOUT_TEXT];
    cli_option_flag(f->option, flag, sizeof flag);
    cli_option_about(f, about, sizeof about);
    int width = fprintf(out, "  %s", flag);
    if (width > HELP_INDENT - 2)
        fprintf(out, "\n%*s", HELP_INDENT, "");
    else
        fprintf(out, "%*s", HELP_INDENT - width, "");
    cli_print_wrapped(out, about, HELP_INDENT);
}

void cli_options_help(const cli_table *table, FILE *out)
{
    int index = 0;
    for (int i = 0; i < table->use_count; i++) {
        const char *title = table->uses[i].group->title;
        if (i == 0 || strcmp(title, table->uses[i - 1].group->title) != 0)
            fprintf(out, "\n%s:\n", title);
        int count;
        cli_group_rows(table->uses[i].group, &count);
        for (int row = 0; row < count; row++) {
            cli_found f = cli_option_at(table, index++);
            if (f.option->help)
                help_row(&f, out);
        }
    }
}

att_status cli_options_write(const cli_table *table, att_context *context, const char *path)
{
    enum { MOST = 128, KEY = 64 };
    static const char *const no_values[1];
    att_yaml_entry entries[MOST];
    char keys[MOST][KEY], numbers[MOST][CLI_MOST_REALS][CLI_NUMBER_TEXT];
    const char *texts[MOST][CLI_MOST_REALS];
    int count = 0;
    for (int i = 0; i < cli_option_count(table) && count < MOST; i++) {
        cli_found f = cli_option_at(table, i);
        if (f.option->once || f.option->old)
            continue;
        snprintf(keys[count], KEY, "%s", f.option->name);
        for (char *c = keys[count]; *c; c++)
            if (*c == '-')
                *c = '_';
        bool given = is_given(&f);
        int values = given ? value_texts(&f, numbers[count], texts[count]) : 0;
        entries[count] = (att_yaml_entry){.key = keys[count],
                                          .kind = !given                                      ? ATT_YAML_NULL
                                                  : f.option->kind == CLI_REALS || values > 1 ? ATT_YAML_LIST
                                                                                              : ATT_YAML_SCALAR,
                                          .values = given ? texts[count] : no_values,
                                          .value_count = values,
                                          .text = cli_option_is_text(f.option)};
        count++;
    }
    return att_yaml_write(context, path, entries, count);
}
