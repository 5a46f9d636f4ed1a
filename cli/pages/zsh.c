/* Completion for zsh. */
#include <string.h>

#include "pages/pages.h"

/* Escapes text for single quotes, and the brackets, colons and backslashes that _arguments interprets. */
static void put_quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void put_value(FILE *out, const att_flag *option)
{
    static const page_values values = {"(", ")", "_files", "_files -/", " "};
    fputc(':', out);
    put_quoted(out, option->value ? option->value : " ");
    fputc(':', out);
    page_put_value(out, option, &values);
}

/* Writes one spelling of the option: "--name", "--no-name" or "-n". */
static void put_way(FILE *out, const att_flag *option, const char *dashes, const char *name, const char *joint)
{
    bool valued = option->kind != ATT_FLAG_SWITCH && !att_flag_is_declared_switch(option);
    fprintf(out, "            '%s%s%s[", dashes, name, valued ? joint : "");
    put_quoted(out, option->help);
    fputc(']', out);
    if (valued)
        put_value(out, option);
    fputs("' \\\n", out);
}

static void put_command(FILE *out, const page *p)
{
    const cli_command *command = p->command;
    const att_flag *option;
    fprintf(out, "    %s)\n        _arguments \\\n", command->name);
    for (int i = 0; (option = page_option(p, i)); i++) {
        const char letter[2] = {option->letter, '\0'};
        put_way(out, option, "--", option->name, "=");
        if (att_flag_is_declared_switch(option))
            put_way(out, option, "--no-", option->name, "=");
        if (option->letter)
            put_way(out, option, "-", letter, "+");
    }
    fputs("            '--help[more about the command]' \\\n            '*:", out);
    put_quoted(out, *command->operands ? command->operands : " ");
    fputc(':', out);
    if (page_takes_models(command)) {
        fputc('(', out);
        for (int i = 0; i < att_model_count(); i++)
            fprintf(out, "%s%s", i ? " " : "", att_model_at(i).name);
        fputs(")'\n", out);
    } else {
        fputs("_files'\n", out);
    }
    fputs("        ;;\n", out);
}

void page_zsh(const page *pages, FILE *out)
{
    fputs(
        "#compdef attscope\n# Completion of attscope's commands, options and values; made by its build.\n"
        "local -a commands\ncommands=(\n",
        out);
    for (const page *p = pages; p->command; p++) {
        fprintf(out, "    '%s:", p->command->name);
        put_quoted(out, p->command->summary);
        fputs("'\n", out);
    }
    fputs(
        ")\n"
        "if (( CURRENT == 2 )); then\n"
        "    _describe command commands\n"
        "    return\n"
        "fi\n"
        "shift words\n"
        "(( CURRENT-- ))\n"
        "case $words[1] in\n",
        out);
    for (const page *p = pages; p->command; p++)
        put_command(out, p);
    fputs("esac\n", out);
}
