/* attscope modules: lists the modules for residual branches and their options. */
#include <stdio.h>

#include "cli.h"
#include "flags.h"

typedef struct settings {
    cli_output output;
} settings;

static const att_flag_use uses[] = {{&cli_group_output, offsetof(settings, output)}};

typedef char places_text[96];

static void print_option(const att_module_option *option)
{
    if (option->choices) {
        cli_print("    %s=%s (", option->name, option->choices[(int)option->start]);
        for (int i = 0; option->choices[i]; i++)
            cli_print("%s%s", i ? ", " : "", option->choices[i]);
    } else {
        cli_print("    %s=%g (%g..%g", option->name, option->start, option->low, option->high);
    }
    cli_print(")  %s\n", option->meaning);
}

static void print_module(const att_module *module)
{
    places_text places;
    cli_print("%-12s  %s\n    on %s\n", module->name, module->meaning,
              att_module_places_text(module->places, places, sizeof places));
    for (int i = 0; i < module->option_count; i++)
        print_option(&module->options[i]);
}

static void print_places(void)
{
    places_text places;
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        if (family.hook_count > 0)
            cli_print("\nPlaces in networks of the family \"%s\" (after @; the first is the default):\n", family.name);
        for (int h = 0; h < family.hook_count; h++)
            cli_print("  @%-17s %-22s  %s\n", family.hooks[h].name,
                      att_module_places_text(family.hooks[h].place, places, sizeof places), family.hooks[h].help);
    }
}

/* Writes the places where the module can be put. */
static void write_places(att_json_writer *writer, const att_module *module)
{
    att_json_key(writer, "at");
    att_json_begin_array(writer);
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        for (int h = 0; h < family.hook_count; h++) {
            if (!(family.hooks[h].place & module->places))
                continue;
            att_json_begin_object(writer);
            cli_json_text(writer, "family", family.name);
            cli_json_text(writer, "place", family.hooks[h].name);
            att_json_end_object(writer);
        }
    }
    att_json_end_array(writer);
}

static void write_option(att_json_writer *writer, const att_module_option *option)
{
    att_json_begin_object(writer);
    cli_json_text(writer, "option", option->name);
    cli_json_text(writer, "summary", option->meaning);
    if (option->choices) {
        cli_json_text(writer, "default", option->choices[(int)option->start]);
        att_json_key(writer, "choices");
        att_json_begin_array(writer);
        for (int i = 0; option->choices[i]; i++)
            att_json_string(writer, option->choices[i]);
        att_json_end_array(writer);
    } else {
        cli_json_number(writer, "default", option->start);
        cli_json_number(writer, "low", option->low);
        cli_json_number(writer, "high", option->high);
    }
    att_json_end_object(writer);
}

static void write_module(att_json_writer *writer, const att_module *module)
{
    places_text places;
    att_json_begin_object(writer);
    cli_json_text(writer, "module", module->name);
    cli_json_text(writer, "on", att_module_places_text(module->places, places, sizeof places));
    cli_json_text(writer, "summary", module->meaning);
    att_json_key(writer, "options");
    att_json_begin_array(writer);
    for (int i = 0; i < module->option_count; i++)
        write_option(writer, &module->options[i]);
    att_json_end_array(writer);
    write_places(writer, module);
    att_json_end_object(writer);
}

static int write_all(cli_app *cli, const char *path)
{
    att_json_writer *writer = NULL;
    int code = cli_check(cli, att_json_writer_create(cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    att_json_begin_array(writer);
    for (int i = 0; i < att_module_count(cli->context); i++)
        write_module(writer, att_module_at(cli->context, i));
    att_json_end_array(writer);
    return cli_json_write(cli, writer, path);
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    (void)operands, (void)count;
    const settings *s = user;
    if (cli_prints(s->output.json)) {
        for (int i = 0; i < att_module_count(cli->context); i++)
            print_module(att_module_at(cli->context, i));
        print_places();
    }
    if (!s->output.json)
        return CLI_OK;
    int code = cli_open(cli, 1);
    return code == CLI_OK ? write_all(cli, s->output.json) : code;
}

const cli_command cli_command_modules = {
    .name = "modules",
    .summary = "lists modules and where they can be put in a network",
    .operands = "",
    .about =
        "A module is written as MODULE[:OPTIONS][@PLACE[:BLOCKS]]; + joins several:\n"
        "se:ratio=8@after_branch:every:2, cb@after_attn+cb_s@after_mlp:0-5. Without a\n"
        "place, a module goes to the first place that fits; without blocks, to all\n"
        "blocks. BLOCKS is all, none, every:K or numbers such as 0,2,5-7, in the whole\n"
        "network or in one stage, such as layer3:all.",
    .example = "  attscope modules",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
