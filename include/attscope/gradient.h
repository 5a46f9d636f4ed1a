/* attscope/gradient.h - the gradient of the loss by every trained parameter of some weights.
 *
 * A gradient is a sum. Any number of sessions over the same weights add to it, one after the other: batches that do not
 * fit into memory at once, images of several sizes (a plan for each), several losses. Then an att_update applies it
 * (attscope/update.h). It is laid out as the weights are and lives in their memory.
 */
#ifndef ATTSCOPE_GRADIENT_H
#define ATTSCOPE_GRADIENT_H

#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_gradient att_gradient;

/* Creates a gradient that is zero for every trained parameter. The weights must outlive it. On success *gradient is the
 * caller's. Errors: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_gradient_create(att_weights *weights, att_gradient **gradient);
ATT_API void att_gradient_destroy(att_gradient **gradient);

/* Sets the gradient to zero. Call it before the first accumulation of each update. */
ATT_API void att_gradient_begin(att_gradient *gradient);

/* Copies the gradient of parameter `index` of the weights to `host`: `count` elements of the weights' type. Errors:
 * ERR_ARGUMENT where index or count is wrong or the parameter is a buffer. */
ATT_API att_status att_gradient_get(const att_gradient *gradient, int index, void *host, int64_t count);

/* Adds `host` to the gradient of parameter `index`, element by element: a penalty on the weights, or what was computed
 * outside of any plan. Errors: as att_gradient_get(), and ERR_MEMORY. */
ATT_API att_status att_gradient_add(att_gradient *gradient, int index, const void *host, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
