/* weights/weights.h - the block layout that weights, slots and gradient lanes share. */
#ifndef ATT_WEIGHTS_WEIGHTS_H
#define ATT_WEIGHTS_WEIGHTS_H

#include "backend/backend.h"
#include "graph/graph.h"

enum {
    ATT_WEIGHT_ALIGN = 16, /* elements */
    ATT_MAX_SLOTS = 8
};

/* offsets[i]: first element of parameter i (order of declaration); decayed parameters fill [0, decayed), the other
 * trained ones [decayed, trained), buffers [trained, elements). Gaps are zero and stay zero. */
typedef struct att_layout {
    int64_t *offsets;
    int64_t decayed, trained, elements;
} att_layout;

/* *layout's offsets come from `arena`. */
att_status att_layout_make(const att_graph *graph, att_arena *arena, att_layout *layout);

struct att_weights {
    att_context *context;
    att_arena arena;
    const att_memory *memory;
    att_dtype dtype;
    const att_parameter_info *parameters; /* in order of declaration */
    int count;
    att_layout layout;
    void *values;
    struct {
        const char *name;
        void *values;
    } slots[ATT_MAX_SLOTS];
    int slot_count;
    uint64_t version; /* counts changes of the values, so that sessions know when to pack again */
};

size_t att_weights_bytes(const att_weights *weights);
/* The slot's block; NULL where there is none of that name. */
void *att_weights_slot(att_weights *weights, const char *name);

#endif
