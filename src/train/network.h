/* train/network.h - a model compiled for inference over given weights. */
#ifndef ATT_TRAIN_NETWORK_H
#define ATT_TRAIN_NETWORK_H

#include <attscope/data.h>
#include <attscope/models.h>
#include <attscope/plan.h>

typedef struct att_network {
    att_context *context;
    att_plan *plan;
    att_session *session;
    int classes;        /* of the head; 0: there is none */
    int output_count;   /* probes and a loss left aside */
    att_field *outputs; /* F32 */
    void **answers;     /* [output_count], each [max_batch] rows */
    const char *image;  /* name of the input, as long as the model lives */
} att_network;

typedef struct att_network_options {
    const char *backend;
    att_precision precision;
    int max_batch;
    bool probes; /* the graph's probes are filled too */
} att_network_options;

/* Zero on failure. The model outlives it. A loss in the model's graph, and what it alone needs, is left out. Errors:
 * ERR_UNSUPPORTED for models not in f32; those of compiling. */
att_status att_network_create(const att_model *model, att_weights *weights, const att_network_options *options,
                              att_network *network);
void att_network_free(att_network *network);

/* What such a network would take with its answers, as far as its session goes. */
att_status att_network_bytes(const att_model *model, const att_network_options *options, size_t *bytes);

/* images: one row a sample. *answers: the outputs by name; its data is the network's, until the next run. */
att_status att_network_run(att_network *network, const void *images, int batch, att_batch *answers);

/* Whether a sample's answers hold neither NaN nor infinity. */
bool att_network_is_finite(const att_batch *answers, int sample);

/* Name of the graph's first output: what the network answers. */
const char *att_network_answer(const att_graph *graph);
/* Name of the graph's input that takes the images. */
const char *att_network_image(const att_graph *graph);

/* ERR_MISMATCH where the transform's images do not fit the model's input. */
att_status att_network_check_images(const att_model *model, const att_transform_options *transform);

#endif
