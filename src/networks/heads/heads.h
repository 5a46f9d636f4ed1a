/* heads/heads.h - heads of dense tasks: they turn a network's features into a map of answers. */
#ifndef ATT_HEADS_HEADS_H
#define ATT_HEADS_HEADS_H

#include <attscope/task.h>

/* The linear head of DINOv2's segmentation (Oquab et al. 2024; BNHead of its code): batch norm, dropout with the
 * backbone's drop_rate, then a linear layer for each place. It reads the stages whose map has the size of the last one,
 * with their channels side by side, the first stage first: of a ViT all blocks that the task taps, of a network that
 * shrinks its map from stage to stage the last one. Returns [h, w, outputs]. Fails the graph (ERR_UNSUPPORTED) if the
 * network has no stages. Parameters: bn.weight, bn.bias, linear.weight and linear.bias (att_nn_linear()); the buffers
 * of bn.
 */
att_value att_head_linear(const att_scope *scope, const att_backbone *backbone, int64_t outputs);

#endif
