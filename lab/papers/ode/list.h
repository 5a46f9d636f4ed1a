/* ode/list.h - the systems with names and the methods, in the order of help. A new one is one line here. */
#ifndef ATT_ODE_LIST_H
#define ATT_ODE_LIST_H

#include "lab/papers/ode/method.h"
#include "lab/papers/ode/system.h"

#define ATT_ODE_KIND_LIST(X) \
    X(linear)                \
    X(heat)                  \
    X(vanderpol)             \
    X(robertson)

#define ATT_ODE_METHOD_LIST(X) \
    X(euler)                   \
    X(rk4)                     \
    X(rkf45)                   \
    X(bdf)

#define ATT_ODE_KIND_DECLARE(name) extern const att_ode_kind att_ode_kind_##name;
ATT_ODE_KIND_LIST(ATT_ODE_KIND_DECLARE)
#undef ATT_ODE_KIND_DECLARE

#define ATT_ODE_METHOD_DECLARE(name) extern const att_ode_method att_ode_method_##name;
ATT_ODE_METHOD_LIST(ATT_ODE_METHOD_DECLARE)
#undef ATT_ODE_METHOD_DECLARE

#endif
