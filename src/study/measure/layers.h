/* measure/layers.h - for instruments that follow attention through all layers of a network (rollout.c, flow.c). */
#ifndef ATT_MEASURE_LAYERS_H
#define ATT_MEASURE_LAYERS_H

#include "study/measure/instrument.h"

/* The options of both instruments: where the way through the layers begins. */
enum { ATT_LAYERS_OPTIONS = 1 };
extern const att_detail att_layers_options[ATT_LAYERS_OPTIONS];
#define ATT_LAYERS_READING                                                                                             \
    "A = mean over heads (over both maps of a differential head), 0.5 A + 0.5 I for the skip connection, whose rows "  \
    "add up to 1; through every attention "                                                                            \
    "layer, "                                                                                                          \
    "all of N queries and N keys; from the class token (the first token), or from the mean over all tokens if there "  \
    "is "                                                                                                              \
    "none or with from=mean, as for networks with registers only; entropy, largest and centre: of the weights on the " \
    "tokens of the grid, divided by their sum; centre: on the middle half of rows and columns, of which uniform "      \
    "weights "                                                                                                         \
    "have 0.25; prefix: share of class token and registers; value vectors, norms and MLPs are not followed"

/* Requests y = follow(maps of all layers [L, N, N], from_mean), a row [N], and declares the statistics
 * att_layers_statistics. name: of the instrument. most_tokens: a larger N is refused. */
att_status att_layers_request(att_requests *requests, const char *name, int64_t most_tokens,
                              att_value (*follow)(att_graph *graph, att_value maps, bool from_mean));
void att_layers_observe(const att_observed *observed, double *values);
extern const att_statistic_info att_layers_statistics[];

#endif
