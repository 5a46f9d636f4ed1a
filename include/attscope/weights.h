/* attscope/weights.h - the values of a graph's parameters, which a program reads and sets, and the optimiser's state
 * for each of them.
 *
 * All parameters lie in one block of memory: those with weight decay, then the other trained ones, then buffers. Each
 * begins at a multiple of 16 elements. A slot is a further block with the same layout, such as "exp_avg",
 * "momentum_buffer" or "ema". A gradient (attscope/gradient.h) has this layout too.
 *
 * Any number of sessions, gradients and updates may use one weights object, one after the other; the weights must
 * outlive them. The memory belongs to a backend; att_weights_get() and att_weights_set() are the only access to the
 * contents.
 */
#ifndef ATTSCOPE_WEIGHTS_H
#define ATTSCOPE_WEIGHTS_H

#include <attscope/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_weights att_weights;

/* Allocates the graph's parameters, filled with zeros, in the memory of `backend` ("cpu" and "ref" use the same
 * memory). On success the caller owns *weights. Errors: ERR_NOT_FOUND (no such backend), ERR_UNSUPPORTED ("cuda" is not
 * installed, or there is no GPU), ERR_MEMORY, and the graph's own failure (att_graph_status()). */
ATT_API ATT_MUST_CHECK att_status att_weights_create(const att_graph *graph, const char *backend,
                                                     att_weights **weights);
ATT_API void att_weights_destroy(att_weights **weights);

/* Sets every parameter to the initial values of its att_init, drawn from `seed`, and every slot to zero. Returns
 * ATT_OK. */
ATT_API att_status att_weights_initialise(att_weights *weights, uint64_t seed);

/* Returns the number of parameters and buffers. */
ATT_API int att_weights_count(const att_weights *weights);
/* Returns parameter `index` (0..count-1) in the graph's order of declaration. Its name lives as long as the weights. */
ATT_API att_parameter_info att_weights_at(const att_weights *weights, int index);
/* Returns the index of the parameter `name`, -1 if there is none. */
ATT_API int att_weights_find(const att_weights *weights, const char *name);

/* Copy the values of parameter `index` from `host` or to `host`: `count` elements of the graph's type. slot: -1 for the
 * parameter itself, else the index of a slot. Errors: ERR_ARGUMENT if index, slot or count is wrong. */
ATT_API att_status att_weights_set(att_weights *weights, int slot, int index, const void *host, int64_t count);
ATT_API att_status att_weights_get(const att_weights *weights, int slot, int index, void *host, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
