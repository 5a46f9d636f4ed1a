/* train/layer_decay.h - layer-wise learning rates (Clark et al. 2020; as timm's param_groups_layer_decay()). */
#ifndef ATT_TRAIN_LAYER_DECAY_H
#define ATT_TRAIN_LAYER_DECAY_H

#include <attscope/models.h>
#include <attscope/train.h>
#include <attscope/update.h>

/* What layer-wise learning rates change. All 0 if they are off. */
typedef struct att_layer_decay {
    int layers;      /* stem, blocks and head */
    double smallest; /* factor of a learning rate that is not frozen; the head's is the largest, 1 */
} att_layer_decay;

/* Sets the factors `lr` and the flags `frozen` of the parameters. rates: one for each parameter, in the order of
 * att_weights_at(); their other members are unchanged. Does nothing if options->layer_decay is 0. Error: ERR_MEMORY. */
att_status att_layer_decay_apply(att_context *context, const att_model *model, const att_train_options *options,
                                 const att_weights *weights, att_parameter_rates *rates, att_layer_decay *applied);

#endif
