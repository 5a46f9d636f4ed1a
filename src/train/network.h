/* train/network.h - a model compiled for inference over given weights. */
#ifndef ATT_TRAIN_NETWORK_H
#define ATT_TRAIN_NETWORK_H

#include <attscope/data.h>
#include <attscope/models.h>
#include <attscope/plan.h>

typedef struct att_network {
    att_context *context;
    att_model *bare; /* the model without its loss; NULL: it has none */
    att_plan *plan;
    att_session *session;
    int classes, width; /* numbers of the output; classes 0: of features instead of logits */
} att_network;

/* Zero on failure. Errors: ERR_UNSUPPORTED for models not in f32; those of compiling. */
att_status att_network_create(const att_model *model, att_weights *weights, const char *backend,
                              att_precision precision, int max_batch, att_network *network);
void att_network_free(att_network *network);

/* What such a network would take with its logits, as far as its session goes. */
att_status att_network_bytes(const att_model *model, const char *backend, att_precision precision, int max_batch,
                             size_t *bytes);

/* images: one row a sample; out: batch * width values, logits or, without a head, features. */
att_status att_network_run(att_network *network, const float *images, int batch, float *out);

/* ERR_MISMATCH where the transform's images do not fit the model's input. */
att_status att_network_check_images(const att_model *model, const att_transform_options *transform);
/* ERR_MISMATCH where the model has no classes, or where an image of the data set has a class outside 0..classes-1. */
att_status att_network_check_labels(att_context *context, const att_dataset *dataset, int classes);

#endif
