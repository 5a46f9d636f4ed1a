#include "study/train/freeze.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "engine/passes/passes.h"

/* What a pattern could mean: the names of parameters, and "SCOPE.*" for each scope. */
typedef struct names {
    att_arena arena;
    const char **items;
    int count, room;
    bool failed;
} names;

static void add_name(att_context *context, names *list, const char *name)
{
    for (int i = list->count - 1; i >= 0; i--)
        if (strcmp(list->items[i], name) == 0)
            return;
    const char *copy = att_arena_string(&list->arena, name);
    if (!copy || !att_list_grow(context, &list->items, list->count + 1, &list->room, sizeof *list->items))
        list->failed = true;
    else
        list->items[list->count++] = copy;
}

/* Adds a parameter's name and the patterns for the scopes around it. */
static void add_names(att_context *context, names *list, const char *name)
{
    char scope[256];
    add_name(context, list, name);
    for (const char *dot = strchr(name, '.'); dot && !list->failed; dot = strchr(dot + 1, '.')) {
        snprintf(scope, sizeof scope, "%.*s.*", (int)(dot - name), name);
        add_name(context, list, scope);
    }
}

static const char *name_at(const void *user, int index)
{
    return ((const names *)user)->items[index];
}

static att_status fail_unknown(att_context *context, const att_model *model, const char *pattern)
{
    const att_graph *graph = att_model_graph(model);
    names list = {.arena = {.context = context}};
    for (int i = 0; i < graph->parameters.count && !list.failed; i++)
        if (!graph->parameters.items[i].buffer)
            add_names(context, &list, graph->parameters.items[i].name);
    const char *nearest = att_text_nearest(pattern, name_at, &list, list.count);
    att_status status =
        list.failed ? att_fail_memory(context, sizeof(char *), "the names of parameters")
                    : att_fail(context, ATT_ERR_ARGUMENT,
                               "--freeze (train.freeze): \"%s\" matches no parameter of %s%s%s%s; attscope inspect "
                               "lists their names, and * stands for any characters",
                               pattern, att_model_name(model), nearest ? "; did you mean \"" : "",
                               nearest ? nearest : "", nearest ? "\"?" : "");
    att_free(context, list.items);
    att_arena_free(&list.arena);
    return status;
}

static att_status apply_pattern(att_context *context, const att_model *model, const char *pattern,
                                att_parameter_rates *rates)
{
    const att_graph *graph = att_model_graph(model);
    bool found = false;
    for (int i = 0; i < graph->parameters.count; i++) {
        const att_parameter_info *parameter = &graph->parameters.items[i];
        if (!att_text_matches_any(pattern, parameter->name))
            continue;
        rates[i].frozen = true;
        found = true;
    }
    return found ? ATT_OK : fail_unknown(context, model, pattern);
}

static att_status check_some_trained(att_context *context, const att_model *model, const char *patterns,
                                     const att_parameter_rates *rates)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < graph->parameters.count; i++)
        if (!graph->parameters.items[i].buffer && !rates[i].frozen)
            return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "--freeze (train.freeze) \"%s\" freezes every parameter of %s, so there is nothing to train; leave "
                    "out the head, for example",
                    patterns, att_model_name(model));
}

att_status att_freeze_apply(att_context *context, const att_model *model, const char *patterns,
                            att_parameter_rates *rates)
{
    static const char blanks[] = " \t\n,";
    char pattern[256];
    if (!patterns || !*patterns)
        return ATT_OK;
    for (const char *at = patterns + strspn(patterns, blanks); *at; at += strspn(at, blanks)) {
        const size_t length = strcspn(at, blanks);
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, at);
        ATT_TRY(apply_pattern(context, model, pattern, rates));
        at += length;
    }
    return check_some_trained(context, model, patterns, rates);
}

int att_freeze_count(const att_model *model, bool buffers, bool *frozen)
{
    const att_graph *graph = att_model_graph(model);
    int count = 0;
    for (int i = 0; i < graph->parameters.count; i++) {
        const att_parameter_info *parameter = &graph->parameters.items[i];
        char scope[256] = "";
        const char *dot = strrchr(parameter->name, '.');
        if (dot)
            snprintf(scope, sizeof scope, "%.*s", (int)(dot - parameter->name), parameter->name);
        if (!parameter->buffer)
            count += frozen[i];
        else if (buffers)
            frozen[i] = frozen[i] || att_scope_is_frozen(graph, frozen, scope, false);
    }
    return count;
}
