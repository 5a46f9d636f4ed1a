/* In place of expression.c in a build without muParser. */
#include <math.h>

#include "base/core/error.h"
#include "lab/papers/ode/expression.h"

bool att_ode_is_builtin_name(const char *name)
{
    (void)name;
    return false;
}

att_status att_ode_expression_create(att_context *context, const char *text, att_ode_place where,
                                     const att_ode_name *names, int count, att_ode_expression **expression)
{
    (void)text, (void)names, (void)count, (void)expression;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: this build of attscope has no muParser for systems from files; install libmuparser-dev and "
                    "configure with -DATT_ODE=ON",
                    where.path);
}

double att_ode_expression_value(att_ode_expression *expression)
{
    (void)expression;
    return NAN;
}

void att_ode_expression_free(att_ode_expression *expression)
{
    (void)expression;
}
