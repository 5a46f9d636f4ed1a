#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>

#include "base/core/catalog.h"
#include "base/core/details.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "networks/nn/list.h"
#include "networks/nn/module.h"

#define DECLARE(name) extern const att_module att_module_##name;
ATT_MODULE_LIST(DECLARE)
#define POINTER(name) &att_module_##name,
static const att_module *const modules[] = {ATT_MODULE_LIST(POINTER)};
enum { MODULE_COUNT = sizeof modules / sizeof *modules };

static const void *built_in(int index)
{
    return index < MODULE_COUNT ? modules[index] : NULL;
}

static const char *name_of(const void *module)
{
    return ((const att_module *)module)->name;
}

static const att_catalog catalog = {.kind = "module", .reserved = "none", .built_in = built_in, .name = name_of};

int att_module_count(const att_context *context)
{
    return att_catalog_count(&catalog, context);
}

const att_module *att_module_at(const att_context *context, int index)
{
    return att_catalog_at(&catalog, context, index);
}

const att_module *att_module_find(const att_context *context, const char *name)
{
    return att_catalog_find(&catalog, context, name);
}

/* --- registering -------------------------------------------------------------------------------------------------- */

att_status att_module_register(att_context *context, const att_module *module)
{
    if (!module)
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no module to register: the descriptor is NULL");
    ATT_TRY(att_catalog_check(&catalog, context, module->name));
    ATT_TRY(att_module_check(context, module));
    return att_catalog_add(&catalog, context, module);
}

/* --- from text ---------------------------------------------------------------------------------------------------- */

/* Refuses "cb,se", and writes how the list is written. */
static att_status fail_list(att_context *context, const char *names)
{
    char joined[128];
    snprintf(joined, sizeof joined, "%s", names);
    for (char *comma = strchr(joined, ','); comma; comma = strchr(comma, ','))
        *comma = '+';
    return att_fail(context, ATT_ERR_ARGUMENT, "\"%s\" is not a module; several are joined with +: %s", names, joined);
}

static att_status find_module(att_context *context, const char *name, const att_module **module)
{
    *module = att_module_find(context, name);
    if (*module)
        return ATT_OK;
    if (strchr(name, ','))
        return fail_list(context, name);
    const char *nearest = att_catalog_nearest(&catalog, context, name);
    if (nearest)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no module \"%s\"; did you mean \"%s\"?", name, nearest);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no module \"%s\"; attscope modules lists all", name);
}

/* Whether the text looks like blocks, as in "cb:0-5". */
static bool names_blocks(const char *text)
{
    return isdigit((unsigned char)*text) || strcmp(text, "all") == 0 || strncmp(text, "every", 5) == 0;
}

static att_detail_owner owner_of(const att_module *module)
{
    return (att_detail_owner){"module", module->name, module->options, module->option_count};
}

/* given: options that the text has set already */
static att_status set_option(att_context *context, att_module_choice *choice, bool given[ATT_MODULE_OPTIONS],
                             char *text)
{
    const char *name = choice->module->name;
    if (!strchr(text, '=') && names_blocks(text))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "module %s: \"%s\" is not option=value; blocks are written after a place: %s@PLACE:%s", name,
                        text, name, text);
    if (!strchr(text, '=') && att_module_find(context, text))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "module %s: \"%s\" is not option=value; several modules are joined with +", name, text);
    const att_detail_owner owner = owner_of(choice->module);
    return att_detail_set(context, &owner, text, given, choice->values);
}

att_status att_module_parse(att_context *context, const char *text, att_module_choice *choice)
{
    att_module_choice made = {0};
    char copy[128];
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return att_fail(context, ATT_ERR_ARGUMENT, "the text of a module has at most %zu bytes, which \"%s\" exceeds",
                        sizeof copy - 1, text);
    char *options = strchr(copy, ':');
    if (options)
        *options++ = '\0';
    if (strcmp(copy, "none") != 0) {
        ATT_TRY(find_module(context, copy, &made.module));
        const att_detail_owner owner = owner_of(made.module);
        att_details_start(&owner, made.values);
    } else if (options) {
        return att_fail(context, ATT_ERR_ARGUMENT, "module \"none\" has no options");
    }
    bool given[ATT_MODULE_OPTIONS] = {false};
    while (options) {
        char *next = strchr(options, ',');
        if (next)
            *next++ = '\0';
        ATT_TRY(set_option(context, &made, given, options));
        options = next;
    }
    *choice = made;
    return ATT_OK;
}

