/* In place of sundials.c in a build without SUNDIALS. */
#include "lab/papers/ode/adaptive.h"
#include "lab/papers/ode/method.h"

#define ABSENT \
    "this build of attscope has no SUNDIALS; install SUNDIALS 6 (libsundials-dev) and configure with -DATT_ODE=ON"

const att_ode_method att_ode_method_rkf45 = {.info = {ATT_ODE_RKF45_INFO, .available = ABSENT}};
const att_ode_method att_ode_method_bdf = {.info = {ATT_ODE_BDF_INFO, .available = ABSENT}};
