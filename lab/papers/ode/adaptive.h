/* ode/adaptive.h - what the methods of SUNDIALS are, in builds with and without it. */
#ifndef ATT_ODE_ADAPTIVE_H
#define ATT_ODE_ADAPTIVE_H

#include <math.h>

#define ATT_ODE_RKF45_INFO                                                                                    \
    .name = "rkf45", .title = "Runge-Kutta-Fehlberg 4(5), order 5, adaptive",                                 \
    .source =                                                                                                 \
        "SUNDIALS ARKODE, ARKODE_FEHLBERG_6_4_5; stable for h |lambda| <= 3.678, the root of |1 + z + ... + " \
        "z^5/120 + z^6/2080| = 1",                                                                            \
    .adaptive = true, .limit = 3.67771
#define ATT_ODE_BDF_INFO                                                                                   \
    .name = "bdf", .title = "backward differentiation, order 1 to 5, adaptive, implicit",                  \
    .source = "SUNDIALS CVODE, CV_BDF, Newton with the dense Jacobian; stable on the whole negative axis", \
    .adaptive = true, .limit = INFINITY

#endif
