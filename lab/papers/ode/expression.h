/* ode/expression.h - expressions of a system from a file, computed by muParser. */
#ifndef ATT_ODE_EXPRESSION_H
#define ATT_ODE_EXPRESSION_H

#include "lab/papers/ode/system.h"

typedef struct att_ode_expression att_ode_expression;

/* A name that expressions may use, and where its value is. */
typedef struct att_ode_name {
    const char *name;
    double *value;
} att_ode_name;

/* Whether the name is one of the parser's own functions or constants. */
bool att_ode_is_builtin_name(const char *name);

/* Compiles the text. where: path, line and column of the text in its file, for messages. On success the caller frees
 * *expression with att_ode_expression_free(). Errors: ERR_FORMAT, ERR_UNSUPPORTED (no muParser), ERR_MEMORY. */
typedef struct att_ode_place {
    const char *path;
    int line, column;
} att_ode_place;
att_status att_ode_expression_create(att_context *context, const char *text, att_ode_place where,
                                     const att_ode_name *names, int count, att_ode_expression **expression);
/* The value for the present values of the names; NaN if it is not defined. */
double att_ode_expression_value(att_ode_expression *expression);
/* NULL is allowed. */
void att_ode_expression_free(att_ode_expression *expression);

#endif
