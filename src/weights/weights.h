/* weights/weights.h - the blocks that weights, slots and gradients lie in. */
#ifndef ATT_WEIGHTS_WEIGHTS_H
#define ATT_WEIGHTS_WEIGHTS_H

#include "backend/backend.h"
#include "graph/graph.h"

enum {
    ATT_WEIGHT_ALIGN = 16, /* elements */
    ATT_MAX_SLOTS = 8
};

/* Where the parameters of a graph lie in a block: offsets[i] is the first element of parameter i (order of
 * declaration); decayed parameters fill [0, decayed), the other trained ones [decayed, trained), buffers
 * [trained, elements). Gaps are zero and stay zero. */
typedef struct att_layout {
    int64_t *offsets;
    int64_t decayed, trained, elements;
} att_layout;

/* Values and slots, in one layout. */
typedef struct att_block {
    att_layout layout;
    void *values;
    struct {
        const char *name; /* in the arena of the weights that own the block */
        void *values;
    } slots[ATT_MAX_SLOTS];
    int slot_count;
    att_arena *arena;
    uint64_t version; /* counts changes of the values, so that sessions know when to run their prologue again */
} att_block;

/* Where a parameter lies. */
typedef struct att_parameter_place {
    int block;
    int64_t offset; /* elements */
} att_parameter_place;

struct att_weights {
    att_context *context;
    att_arena arena;
    const att_memory *memory;
    att_dtype dtype;
    const att_parameter_info *parameters; /* in order of declaration, part after part */
    const att_parameter_place *places;
    int count;
    att_block own;      /* of weights that are not joined */
    att_block **blocks; /* {&own}, or those of the parts */
    int block_count;
    bool covers; /* parameters of one part hide those of another: no gradient is laid out like this */
};

/* Of the values alone, all blocks together. */
size_t att_weights_bytes(const att_weights *weights);
size_t att_block_bytes(const att_weights *weights, const att_block *block);
/* The sum of the blocks' versions. */
uint64_t att_weights_version(const att_weights *weights);
/* The block's slot; NULL where there is none of that name. */
void *att_block_slot(const att_block *block, const char *name);

#endif
