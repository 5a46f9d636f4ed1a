/* ode/system.h - a system of differential equations, and the descriptor of a kind of systems. */
#ifndef ATT_ODE_SYSTEM_H
#define ATT_ODE_SYSTEM_H

#include <attscope/lab/ode.h>

#include "base/core/memory.h"
#include "base/spectrum/spectrum.h"

struct att_ode {
    att_context *context;
    att_arena arena; /* owns the memory of all members */
    att_ode_info info;
    double *initial;          /* u at the start of the interval, [size] */
    double *scratch;          /* [3 size], for att_ode_product() */
    const char *const *names; /* of the components; u1, u2, ... by att_ode_allocate() */
    void *data;               /* of the kind */
    /* du = f(t, u) */
    void (*rate)(att_ode *ode, double t, const double *u, double *du);
    /* jv = J v at (t, u). NULL: differences. */
    void (*product)(att_ode *ode, double t, const double *u, const double *v, double *jv);
    void (*exact)(att_ode *ode, double t, double *u); /* NULL: unknown */
    void (*close)(att_ode *ode);                      /* frees what the arena does not own; NULL: nothing */
    att_spectrum_ends ends;                           /* if info.constant, after the first att_ode_spectrum() */
    bool has_ends;
};

/* A kind of systems. Its file ends in a constant of this type; list.h lists it. */
typedef struct att_ode_kind {
    const char *name, *formula, *source;
    /* Fills all but info.name, formula, source. Calls att_ode_allocate() first. What it leaves after a failure is freed
     * by the caller. */
    att_status (*create)(att_ode *ode, const att_ode_settings *settings);
} att_ode_kind;

/* Sets size and names, and allocates `initial` and `scratch`. */
att_status att_ode_allocate(att_ode *ode, int size);
/* Zeroed memory of the arena. */
att_status att_ode_allocate_array(att_ode *ode, size_t count, size_t size, void *array_at);
/* A system from a file (file.c). */
att_status att_ode_from_file(att_ode *ode, const char *path);
/* Reads a square matrix (matrix.c) into the arena. */
att_status att_ode_read_matrix(att_ode *ode, const char *path, int *size, double **matrix);

/* jv = J v at (t, u). Error: ERR_NONFINITE. */
att_status att_ode_product(att_ode *ode, double t, const double *u, const double *v, double *jv);
double att_ode_norm(const double *u, int size);

/* du = f(t, u). Error: ERR_NONFINITE, naming the component. */
att_status att_ode_rate(att_ode *ode, double t, const double *u, double *du);
/* The Jacobian [size, size] row by row: exact for systems with names; central differences with a step of 6e-6
 * max(|u_j|, 1) for systems from files. Error: ERR_NONFINITE. */
att_status att_ode_jacobian(att_ode *ode, double t, const double *u, double *jacobian);
/* Both ends of the spectrum of J at u. */
att_status att_ode_spectrum(att_ode *ode, double t, const double *u, att_spectrum_ends *ends);
/* The solution at t in closed form. ERR_UNSUPPORTED if it is not known. */
att_status att_ode_exact(att_ode *ode, double t, double *u);

#endif
