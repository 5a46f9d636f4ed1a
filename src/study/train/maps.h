/* train/maps.h - attention maps of several images, between their computation (maps.c) and their file (maps_file.c). */
#ifndef ATT_TRAIN_MAPS_H
#define ATT_TRAIN_MAPS_H

#include <attscope/data.h>
#include <attscope/maps.h>
#include <attscope/models.h>
#include <attscope/plan.h>
#include <attscope/progress.h>

#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "networks/tasks/caption.h"
#include "study/train/inference.h"

typedef struct att_maps_options {
    const char *nodes;     /* names of attention nodes, separated by commas, '*' and '?' allowed */
    const int64_t *images; /* `count` indices in the data set; NULL: its first images */
    int count;             /* 1..65536; if `images` is NULL, at most the size of the data set */
    bool unlabelled; /* the classes of the data set are not those of the network: labels become -1, and captions do not
                        compare classes */
    const char *const *class_names; /* names of the network's classes, by number; NULL: those of the data set, or none
                                       with `unlabelled` */
    int class_count;
    const uint8_t *class_colours; /* [classes of the network][3]; NULL: those of att_class_colours() */
    const char *backend;          /* "cpu", "ref" */
    att_precision precision;      /* of the network */
    const char *weights;          /* a digest of the weights, for the metadata; NULL: none */
    bool skip_corrupt;            /* skip images that cannot be decoded, without a message, instead of failing */
    att_progress_fn progress;
    void *progress_user;
} att_maps_options;

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
    att_answer_options names; /* names of the network's classes, and the place of the image in `pixels` */
    att_geometry place;
    att_arena arena;
    att_mapped_node *nodes;
    int node_count;
    att_mapped_output *outputs; /* [inference.output_count] */
    int64_t count;              /* images processed so far */
    int64_t max_images;
    uint8_t *images;
    uint16_t *classes;         /* the class of each pixel of the images; NULL: answers of the task cannot be drawn */
    uint8_t *colours;          /* of the classes, if there are `classes` */
    int64_t *indices, *labels; /* per image: index in the data set, class */
    const char **captions;
    float *pixels, *rows; /* scratch of one image: the network's input, a node's maps */
    double *mean;         /* scratch: one row of attention weights, of a head or the mean over heads */
} att_mapper;

/* Writes the file. The arena owns what it contains. */
att_status att_mapper_write(att_mapper *m, const char *path);

/* "*", the first 8 images, labelled, "cpu", ATT_FULL, no digest, corrupt images fatal, no progress. */
ATT_FOR_LAB att_maps_options att_maps_options_defaults(void);

/* Runs the network on the images and writes the file at `path` atomically; after a failure the file is unchanged.
 * options: NULL means the defaults. All maps are in memory at the same time, two bytes for each attention weight.
 * Errors: ERR_ARGUMENT (count, an index outside the data set); ERR_NOT_FOUND if no attention node matches `nodes`;
 * ERR_MISMATCH if the transform's result does not fit the model; ERR_FORMAT if no image can be decoded; ERR_NONFINITE
 * if a weight or an output is NaN or infinite; ERR_UNSUPPORTED for models that are not in f32, if no node that matches
 * has the tokens of a grid as queries and keys, and for outputs of rank ATT_MAX_RANK; ERR_STOPPED; ERR_MEMORY; errors
 * of reading images and of writing. */
ATT_FOR_LAB att_status att_maps_write(const att_model *model, att_weights *weights, const att_dataset *dataset,
                                      const att_transform_options *transform, const att_maps_options *options,
                                      const char *path);

#endif
