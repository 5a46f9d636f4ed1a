/* measure/positions.h - splits values before the first attention into parts of content, positions and biases.
 *
 * Tokens x = c + P have positions P if an addition of a shared value [N, C] (a position embedding) computes them. The
 * functions follow a value back to that addition, through prefix tokens, layer norms, linear layers and reshapes. These
 * are linear, except for layer norm, whose statistics (mean and deviation of the whole token) are kept. */
#ifndef ATT_MEASURE_POSITIONS_H
#define ATT_MEASURE_POSITIONS_H

#include <attscope/graph.h>

/* Whether the value can be split. */
bool att_has_positions(const att_graph *graph, att_value value);

/* The part of a value that comes from the positions: a sample value of its shape. ATT_NONE after a failure of the
 * graph.
 */
att_value att_part_of_positions(att_graph *graph, att_value value);

/* The part that is there without content and positions: from biases of layer norms and linear layers. */
att_value att_part_of_biases(att_graph *graph, att_value value);

#endif
