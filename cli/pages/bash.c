/* Completion for bash. */
#include "pages/pages.h"

static void put_names(FILE *out, const page *p)
{
    const att_flag *option;
    for (int i = 0; (option = page_option(p, i)); i++) {
        fprintf(out, " --%s", option->name);
        if (att_flag_is_declared_switch(option))
            fprintf(out, " --no-%s", option->name);
        if (option->letter)
            fprintf(out, " -%c", option->letter);
    }
    fputs(" --help", out);
}

static void put_models(FILE *out)
{
    for (int i = 0; i < att_model_count(); i++)
        fprintf(out, " %s", att_model_at(i).name);
}

static const page_values values = {"words='", "'", "kind=file", "kind=directory", "kind=nothing"};

/* Lists the options that take a value, by the kind of value. Switches are not listed: the word after a switch is
 * completed as if the switch were not there. */
static void put_command(FILE *out, const page *p)
{
    const cli_command *command = p->command;
    const att_flag *option;
    fprintf(out, "    %s)\n        options='", command->name);
    put_names(out, p);
    fputs("'\n        case $previous in\n", out);
    for (int i = 0; (option = page_option(p, i)); i++) {
        if (option->kind == ATT_FLAG_SWITCH || att_flag_is_declared_switch(option))
            continue;
        fprintf(out, "        --%s", option->name);
        if (option->letter)
            fprintf(out, " | -%c", option->letter);
        fputs(") ", out);
        page_put_value(out, option, &values);
        fputs(" ;;\n", out);
    }
    fputs("        *) ", out);
    if (page_takes_models(command)) {
        fputs("words='", out);
        put_models(out);
        fputs("'", out);
    } else {
        fputs("kind=file", out);
    }
    fputs(" ;;\n        esac\n        ;;\n", out);
}

void page_bash(const page *pages, FILE *out)
{
    fputs(
        "# Completion of attscope's commands, options and values; made by its build.\n"
        "_attscope()\n"
        "{\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    local options='' words='' kind=''\n"
        "    # bash takes --name=value apart.\n"
        "    if [ \"$current\" = '=' ]; then\n"
        "        current=''\n"
        "    elif [ \"$previous\" = '=' ]; then\n"
        "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    fi\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        words='",
        out);
    for (const page *p = pages; p->command; p++)
        fprintf(out, "%s ", p->command->name);
    fputs(
        "--help --version'\n"
        "    fi\n"
        "    [ \"$COMP_CWORD\" -eq 1 ] || case ${COMP_WORDS[1]} in\n",
        out);
    for (const page *p = pages; p->command; p++)
        put_command(out, p);
    fputs(
        "    esac\n"
        "    case $current in\n"
        "    -*) [ -z \"$options\" ] || words=$options kind='' ;;\n"
        "    esac\n"
        "    COMPREPLY=()\n"
        "    if [ \"$kind\" = file ] || [ \"$kind\" = directory ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -A \"$kind\" -- \"$current\")\n"
        "        compopt -o filenames 2>/dev/null\n"
        "    elif [ -n \"$words\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
        "    fi\n"
        "}\n"
        "complete -F _attscope attscope\n",
        out);
}
