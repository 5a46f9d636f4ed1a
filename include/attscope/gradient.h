/* attscope/gradient.h - the gradient of the loss with respect to every trained parameter of a weights object,
 * for programs that train a graph of their own.
 *
 * A gradient is a sum. Any number of sessions over the same weights can add to it, one after the other: several batches
 * per update (gradient accumulation), images of several sizes (one plan for each), several losses. An att_update then
 * applies the gradient (attscope/update.h). A gradient has the layout of its weights and lies in the memory of the same
 * backend.
 */
#ifndef ATTSCOPE_GRADIENT_H
#define ATTSCOPE_GRADIENT_H

#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_gradient att_gradient;

/* Creates a gradient of zeros. The weights must outlive it. On success the caller owns *gradient and frees it with
 * att_gradient_destroy(). Errors: ERR_ARGUMENT (weights for inference only), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_gradient_create(att_weights *weights, att_gradient **gradient);
ATT_API void att_gradient_destroy(att_gradient **gradient);

/* Sets the gradient to zero. Call it before the first accumulation of each update. */
ATT_API void att_gradient_begin(att_gradient *gradient);

/* Copies the gradient of parameter `index` (att_weights_at()) to `host`: `count` elements of the weights' type. Errors:
 * ERR_ARGUMENT if index or count is wrong, or the parameter is a buffer. */
ATT_API att_status att_gradient_get(const att_gradient *gradient, int index, void *host, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