/* --- applying ------------------------------------------------------------------------------------------------------
 */

char *att_module_places_text(unsigned places, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
#define PLACE_TEXT(name, bit, rank, what)  \
    if ((places & (bit)) && length < size) \
        length += (size_t)snprintf(text + length, size - length, "%s%s", length ? " or " : "", what);
    ATT_MODULE_PLACE_LIST(PLACE_TEXT)
#undef PLACE_TEXT
    return text;
}

/* Returns the places whose values have this rank. */
static unsigned places_of_rank(int64_t wanted)
{
    unsigned places = 0;
#define PLACE_RANK(name, bit, rank, text) places |= wanted == (rank) ? (bit) : 0;
    ATT_MODULE_PLACE_LIST(PLACE_RANK)
#undef PLACE_RANK
    return places;
}

static att_value refuse_place(att_graph *graph, const att_module *module, att_shape branch)
{
    return att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_UNSUPPORTED,
                                          "module \"%s\" works on %s, and this network's branches are %s", module->name,
                                          att_module_places_text(module->places, (char[96]){0}, 96),
                                          att_shape_format(branch, (char[96]){0}, 96)));
}

static att_status check_shape(att_graph *graph, const att_module *module, att_shape branch, att_value changed)
{
    att_shape made = att_value_shape(graph, changed);
    if (att_shape_equal(made, branch))
        return ATT_OK;
    return att_fail(att_graph_context(graph), ATT_ERR_MISMATCH,
                    "module \"%s\" made %s of a branch %s, and must keep the shape", module->name,
                    att_shape_format(made, (char[96]){0}, 96), att_shape_format(branch, (char[96]){0}, 96));
}

/* Checks the names of the parameters from number `first` on; they identify the module in a checkpoint without metadata.
 */
static att_status check_parameters(const att_scope *own, const att_module *module, int first)
{
    att_context *context = att_graph_context(own->graph);
    const int count = att_graph_parameter_count(own->graph);
    const size_t length = strlen(own->path);
    bool named = count == first;
    for (int i = first; i < count; i++) {
        const char *name = att_graph_parameter_at(own->graph, i).name;
        if (strncmp(name, own->path, length) != 0 || name[length] != '.')
            return att_fail(context, ATT_ERR_MISMATCH,
                            "module \"%s\" declared the parameter \"%s\", and must declare all of them in its scope "
                            "\"%s\"",
                            module->name, name, own->path);
        named = named || (module->parameter && att_text_matches(module->parameter, name + length + 1));
    }
    return named ? ATT_OK
                 : att_fail(context, ATT_ERR_MISMATCH,
                            "module \"%s\" has parameters, and its `parameter` must name one of them", module->name);
}

att_value att_module_apply(const att_module_choice *choice, const att_scope *scope, const att_module_site *site)
{
    if (!choice->module)
        return site->branch;
    att_shape shape = att_value_shape(scope->graph, site->branch);
    if (site->branch != ATT_NONE && !(choice->module->places & places_of_rank(shape.rank)))
        return refuse_place(scope->graph, choice->module, shape);
    att_graph *graph = scope->graph;
    att_scope own = att_scope_in(scope, "%s", choice->module->scope);
    const int first = att_graph_parameter_count(graph);
    att_value changed = choice->module->apply(&own, choice->values, site);
    att_status status = att_graph_status(graph);
    if (status == ATT_OK)
        status = check_shape(graph, choice->module, shape, changed);
    if (status == ATT_OK)
        status = check_parameters(&own, choice->module, first);
    return status == ATT_OK ? changed : att_graph_fail(graph, status);
}

bool att_module_has_parameters(const att_module_choice *choice)
{
    const att_module *module = choice->module;
    return module->has_parameters ? module->has_parameters(choice->values) : module->parameter != NULL;
}
