/* relevance/method.h - the descriptor of a method, the struct of an att_relevance, and what methods use of it. */
#ifndef ATT_RELEVANCE_METHOD_H
#define ATT_RELEVANCE_METHOD_H

#include <attscope/relevance.h>

#include "study/explore/explorer.h"

enum { ATT_RELEVANCE_OPTIONS = 4, ATT_RELEVANCE_NAME = 48 };

/* The tokens that the head reads, with equal weights. */
typedef struct att_read_tokens {
    int64_t first, count;
    const char *reason; /* why they are unknown, as the end of a message; NULL: they are known */
} att_read_tokens;

/* F of Grad-CAM. */
typedef struct att_cam_features {
    att_value value;                      /* in explorer->graph; ATT_NONE: the network has none */
    int64_t prefix, height, width, count; /* rows before the grid, the grid, channels */
} att_cam_features;

struct att_relevance {
    att_context *context;
    att_explorer *explorer;
    const char *image_name; /* of the input that is an image; NULL: the input is a text */
    const char *logits_name;
    int classes, height, width, channels; /* of an image; 0 of a text */
    att_plan *plan;                       /* the gradient of seed . logits */
    att_session *session;
    float *seed;     /* [classes] */
    float *image;    /* [height, width, channels]: a changed copy of the image */
    bool wide;       /* the plan is in F64 */
    double *wide_in; /* if so: [classes] and then [height, width, channels], the seed and the image */
    float *gradient; /* as large as the largest value whose gradient is read, twice as large if `wide` */
    float *values;   /* as large */
    double *map;     /* as large: the values of the last map */
    int64_t room;
    att_read_tokens read;
    att_cam_features features;
};

/* A run of a method. */
typedef struct att_relevance_job {
    att_relevance *relevance;
    const att_batch *inputs; /* one sample; the explorer has run it */
    const float *image;      /* [height, width, channels]; NULL: a text */
    const double *options;   /* by the descriptor's options */
    int target;
    double logit;
    att_relevance_map *map; /* the method sets height and width, and writes the values */
} att_relevance_job;

typedef struct att_relevance_method {
    att_relevance_method_info info;
    att_status (*compute)(att_relevance_job *job);
} att_relevance_method;

/* graph.c: finds what the methods need in explorer->graph, and compiles the plan. */
att_status att_relevance_compile(att_relevance *relevance);
/* pooling.c: finds the tokens that the head reads, among the `tokens` tokens of the last layer. */
att_read_tokens att_relevance_find_read(const att_graph *graph, att_value logits, int64_t tokens);
/* features.c */
att_cam_features att_relevance_find_features(const att_relevance *relevance);

/* gradient.c: computes the gradients of the target's logit at this image, with the inputs and changes of the job. */
att_status att_relevance_differentiate(const att_relevance_job *job, const float *image);
/* Copies the outputs "relevance.<what>.<number>" (number -1: without it) and their gradients of the last
 * differentiation to relevance->values and relevance->gradient. */
att_status att_relevance_read(const att_relevance *relevance, const char *what, int number);
/* Copies the gradient of the image to relevance->gradient. */
att_status att_relevance_read_image(const att_relevance *relevance);

/* Runs the explorer on this image with the job's other inputs, and returns the target's logit in *logit. */
att_status att_relevance_logit(const att_relevance_job *job, const float *image, double *logit);

/* tokens.c: for methods that follow tokens through layers. */
/* ERR_UNSUPPORTED if the tokens of the layers 0..layer differ, or those that the head reads are unknown. */
att_status att_relevance_check_tokens(const att_relevance_job *job, int layer);
/* Writes e, the weights of the tokens that the head reads. */
void att_relevance_begin(const att_relevance *relevance, double *weights);
/* sums = weights B of a layer, after att_relevance_differentiate(); both [N]. */
att_status att_relevance_attention(const att_relevance_job *job, int layer, const double *weights, double *sums);
/* Makes the patches of [N] the map. */
att_status att_relevance_take_patches(const att_relevance_job *job, int layer, const double *tokens);
/* Index of the last layer; -1 without layers. */
static inline int att_relevance_last_layer(const att_relevance *relevance)
{
    return relevance->explorer->layer_count - 1;
}

/* Sets the sides of the map and returns its values. height * width is at most relevance->room. */
static inline double *att_relevance_begin_map(const att_relevance_job *job, int64_t height, int64_t width)
{
    *job->map = (att_relevance_map){(int)height, (int)width, job->relevance->map, job->target, job->logit};
    return job->relevance->map;
}

#endif
