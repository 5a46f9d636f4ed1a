/* train/inference.h - a graph compiled for inference over given weights. */
#ifndef ATT_TRAIN_INFERENCE_H
#define ATT_TRAIN_INFERENCE_H

#include <attscope/data.h>
#include <attscope/models.h>
#include <attscope/plan.h>

typedef struct att_inference {
    att_context *context;
    att_plan *plan;
    att_session *session;
    int output_count;
    att_field *outputs; /* F32 */
    void **answers;     /* [output_count], each [max_batch] rows */
    const char *image;  /* name of the input, as long as the graph lives */
} att_inference;

typedef struct att_inference_options {
    const char *backend;
    att_precision precision;
    int max_batch;
    int group;          /* as in att_plan_options */
    const char *probes; /* those of the graph's probes that are filled too: '*' and '?' allowed; NULL: none */
    /* Names of outputs and probes that a run answers, NULL after the last. NULL: the outputs, but for a loss, which
     * with all that it alone needs is left out. */
    const char *const *outputs;
} att_inference_options;

/* Zero on failure. The graph outlives it. Errors: ERR_UNSUPPORTED for graphs not in f32; those of compiling. */
att_status att_inference_create(const att_graph *graph, att_weights *weights, const att_inference_options *options,
                                att_inference *inference);
void att_inference_free(att_inference *inference);

/* What such a network would take with its answers, as far as its session goes. */
att_status att_inference_bytes(const att_graph *graph, const att_inference_options *options, size_t *bytes);

/* images: one row a sample. *answers: the outputs by name; its data lives until the next run. */
att_status att_inference_run(att_inference *inference, const void *images, int batch, att_batch *answers);

/* Whether a sample's answers hold neither NaN nor infinity. */
bool att_inference_is_finite(const att_batch *answers, int sample);

/* Name of the graph's input that takes the images. */
const char *att_inference_image(const att_graph *graph);

/* ERR_MISMATCH where the transform's images do not fit the model's input. */
att_status att_inference_check_images(const att_model *model, const att_transform_options *transform);

#endif
