/* bench/inputs.h - random inputs of a graph. */
#ifndef ATT_BENCH_INPUTS_H
#define ATT_BENCH_INPUTS_H

#include <attscope/task.h>

#include "base/core/random.h"

/* Writes input `index` of the graph for `rows` samples: reals uniform in [-1, 1), integers in [0, classes), or 0
 * without classes. Texts have no padding, tokens in [0, vocabulary), and types 0. Of a task (NULL: none), its image
 * size is that of the whole image, and each image has some true boxes. */
void att_bench_fill(att_random *random, const att_graph *graph, int index, const att_task *task, int rows, int classes,
                    int vocabulary, void *input);

#endif
