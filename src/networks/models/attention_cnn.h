/* models/attention_cnn.h - shared by the files of the family attention_cnn. */
#ifndef ATT_MODELS_ATTENTION_CNN_H
#define ATT_MODELS_ATTENTION_CNN_H

#include "networks/models/family.h"

/* Names of the option `encoding`. */
#define ATT_ENCODING_ISOTROPIC "isotropic"
#define ATT_ENCODING_QUADRATIC "quadratic"
#define ATT_ENCODING_LEARNED "learned"
#define ATT_ENCODING_CONTENT "learned_content"

/* The family's options, explained by their help (attention_cnn.c). */
typedef struct att_attention_cnn_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim, depth, num_heads;
    double mlp_ratio, proj_drop_rate, attn_drop_rate;
    char layer_heads[ATT_OPTION_TEXT_BYTES], encoding[24], global_pool[8];
} att_attention_cnn_options;

enum { ATT_ATTENTION_CNN_LISTED = ATT_OPTION_TEXT_BYTES / 2 }; /* numbers for which layer_heads may have room */
/* The number of heads of a block. */
int att_attention_cnn_heads(const att_attention_cnn_options *options, int block);

extern const att_position_family att_attention_cnn_positions;

#endif
