/* models/token_ends.h - what networks of tokens have before and after their blocks (models/token_block.h): patches,
 * positions and further tokens; the last norm and the pooling. Tensor names are timm's. */
#ifndef ATT_MODELS_TOKEN_ENDS_H
#define ATT_MODELS_TOKEN_ENDS_H

#include "networks/models/token_block.h"
#include "networks/tasks/task.h"

/* The tokens before the first block: class token, distillation token and registers, then those of the patches. */
typedef struct att_token_stem {
    int img_size[2], in_chans;
    const att_norm_form *pixel_norm; /* norm of a patch's pixels before they are embedded; NULL: none */
    const att_norm_form *patch_norm; /* norm of the embedded patches; NULL: none */
    bool class_token, distilled;
    int registers;
    att_init start;               /* of class token and registers */
    bool positions, embed_prefix; /* a learned position embedding; also for the tokens before the patches */
    bool pre_norm;                /* a norm before the first block, and no bias of the patches */
} att_token_stem;

/* Adds the input ATT_IMAGE. Tensors in `root`: patch_embed, cls_token, dist_token, reg_token, pos_embed, norm_pre.
 * Returns [N, C]. */
att_value att_token_embed(const att_scope *root, const att_token_form *form, const att_token_stem *stem);

/* Names of att_token_pool.kind, and of position embeddings: learn, none. NULL past the last. */
const char *att_token_pool_name(int index);
#define ATT_TOKEN_MEAN_POOLS "avg max avgmax" /* those whose norm follows the pooling */
const char *att_token_position_name(int index);
/* Refuses a pooling that a network without class token, or with fc_norm, cannot have (ERR_ARGUMENT). */
att_status att_token_check_pool(att_context *context, const char *kind, bool class_token, bool fc_norm);

/* What the head reads. */
typedef struct att_token_pool {
    const char *kind; /* see the option global_pool */
    bool final_norm;  /* a norm after the last block; fc_norm: it comes after the pooling, not before it */
    bool fc_norm;
    bool distilled;    /* class token and distillation token, each with a classifier of its own */
    bool reads_prefix; /* pools the tokens before the patches, too */
    int heads;         /* of the attention of "map"; the members below are those of its MLP */
    int64_t hidden;
    att_activate *activate;
} att_token_pool;

/* x [N, C]: tokens after the last block. Tensors in `root`: norm or fc_norm, attn_pool. */
void att_token_finish(const att_scope *root, const att_token_form *form, const att_token_pool *pool, att_value x,
                      att_features *features);

#endif
