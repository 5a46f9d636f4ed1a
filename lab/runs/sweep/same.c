#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>

#include "base/flags/flags.h"
#include "lab/runs/sweep/plan.h"
#include "networks/nn/module.h"

static const char MODULES[] = "modules";

/* Returns whether both texts name the same module with the same options, as "se" and "se:ratio=16" do; false if one
 * cannot be parsed. On success *choice is this module. */
static bool same_module(att_context *context, const char *a, const char *b, att_module_choice *choice)
{
    att_module_choice other;
    if (att_module_parse(context, a, choice) != ATT_OK || att_module_parse(context, b, &other) != ATT_OK ||
        choice->module != other.module)
        return false;
    for (int i = 0; choice->module && i < choice->module->option_count; i++)
        if (choice->values[i] != other.values[i])
            return false;
    return true;
}

/* Copies the part before "@". */
static void module_of(const char *text, char module[ATT_OPTION_TEXT_BYTES])
{
    snprintf(module, ATT_OPTION_TEXT_BYTES, "%.*s", (int)strcspn(text, "@"), text);
}

/* Returns whether two values of the option "modules" name the same module, whatever its places. A missing value equals
 * only a missing value, since the network or a checkpoint may have a module of its own. Lists of several modules are
 * compared as texts, because networks that differ in the second module can have parameters with the same names. */
static bool same_module_text(att_context *context, const char *a, const char *b)
{
    char one[ATT_OPTION_TEXT_BYTES], other[ATT_OPTION_TEXT_BYTES];
    att_module_choice choice;
    if (strchr(a, '+') || strchr(b, '+'))
        return strcmp(a, b) == 0;
    module_of(a, one);
    module_of(b, other);
    return strcmp(one, other) == 0 || (*one && *other && same_module(context, one, other, &choice));
}

static bool same_parameters(const att_graph *a, const att_graph *b)
{
    int count = att_graph_parameter_count(a);
    bool same = count == att_graph_parameter_count(b);
    for (int i = 0; same && i < count; i++)
        same = strcmp(att_graph_parameter_at(a, i).name, att_graph_parameter_at(b, i).name) == 0;
    return same;
}

/* Compares networks that differ at most in the places of their modules. The names of a module's parameters contain the
 * name of its block, so equal names mean equal places. A network that cannot be built equals no other one. */
static att_status same_network(att_context *context, const att_recipe_network *a, const att_recipe_network *b,
                               bool *same)
{
    att_model *one = NULL, *other = NULL;
    *same = false;
    if (!a->model)
        return ATT_OK;
    att_status status = att_model_create(context, a->model, &a->options, ATT_F32, &one);
    if (status == ATT_OK)
        status = att_model_create(context, b->model, &b->options, ATT_F32, &other);
    if (status == ATT_OK)
        *same = same_parameters(att_model_graph(one), att_model_graph(other));
    att_model_destroy(&other);
    att_model_destroy(&one);
    return status == ATT_ERR_MEMORY ? status : ATT_OK;
}

/* *same: whether recipes with the same module have it at the same places. */
static att_status same_places(att_context *context, const att_recipe *a, const att_recipe *b, bool *same)
{
    const char *modules = att_options_text(&a->network.options, MODULES),
               *others = att_options_text(&b->network.options, MODULES);
    char module[ATT_OPTION_TEXT_BYTES];
    att_module_choice choice;
    module_of(modules, module);
    *same = strcmp(modules + strcspn(modules, "@"), others + strcspn(others, "@")) == 0;
    if (*same || !*module || !same_module(context, module, module, &choice))
        return ATT_OK;
    *same = !choice.module;
    return choice.module && att_module_has_parameters(&choice) && !a->files.initial_checkpoint
               ? same_network(context, &a->network, &b->network, same)
               : ATT_OK;
}

att_status att_recipes_same(const att_sweep_plan *plan, const att_recipe *a, const att_recipe *b, bool *same)
{
    const char *modules = att_options_text(&a->network.options, MODULES);
    att_recipe other = *b;
    other.train.seed = a->train.seed;
    other.files.output = a->files.output;
    other.files.experiment = a->files.experiment;
    *same = false;
    if (!same_module_text(plan->context, modules, att_options_text(&b->network.options, MODULES)))
        return ATT_OK;
    att_options_unset(&other.network.options, MODULES);
    if (*modules)
        att_options_set_text(&other.network.options, MODULES, modules);
    return att_flags_same(plan->flags, &other, a) ? same_places(plan->context, a, b, same) : ATT_OK;
}
