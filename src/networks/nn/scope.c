#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"

att_scope att_scope_root(att_graph *graph)
{
    return (att_scope){.graph = graph};
}

static void fail_length(const att_scope *scope, const char *name)
{
    att_graph_fail(scope->graph,
                   att_fail(att_graph_context(scope->graph), ATT_ERR_ARGUMENT,
                            "the name \"%s.%s\" is longer than %zu bytes", scope->path, name, sizeof scope->path - 1));
}

/* Writes "<path>.<name>". If it does not fit, the graph fails and the result is false. */
static bool join(const att_scope *scope, const char *path, const char *name, char *text, size_t size)
{
    int length = snprintf(text, size, "%s%s%s", path, path[0] ? "." : "", name);
    if (length >= 0 && (size_t)length < size)
        return true;
    fail_length(scope, name);
    return false;
}

att_scope att_scope_in(const att_scope *scope, const char *format, ...)
{
    att_scope below = *scope;
    char name[sizeof below.path];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof name)
        fail_length(scope, name);
    else
        join(scope, scope->path, name, below.path, sizeof below.path);
    return below;
}

void att_scope_enter(const att_scope *scope)
{
    att_graph_scope(scope->graph, scope->path);
}

/* The parameter or buffer that the graph has. */
static att_value find(att_graph *graph, const char *name, att_shape shape)
{
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    for (int i = 0; i < graph->parameters.count; i++) {
        const att_parameter_info *found = &graph->parameters.items[i];
        char has[96], wanted[96];
        if (strcmp(found->name, name) != 0)
            continue;
        return att_shape_equal(found->shape, shape)
                   ? found->value
                   : att_graph_fail(graph, att_fail(graph->context, ATT_ERR_MISMATCH,
                                                    "the parameter \"%s\" has the shape %s, but is read as %s", name,
                                                    att_shape_format(found->shape, has, sizeof has),
                                                    att_shape_format(shape, wanted, sizeof wanted)));
    }
    return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_NOT_FOUND, "there is no parameter \"%s\"", name));
}

/* The name of a parameter or buffer of the scope. */
static bool name_parameter(const att_scope *scope, const char *name, char *text, size_t size)
{
    char path[sizeof scope->source + sizeof scope->path];
    snprintf(path, sizeof path, "%s%s", scope->source, scope->path + (scope->source[0] ? scope->replaced : 0));
    return join(scope, path, name, text, size);
}

att_value att_scope_parameter(const att_scope *scope, const char *name, att_shape shape, att_init init, bool decay)
{
    char full[sizeof scope->path];
    if (!name_parameter(scope, name, full, sizeof full))
        return ATT_NONE;
    return scope->again ? find(scope->graph, full, shape) : att_graph_parameter(scope->graph, full, shape, init, decay);
}

att_value att_scope_buffer(const att_scope *scope, const char *name, att_shape shape, double start)
{
    char full[sizeof scope->path];
    if (!name_parameter(scope, name, full, sizeof full))
        return ATT_NONE;
    return scope->again ? find(scope->graph, full, shape) : att_graph_buffer(scope->graph, full, shape, start);
}
