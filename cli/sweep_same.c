#include "sweep_same.h"

#include <string.h>

/* "se" and "se:ratio=16"; false where a text cannot be read. */
static bool same_module(cli_app *cli, const char *a, const char *b, att_module_choice *choice)
{
    att_module_choice other;
    if (att_module_parse(cli->context, a, choice) != ATT_OK || att_module_parse(cli->context, b, &other) != ATT_OK ||
        choice->module != other.module)
        return false;
    for (int i = 0; choice->module && i < choice->module->option_count; i++)
        if (choice->values[i] != other.values[i])
            return false;
    return true;
}

/* A text that is not given may be the named network's or a checkpoint's own module. */
static bool same_module_text(cli_app *cli, const char *a, const char *b)
{
    att_module_choice choice;
    return strcmp(a, b) == 0 || (*a && *b && same_module(cli, a, b, &choice));
}

static bool same_parameters(const att_graph *a, const att_graph *b)
{
    int count = att_graph_parameter_count(a);
    bool same = count == att_graph_parameter_count(b);
    for (int i = 0; same && i < count; i++)
        same = strcmp(att_graph_parameter_at(a, i).name, att_graph_parameter_at(b, i).name) == 0;
    return same;
}

/* Of networks that differ in their modules' places at most: a module's parameters are called by its block. */
static bool same_network(cli_app *cli, const cli_network *a, const cli_network *b)
{
    att_model *one = NULL, *other = NULL;
    bool same = a->model && att_model_create(cli->context, a->model, &a->options, ATT_F32, &one) == ATT_OK &&
                att_model_create(cli->context, b->model, &b->options, ATT_F32, &other) == ATT_OK &&
                same_parameters(att_model_graph(one), att_model_graph(other));
    att_model_destroy(&other);
    att_model_destroy(&one);
    return same;
}

/* `attn` is the module of both. */
static bool same_places(cli_app *cli, const train_settings *a, const train_settings *b, const char *attn)
{
    att_module_choice choice;
    const char *places = att_options_text(&a->network.options, "attn_blocks"),
               *others = att_options_text(&b->network.options, "attn_blocks");
    if (strcmp(places, others) == 0)
        return true;
    if (!*attn || !same_module(cli, attn, attn, &choice))
        return false;
    if (!choice.module)
        return true;
    return choice.module->parameter && !a->files.initial_checkpoint && same_network(cli, &a->network, &b->network);
}

static void take_over(const att_option_values *from, const char *key, att_option_values *to)
{
    const char *text = att_options_text(from, key);
    att_options_unset(to, key);
    if (*text)
        att_options_set_text(to, key, text);
}

bool sweep_same_settings(cli_app *cli, const train_settings *a, const train_settings *b)
{
    static const char *const modules[] = {"broadcast", "attn"};
    const att_option_values *options = &a->network.options;
    train_settings other = *b, none;
    att_option_values *to = &other.network.options;
    other.recipe.seed = a->recipe.seed;
    other.files.output = a->files.output;
    other.files.experiment = a->files.experiment;
    for (int i = 0; i < 2; i++) {
        if (!same_module_text(cli, att_options_text(options, modules[i]), att_options_text(to, modules[i])))
            return false;
        take_over(options, modules[i], to);
    }
    take_over(options, "attn_blocks", to);
    const cli_table table = {
        .command = "train", .uses = cli_train_uses, .use_count = CLI_TRAIN_USES, .settings = &other, .defaults = &none};
    return cli_options_same(&table, a) && same_places(cli, a, b, att_options_text(options, "attn"));
}
