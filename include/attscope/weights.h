/* attscope/weights.h - the values of a graph's parameters, and what an optimiser keeps beside each.
 *
 * The parameters lie in one block (joined weights: one for each part): those with weight decay, then other trained
 * ones, then buffers; each begins on a multiple of 16 elements. A slot is a second block of the same layout: "exp_avg",
 * "momentum_buffer", "ema". A gradient (attscope/gradient.h) is laid out likewise. A weights object is shared by
 * any number of sessions, gradients and updates, used one after the other; it must outlive them. It lives where its
 * backend says; copies in and out are the only way to its contents.
 */
#ifndef ATTSCOPE_WEIGHTS_H
#define ATTSCOPE_WEIGHTS_H

#include <attscope/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_weights att_weights;

/* Space for the graph's parameters (contents zero), in the memory of a backend: "cpu" and "ref" share theirs. Errors:
 * ERR_NOT_FOUND (no such backend), ERR_MEMORY, the graph's own failure. */
ATT_API ATT_MUST_CHECK att_status att_weights_create(const att_graph *graph, const char *backend,
                                                     att_weights **weights);
ATT_API void att_weights_destroy(att_weights **weights);

/* Weights that consist of others, so that plans and updates see them as one: a backbone's and a head's, say. They hold
 * nothing themselves: parameters come part after part, and the parts, whose names must differ (ERR_ARGUMENT), must
 * outlive them. Slots are those of the first part; adding one adds it to every part. part_count is at least 1 (else
 * ERR_ARGUMENT, without a message: there is no context). Errors: ERR_MISMATCH (parts of different types, or in
 * different memories), ERR_MEMORY. att_parameter_info.value means nothing here. */
ATT_API ATT_MUST_CHECK att_status att_weights_join(att_weights *const *parts, int part_count, att_weights **joined);

/* As att_weights_join(), of two parts that may share names: a parameter that both have is that of `over`, in whatever
 * shape. For inference: att_gradient_create() refuses the result (ERR_ARGUMENT). */
ATT_API ATT_MUST_CHECK att_status att_weights_cover(att_weights *base, att_weights *over, att_weights **covered);

/* Fills every parameter by its att_init from `seed`; slots become zero. */
ATT_API att_status att_weights_initialise(att_weights *weights, uint64_t seed);

ATT_API int att_weights_count(const att_weights *weights);
/* name and shape of parameter `index` in the graph's order of declaration. */
ATT_API att_parameter_info att_weights_at(const att_weights *weights, int index);
/* Index of a name, -1 where there is none. */
ATT_API int att_weights_find(const att_weights *weights, const char *name);

/* Adds a slot of zeros under `name`, or keeps the one that is there. Errors: ERR_ARGUMENT where there are 8 slots
 * already, ERR_MEMORY. */
ATT_API att_status att_weights_add_slot(att_weights *weights, const char *name);
ATT_API int att_weights_slot_count(const att_weights *weights);
ATT_API const char *att_weights_slot_name(const att_weights *weights, int slot);

/* Copy parameter `index` (slot = -1) or its element of a slot in from, or out to, `host`: `count` elements of the
 * graph's type. Errors: ERR_ARGUMENT where index, slot or count is wrong. */
ATT_API att_status att_weights_set(att_weights *weights, int slot, int index, const void *host, int64_t count);
ATT_API att_status att_weights_get(const att_weights *weights, int slot, int index, void *host, int64_t count);

/* The bits of all parameters, without slots, as 16 hexadecimal digits: the same for the same network with the same
 * weights. ERR_MEMORY. */
enum { ATT_WEIGHTS_DIGEST = 17 };
ATT_API ATT_MUST_CHECK att_status att_weights_digest(const att_weights *weights, char text[ATT_WEIGHTS_DIGEST]);

#ifdef __cplusplus
}
#endif
#endif
