/* plan/units.h - kernels prepared for the problems of a plan or an update. */
#ifndef ATT_PLAN_UNITS_H
#define ATT_PLAN_UNITS_H

#include "backend/backend.h"
#include "graph/graph.h"

/* A kernel prepared for one problem; several steps with equal problems share it. */
typedef struct att_unit {
    const att_kernel *kernel;
    att_problem problem;
    att_prepared prepared;
    double flops, bytes; /* of one call; bytes: read and written, each value once */
    int profile_row;
    struct att_unit *next;
} att_unit;

/* Zero before att_units_init(), and then fit for att_units_release(). */
typedef struct att_units {
    att_context *context;
    att_arena *arena; /* of what lives as long as the units */
    const att_backend *backend;
    att_unit *first;
    int most_operands;                  /* inputs and outputs of a unit */
    const att_kernel **profile_kernels; /* by profile row */
    int profile_count;
} att_units;

att_status att_units_init(att_units *units, att_arena *arena, const att_backend *backend);
void att_units_release(att_units *units);

/* The unit of a node for `group` samples, shared by `parts` threads. readers: by value; outputs without readers are
 * absent. */
att_status att_prepare_unit(att_units *units, const att_graph *graph, const att_node *node, const int *readers,
                            int group, int parts, att_unit **unit);
/* The unit of an op on values that belong to no graph. */
att_status att_prepare_flat(att_units *units, const char *op, const void *attrs, const att_desc *in, int in_count,
                            const att_desc *out, int out_count, int parts, att_unit **unit);

#endif
