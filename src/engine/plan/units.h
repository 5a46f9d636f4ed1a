/* plan/units.h - the kernels of a plan or an update, prepared for their problems. */
#ifndef ATT_PLAN_UNITS_H
#define ATT_PLAN_UNITS_H

#include "engine/backend/backend.h"
#include "engine/graph/graph.h"

/* A kernel prepared for one problem. Steps with equal problems share a unit. */
typedef struct att_unit {
    const att_kernel *kernel;
    att_problem problem;
    att_prepared prepared;
    double flops, bytes; /* of one call; bytes: read and written, each value once */
    int profile_row;
    struct att_unit *next;
} att_unit;

/* Zero before att_units_init(); att_units_release() accepts zeroed and initialised units. */
typedef struct att_units {
    att_context *context;
    att_arena *arena; /* holds everything that lives as long as the units */
    const att_backend *backend;
    att_unit *first;
    int most_operands;                  /* the most inputs and outputs of any unit */
    const att_kernel **profile_kernels; /* by profile row */
    int profile_count;
} att_units;

att_status att_units_init(att_units *units, att_arena *arena, const att_backend *backend);
void att_units_release(att_units *units);

/* Finds or creates the unit of a node for groups of `group` samples and `parts` threads. readers: by value; outputs
 * without readers are absent. */
att_status att_prepare_unit(att_units *units, const att_graph *graph, const att_node *node, const int *readers,
                            int group, int parts, att_unit **unit);
/* Finds or creates the unit of an op on values that belong to no graph. */
att_status att_prepare_flat(att_units *units, const char *op, const void *attrs, const att_desc *in, int in_count,
                            const att_desc *out, int out_count, int parts, att_unit **unit);

#endif
