/* attscope modules: lists the modules for residual branches, their options and their places. */
#include <stdio.h>

#include "cli.h"
#include "flags.h"
#include "help.h"

typedef struct settings {
    cli_output output;
} settings;

static const att_flag_use uses[] = {{&cli_group_output, offsetof(settings, output)}};

enum { MOST_NAMES = 64 };

typedef char places_text[96];

static void print_module(const att_module *module)
{
    places_text places;
    cli_print("%-12s  %s\n    on %s\n", module->name, module->meaning,
              att_module_places_text(module->places, places, sizeof places));
    for (int i = 0; i < module->option_count; i++) {
        char text[CLI_ABOUT_TEXT];
        cli_print("    %s\n", cli_detail_text(&module->options[i], text));
    }
}

static void print_hook(const att_module_hook *hook)
{
    places_text places;
    cli_print("  @%-17s %-22s  %s\n", hook->name, att_module_places_text(hook->place, places, sizeof places),
              hook->help);
}

/* places: prints those that are among them. */
static void print_places(unsigned places)
{
    for (int f = 0; f < att_model_family_count(); f++) {
        const att_family_info family = att_model_family_at(f);
        int printed = 0;
        for (int h = 0; h < family.hook_count; h++) {
            if (!(family.hooks[h].place & places))
                continue;
            if (printed++ == 0)
                cli_print("\nPlaces in networks of the family \"%s\" (after @; the first is the default):\n",
                          family.name);
            print_hook(&family.hooks[h]);
        }
    }
}

/* Writes the places where the module can be put. */
static void write_places(att_json_writer *writer, const att_module *module)
{
    att_json_put_array(writer, "at");
    for (int f = 0; f < att_model_family_count(); f++) {
        att_family_info family = att_model_family_at(f);
        for (int h = 0; h < family.hook_count; h++) {
            if (!(family.hooks[h].place & module->places))
                continue;
            att_json_begin_object(writer);
            att_json_put_string(writer, "family", family.name);
            att_json_put_string(writer, "place", family.hooks[h].name);
            att_json_end_object(writer);
        }
    }
    att_json_end_array(writer);
}

static void write_module(att_json_writer *writer, const att_module *module)
{
    places_text places;
    att_json_begin_object(writer);
    att_json_put_string(writer, "module", module->name);
    att_json_put_string(writer, "on", att_module_places_text(module->places, places, sizeof places));
    att_json_put_string(writer, "summary", module->meaning);
    att_json_put_array(writer, "options");
    for (int i = 0; i < module->option_count; i++)
        att_detail_write_json(&module->options[i], writer);
    att_json_end_array(writer);
    write_places(writer, module);
    att_json_end_object(writer);
}

/* The modules to show. */
typedef struct listing {
    const att_module *modules[MOST_NAMES];
    int count;
} listing;

static int find_named(cli_app *cli, const char *const *names, int count, listing *list)
{
    for (int i = 0; i < count; i++) {
        att_module_choice choice;
        int code = cli_check(cli, att_module_parse(cli->context, names[i], &choice));
        if (code != CLI_OK)
            return code;
        if (!choice.module)
            return cli_failure("\"%s\" is not a module", names[i]);
        list->modules[list->count++] = choice.module;
    }
    return CLI_OK;
}

static void list_all(const cli_app *cli, listing *list)
{
    for (int i = 0; i < att_module_count(cli->context) && i < MOST_NAMES; i++)
        list->modules[list->count++] = att_module_at(cli->context, i);
}

static void print_list(const listing *list)
{
    unsigned places = 0;
    for (int i = 0; i < list->count; i++) {
        print_module(list->modules[i]);
        places |= list->modules[i]->places;
    }
    print_places(places);
}

static int write_list(cli_app *cli, const char *path, const listing *list)
{
    att_json_writer *writer = NULL;
    int code = cli_json_begin_list(cli, path, &writer);
    for (int i = 0; writer && i < list->count; i++)
        write_module(writer, list->modules[i]);
    return cli_json_end_list(cli, writer, path, code);
}

static int run(cli_app *cli, void *user, const char *const *names, int count)
{
    const settings *s = user;
    listing list = {.count = 0};
    int code = cli_open(cli, 1);
    if (code == CLI_OK && count > 0)
        code = find_named(cli, names, count, &list);
    else if (code == CLI_OK)
        list_all(cli, &list);
    if (code == CLI_OK && cli_prints(s->output.json))
        print_list(&list);
    return code == CLI_OK ? write_list(cli, s->output.json, &list) : code;
}

const cli_command cli_command_modules = {
    .name = "modules",
    .summary = "lists modules and where they can be put in a network",
    .operands = "[NAME...]",
    .most_operands = MOST_NAMES,
    .about =
        "NAME: a module, which is shown with its options and places. Without a name, all\n"
        "are shown.\n"
        "\n"
        "A module is written as MODULE[:OPTIONS][@PLACE[:BLOCKS]]; + joins several:\n"
        "se:ratio=8@after_branch:every:2, cb@after_attn+cb_s@after_mlp:0-5. Without a\n"
        "place, a module goes to the first place that fits; without blocks, to all\n"
        "blocks. BLOCKS is all, none, every:K or numbers such as 0,2,5-7, in the whole\n"
        "network or in one stage, such as layer3:all.",
    .example =
        "  attscope modules\n"
        "  attscope modules cb",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
