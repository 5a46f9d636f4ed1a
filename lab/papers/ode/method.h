/* ode/method.h - the descriptor of a method, and a run that it advances step by step. */
#ifndef ATT_ODE_METHOD_H
#define ATT_ODE_METHOD_H

#include "lab/papers/ode/system.h"

typedef struct att_ode_advance {
    att_ode *ode;
    const att_ode_options *options;
    att_ode_trajectory *trajectory; /* trajectory->state and t are where the run is */
    double limit;                   /* of the method; see att_ode_method_info */
    double bound;                   /* of the state's norm */
    int64_t capacity;
} att_ode_advance;

/* A method. Its file ends in a constant of this type; list.h lists it. */
typedef struct att_ode_method {
    att_ode_method_info info;
    /* Calls att_ode_accept() for each step until att_ode_is_finished(). Adds to rejected and rate_calls. */
    att_status (*run)(att_ode_advance *run);
} att_ode_method;

/* Records the step of size h from the present state to `next`, which becomes the present state. */
att_status att_ode_accept(att_ode_advance *run, double h, const double *next);
bool att_ode_is_finished(const att_ode_advance *run);

/* The state at the end of the interval, by RK4 with so many steps that twice as many change it by at most 1e-9 of
 * *unit, which is that of att_ode_reference(). ERR_UNSUPPORTED if that needs more than 2^24 steps / size (fixed.c). */
att_status att_ode_refine(att_ode *ode, double *u, double *unit);
/* The unit of att_ode_reference(). largest: the norm of the reference on its way. */
double att_ode_error_unit(const double *u, double largest, int size);

#endif
