#include "model_costs.h"

#include <stdio.h>
#include <string.h>

#include "network.h"

static const char *module_name(int index)
{
    return index == 0 ? "none" : index <= att_module_count(NULL) ? att_module_at(NULL, index - 1)->name : NULL;
}

static const att_flag comparison_rows[] = {
    {"compare", .kind = ATT_FLAG_TEXTS, .value = "LIST",
     .help = "show the network with this value of --modules too; several --compare: each of them",
     .choice = module_name, .advisory = true, .once = true, ATT_FLAG_AT(cli_comparison, modules)},
};
const att_flag_group cli_group_comparison = {"Comparison", .rows = comparison_rows,
                                             .row_count = sizeof comparison_rows / sizeof *comparison_rows};

/* --- counting ----------------------------------------------------------------------------------------------------- */

typedef struct costs {
    int64_t parameters;
    double forward, training; /* operations per image; training: 0 for a network without a head */
} costs;

/* Adds the loss to the model's graph. The plan is compiled without rewritings, so that networks are compared as they
 * are defined. */
static att_status count_training(const att_model *model, double *operations)
{
    const att_task_setup setup = {.classes = att_model_classes(model), .network = att_model_options(model)};
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.plain = true;
    att_plan *plan = NULL;
    att_status status = att_task_add_loss(att_model_task(model).name, att_model_graph(model), &setup);
    if (status == ATT_OK)
        status = att_plan_compile(att_model_graph(model), &options, &plan);
    if (status == ATT_OK)
        *operations = att_plan_cost(plan).flops;
    att_plan_destroy(&plan);
    return status;
}

static int count_costs(cli_app *cli, const char *name, const att_option_values *options, costs *found)
{
    att_model *model;
    int code = cli_check(cli, att_model_create(cli->context, name, options, ATT_F32, &model));
    if (code != CLI_OK)
        return code;
    *found = (costs){.parameters = att_graph_parameter_elements(att_model_graph(model)),
                     .forward = att_graph_cost(att_model_graph(model)).flops};
    if (att_model_classes(model) > 0)
        code = cli_check(cli, count_training(model, &found->training));
    att_model_destroy(&model);
    return code;
}

static costs difference(const costs *a, const costs *b)
{
    return (costs){a->parameters - b->parameters, a->forward - b->forward, a->training - b->training};
}

/* --- output ------------------------------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 512 };

/* Writes the options as flags, truncated to fit. */
static const char *flags_of(const att_family_info *family, const att_option_values *options, char text[TEXT_BYTES])
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < family->option_count && length < TEXT_BYTES; i++) {
        const att_option *option = &family->options[i];
        char values[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES], flag[ATT_OPTION_KEY];
        int count = att_option_format(option, options, values);
        if (count == 0)
            continue;
        snprintf(flag, sizeof flag, "%s", option->flag ? option->flag : option->key);
        for (char *c = strchr(flag, '_'); c; c = strchr(c, '_'))
            *c = '-';
        length += (size_t)snprintf(text + length, TEXT_BYTES - length, "%s--%s %s%s%s", length ? " " : "", flag,
                                   values[0], count > 1 ? " " : "", count > 1 ? values[1] : "");
    }
    return text;
}

void cli_costs_print_head(void)
{
    cli_print("%-44s %12s %14s %14s\n", "", "parameters", "MFLOP forward", "MFLOP training");
}

/* added: with signs */
static void print_costs(const costs *c, bool added, bool has_head)
{
    cli_print(added ? " %+12lld %+14.3f" : " %12lld %14.3f", (long long)c->parameters, 1e-6 * c->forward);
    if (has_head)
        cli_print(added ? " %+14.3f\n" : " %14.3f\n", 1e-6 * c->training);
    else
        cli_print(" %14s\n", "-");
}

static void write_costs(att_json_writer *writer, const char *prefix, const costs *c)
{
    char key[32];
    snprintf(key, sizeof key, "%sparam_count", prefix);
    att_json_put_integer(writer, key, c->parameters);
    snprintf(key, sizeof key, "%sinfer_flops", prefix);
    att_json_put_number(writer, key, c->forward);
    snprintf(key, sizeof key, "%strain_flops", prefix);
    att_json_put_number(writer, key, c->training);
}

static void write_options(att_json_writer *writer, const att_family_info *family, const att_option_values *options)
{
    for (int i = 0; i < family->option_count; i++)
        cli_json_option(writer, &family->options[i], options);
}

/* --- one network -------------------------------------------------------------------------------------------------- */

typedef struct table {
    cli_app *cli;
    const char *name;
    att_family_info family;
    costs base; /* what the others are compared with */
    att_json_writer *writer;
    bool prints;
} table;

/* Shows what the options add, in a row headed by `shown`, which are some of them. */
static int show_options(const table *t, const att_option_values *options, const att_option_values *shown)
{
    costs with;
    char text[TEXT_BYTES];
    int code = count_costs(t->cli, t->name, options, &with);
    if (code != CLI_OK)
        return code;
    const costs added = difference(&with, &t->base);
    if (t->prints) {
        cli_print("  %-42s", flags_of(&t->family, shown, text));
        print_costs(&added, true, with.training > 0 && t->base.training > 0);
    }
    if (t->writer) {
        att_json_begin_object(t->writer);
        write_options(t->writer, &t->family, options);
        write_costs(t->writer, "", &with);
        write_costs(t->writer, "added_", &added);
        att_json_end_object(t->writer);
    }
    return CLI_OK;
}

static int show_all(const table *t, const att_option_values *options, const cli_comparison *comparison)
{
    bool compares = comparison->modules.count > 0;
    int code = options->count > 0 && !compares ? show_options(t, options, options) : CLI_OK;
    for (int i = 0; code == CLI_OK && i < comparison->modules.count; i++) {
        att_option_values changed = *options, shown = att_options_none();
        att_options_set_text(&changed, "modules", comparison->modules.values[i]);
        att_options_set_text(&shown, "modules", comparison->modules.values[i]);
        code = show_options(t, &changed, &shown);
    }
    return code;
}

int cli_costs_list(cli_app *cli, const char *name, const att_option_values *options, const cli_comparison *comparison,
                   att_json_writer *writer, bool prints)
{
    table t = {.cli = cli, .name = name, .family = att_model_family_of(name), .writer = writer, .prints = prints};
    bool compares = comparison->modules.count > 0;
    char label[TEXT_BYTES];
    int code = count_costs(cli, name, compares ? options : NULL, &t.base);
    if (code != CLI_OK)
        return code;
    snprintf(label, sizeof label, "%s", name);
    if (compares && options->count > 0)
        snprintf(label, sizeof label, "%s %s", name, flags_of(&t.family, options, (char[TEXT_BYTES]){0}));
    if (prints) {
        cli_print("%-44s", label);
        print_costs(&t.base, false, t.base.training > 0);
    }
    if (!writer)
        return show_all(&t, options, comparison);
    att_json_begin_object(writer);
    att_json_put_string(writer, "model", name);
    if (compares)
        write_options(writer, &t.family, options);
    write_costs(writer, "", &t.base);
    att_json_put_array(writer, "with");
    code = show_all(&t, options, comparison);
    att_json_end_array(writer);
    att_json_end_object(writer);
    return code;
}
