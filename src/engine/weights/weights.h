/* weights/weights.h - the blocks of memory for weights, slots and gradients. */
#ifndef ATT_WEIGHTS_WEIGHTS_H
#define ATT_WEIGHTS_WEIGHTS_H

#include "engine/backend/backend.h"
#include "engine/graph/graph.h"

enum {
    ATT_WEIGHT_ALIGN = 16, /* in elements */
    ATT_MAX_SLOTS = 8
};

/* Positions of a graph's parameters in a block. offsets[i]: first element of parameter i, in order of declaration; -1:
 * it is frozen and has no place in this slot or gradient. Decayed parameters are in [0, decayed), other trained
 * parameters in [decayed, trained), buffers in [trained, elements). Padding is zero and stays zero. */
typedef struct att_layout {
    int64_t *offsets;
    int count; /* of parameters */
    int64_t decayed, trained, elements;
} att_layout;

/* Sets all values of weights as they are, with att_weights_set(). */
typedef att_status (*att_weights_make_fn)(void *user, struct att_weights *weights);

/* Values, and slots, which have the values' layout without frozen parameters. */
typedef struct att_block {
    att_layout layout;
    void *values;
    struct att_weights *owner;
    struct {
        const char *name; /* in the arena of the weights */
        const att_layout *layout;
        void *values;
    } slots[ATT_MAX_SLOTS];
    int slot_count;
    uint64_t version; /* counts changes of the values, so that sessions know when to run their prologue again */
    /* See att_weights_set_source(). made: the version that make() makes; seed: of att_weights_initialise(). */
    att_weights_make_fn make;
    void *make_user;
    uint64_t made, seed;
    const void *given_back_by; /* NULL: all values are there */
    bool kept;                 /* nothing is given back */
} att_block;

/* Position of a parameter. */
typedef struct att_parameter_place {
    int block;
    int64_t offset; /* in elements */
} att_parameter_place;

struct att_weights {
    att_context *context;
    att_arena arena;
    const att_memory *memory;
    att_dtype dtype;
    const att_parameter_info *parameters; /* in order of declaration, part after part */
    const att_parameter_place *places;
    int count;
    att_block own;      /* unused by overlaid weights */
    att_block **blocks; /* {&own}, or the blocks of the parts */
    int block_count;
    bool overlaid; /* Parameters of one part hide those of another. Such weights cannot have a gradient. */
};

/* weights/nonfinite.c: fails with ERR_NONFINITE because results of the weights are not finite. what: the first part of
 * the message, such as "the network's outputs contain NaN or infinity". The message goes on with the first parameter
 * that has such values, their number, and the number of other such parameters; or says that all weights are finite.
 * Other errors: ERR_MEMORY, those of att_weights_get(). */
att_status att_weights_fail_nonfinite(const att_weights *weights, const char *what);
/* Counts NaN and infinity among `count` values of type ATT_F32 or ATT_F64. */
int64_t att_count_nonfinite(const void *values, att_dtype dtype, int64_t count);

/* Bytes of the values of all blocks, without slots; of values and slots. */
ATT_FOR_LAB size_t att_weights_bytes(const att_weights *weights);
ATT_FOR_LAB size_t att_weights_held_bytes(const att_weights *weights);
size_t att_block_bytes(const att_weights *weights, const att_block *block);
/* The sum of the blocks' versions. */
uint64_t att_weights_version(const att_weights *weights);

/* Finds the layout of slots and gradients without the frozen parameters and buffers: that of the values if nothing is
 * frozen. frozen: by parameter; NULL: none. *layout lives as long as the weights. Error: ERR_MEMORY. */
att_status att_weights_layout(att_weights *weights, const bool *frozen, const att_layout **layout);
/* The values of parameter `index` in the slot `name` of weights that are not overlaid; NULL if there is none. */
char *att_weights_slot_at(const att_weights *weights, const char *name, int index);
bool att_weights_has_slot(const att_weights *weights, const char *name);
/* Whether the slot holds values of the parameter, which is not frozen then. att_weights_get() of the slot "ema" returns
 * the value of a frozen parameter itself. */
bool att_weights_in_slot(const att_weights *weights, int slot, int index);

/* weights/source.c: gives memory back. A session that reads a parameter only to pack it may give the parameter's memory
 * back (att_discard()), if the values can be made again: by att_weights_initialise(), or after att_weights_set_source()
 * by make(), until the values change. Whoever reads or changes values calls att_weights_complete() before, as
 * att_weights_get(), att_weights_set() and sessions do. It makes the values again, and then they stay. */
void att_weights_set_source(att_weights *weights, att_weights_make_fn make, void *user);
/* Whether there is a source: what loads the weights from now on does so again. */
bool att_weights_has_source(const att_weights *weights);
/* Nothing is given back from now on: the values will be trained. */
void att_weights_keep(att_weights *weights);
/* Errors: those of make(). */
att_status att_weights_complete(const att_weights *weights);
/* Notes that `by`, a session, will give back values of the blocks that allow it. */
void att_weights_give_back(const att_weights *weights, const void *by);
/* Whether att_weights_give_back() has noted `by` for the block of parameter `index`. */
bool att_weights_given_back(const att_weights *weights, int index, const void *by);
/* Whether another session than `reader` has given values back; NULL: whether any has. */
bool att_weights_lack(const att_weights *weights, const void *reader);

/* Combines two weights objects, so that plans see a single one, which refers to both and holds no values itself. Where
 * both have a parameter of one name, that of `over` is used, whatever its shape. att_parameter_info.value has no
 * meaning here. On success the caller owns *covered; both parts must outlive it. For inference only:
 * att_gradient_create() refuses the result (ERR_ARGUMENT). Errors: ERR_MISMATCH (parts of different types, or in
 * different memories), ERR_MEMORY. */
ATT_MUST_CHECK att_status att_weights_overlay(att_weights *base, att_weights *over, att_weights **covered);

/* Adds a slot of zeros called `name` to weights that are not overlaid. An existing slot of that name is kept with its
 * values if it has this layout, and replaced if not. Errors: ERR_ARGUMENT if there are 8 slots already, ERR_MEMORY. */
att_status att_weights_add_slot(att_weights *weights, const char *name, const att_layout *layout);
/* Number of slots; name of slot 0..count-1, which lives as long as the weights. */
int att_weights_slot_count(const att_weights *weights);
const char *att_weights_slot_name(const att_weights *weights, int slot);

/* Writes a hash of all parameters without the slots, as 16 hexadecimal digits. The same network with the same weights
 * has the same digest, in a graph in f64 too if all its weights are exact in f32. Errors: ERR_MEMORY. */
enum { ATT_WEIGHTS_DIGEST = 17 };
ATT_FOR_LAB ATT_MUST_CHECK att_status att_weights_digest(const att_weights *weights, char text[ATT_WEIGHTS_DIGEST]);

#endif
