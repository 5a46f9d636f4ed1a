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
static bool join(const att_scope *scope, const char *name, char *text, size_t size)
{
    int length = snprintf(text, size, "%s%s%s", scope->path, scope->path[0] ? "." : "", name);
    if (length >= 0 && (size_t)length < size)
        return true;
    fail_length(scope, name);
    return false;
}

att_scope att_scope_in(const att_scope *scope, const char *format, ...)
{
    att_scope below = {.graph = scope->graph};
    char name[sizeof below.path];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof name)
        fail_length(scope, name);
    else
        join(scope, name, below.path, sizeof below.path);
    return below;
}

void att_scope_enter(const att_scope *scope)
{
    att_graph_scope(scope->graph, scope->path);
}

att_value att_scope_parameter(const att_scope *scope, const char *name, att_shape shape, att_init init, bool decay)
{
    char full[sizeof scope->path];
    if (!join(scope, name, full, sizeof full))
        return ATT_NONE;
    return att_graph_parameter(scope->graph, full, shape, init, decay);
}

att_value att_scope_buffer(const att_scope *scope, const char *name, att_shape shape, double start)
{
    char full[sizeof scope->path];
    if (!join(scope, name, full, sizeof full))
        return ATT_NONE;
    return att_graph_buffer(scope->graph, full, shape, start);
}
