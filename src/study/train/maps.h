/* train/maps.h - attention maps of several images, between their computation (maps.c) and their file (maps_file.c). */
#ifndef ATT_TRAIN_MAPS_H
#define ATT_TRAIN_MAPS_H

#include <attscope/maps.h>

#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "networks/tasks/caption.h"
#include "study/train/inference.h"

enum { ATT_MAP_NAME = 256 };

typedef struct att_mapped_node {
    char patches_name[ATT_MAP_NAME], prefix_name[ATT_MAP_NAME], figures_name[ATT_MAP_NAME], place_name[ATT_MAP_NAME];
    const char *scope;                /* owned by the graph */
    const att_attention_attrs *attrs; /* owned by the graph */
    int64_t heads, tokens, prefix_tokens;
    int64_t keys;           /* of a query: tokens of its window, or all tokens */
    int64_t ring;           /* tokens around the grid on each side, which are keys, too; they are left out */
    int32_t *window, *self; /* [tokens]: the query's window, and its own number among the keys */
    uint16_t *patches;      /* [count][heads][tokens][keys - prefix_tokens] */
    float *prefix;          /* [count][heads][tokens][prefix_tokens] */
    float *figures;         /* [count][heads + 1][tokens][ATT_MAPS_FIGURES] */
    int32_t *place;         /* [count][heads + 1][tokens] */
} att_mapped_node;

/* Values of one network output for all images. */
typedef struct att_mapped_output {
    const char *name; /* name of the tensor */
    float *values;    /* [count][shape of the output] */
} att_mapped_output;

typedef struct att_mapper {
    att_context *context;
    const att_maps_options *options;
    const att_transform_options *transform;
    const att_model *model;
    const att_weights *weights;
    att_graph *graph; /* copy of the model's graph, with probes */
    att_inference inference;
    const att_dataset *dataset;
    att_answer_options names; /* names of the network's classes */
    att_arena arena;
    att_mapped_node *nodes;
    int node_count;
    att_mapped_output *outputs; /* [inference.output_count] */
    int64_t count;              /* images processed so far */
    int64_t max_images;
    uint8_t *images;
    int64_t *indices, *labels; /* per image: index in the data set, class */
    const char **captions;
    float *pixels, *rows; /* scratch of one image: the network's input, a node's maps */
    double *mean;         /* scratch: one row of attention weights, of a head or the mean over heads */
} att_mapper;

/* Writes the file. The arena owns what it contains. */
att_status att_mapper_write(att_mapper *m, const char *path);

#endif
