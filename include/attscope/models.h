/* attscope/models.h - networks by timm's names, and the checkpoints that fit them.
 *
 * A model is a graph with its preprocessing and its names. Inputs of the graph: "image" [img_size, img_size, in_chans]
 * f32 and, in graphs with a loss, "target" (I32 scalar). Outputs: "logits" [num_classes] and, with a loss, "loss"
 * (scalar).
 */
#ifndef ATTSCOPE_MODELS_H
#define ATTSCOPE_MODELS_H

#include <attscope/safetensors.h>
#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_model att_model;

/* What images look like when they enter the network. */
typedef struct att_preprocess {
    int img_size, in_chans;
    double mean[3], std[3]; /* of pixels in 0..1; the first in_chans count */
    double crop_pct;        /* evaluation: shorter side = floor(img_size / crop_pct), then centre crop */
    char interpolation[16]; /* "bicubic", "bilinear" */
} att_preprocess;

/* Dimensions and switches. 0, -1 (where said) or "" means the named variant's own. */
typedef struct att_model_options {
    int img_size, in_chans, num_classes;
    int patch_size, embed_dim, depth, num_heads;
    double mlp_ratio;
    char global_pool[8];    /* "token", "avg" */
    int class_token;        /* 1, 0; -1: the variant's own */
    int qkv_bias;           /* 1, 0; -1: the variant's own */
    double init_values;     /* > 0: LayerScale with this start; -1: the variant's own; 0: none */
    char broadcast[8];      /* context broadcasting at the end of the MLP branch: "none", "cb", "cb_s" */
    double drop_rate, drop_path_rate; /* training */
    bool loss;              /* add input "target" and output "loss" */
    double smoothing;       /* of the loss's targets */
} att_model_options;
ATT_API att_model_options att_model_options_defaults(void);

/* One line of the list of models. */
typedef struct att_model_info {
    const char *name;    /* "vit_tiny_patch16_224" */
    const char *summary; /* one line */
    int64_t parameters;
    double gmacs; /* per image, forward */
    int img_size;
} att_model_info;
/* All variants in the list's order. parameters and gmacs are computed by building the graph: slow for big ones, so they
 * are 0 here; att_model_measure() fills them. */
ATT_API int att_model_count(void);
ATT_API att_model_info att_model_at(int index);
ATT_API att_status att_model_measure(att_context *context, att_model_info *info);

/* Builds variant `name` changed by `options` (NULL: none) in `dtype`. On success *model is the caller's. Errors:
 * ERR_NOT_FOUND with the nearest name; ERR_ARGUMENT (embed_dim not a multiple of num_heads, img_size not one of
 * patch_size, ...), in a sentence. */
ATT_API ATT_MUST_CHECK att_status att_model_create(att_context *context, const char *name,
                                                   const att_model_options *options, att_dtype dtype,
                                                   att_model **model);
ATT_API void att_model_destroy(att_model **model);
ATT_API att_graph *att_model_graph(const att_model *model); /* owned by the model */
ATT_API const char *att_model_name(const att_model *model);
/* The options with every 0, -1 and "" filled in: what a checkpoint must record to rebuild the model. */
ATT_API att_model_options att_model_options_of(const att_model *model);
ATT_API att_preprocess att_model_preprocess(const att_model *model);

/* Which network is this file? Order: `name` (a flag; may be NULL), then args.yaml of a run folder, config.json beside the file, the
 * file's __metadata__; dimensions that are not said come from the tensors' shapes. Otherwise ERR_UNSUPPORTED with the list of models
 * that fit. On success fills name, options (loss false) and preprocess, and `origin` with one line that says what was
 * taken from where ("architecture: config.json (deit_tiny_patch16_224); preprocessing: the model's defaults"). */
typedef struct att_identity {
    char name[64];
    att_model_options options;
    att_preprocess preprocess;
    char origin[512];
} att_identity;
ATT_API att_status att_model_identify(att_context *context, const att_safetensors *file, const char *path,
                                      const char *name, att_identity *identity);

/* Copies every parameter from the file (F32, F16, BF16, F64 are converted). All missing, extra and mis-shaped tensors
 * are listed in one message (ERR_MISMATCH); weights are then unchanged. */
ATT_API att_status att_model_load(const att_model *model, const att_safetensors *file, att_weights *weights);

#ifdef __cplusplus
}
#endif
#endif
