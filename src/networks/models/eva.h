/* models/eva.h - shared by the files of the EVA family. */
#ifndef ATT_MODELS_EVA_H
#define ATT_MODELS_EVA_H

#include "networks/models/family.h"
#include "networks/models/token_block.h"

/* The family's options; options without a comment are explained by their help (eva.c). */
typedef struct att_eva_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim, depth, num_heads;
    double mlp_ratio, init_values, norm_eps, attn_drop_rate;
    int class_token, embed_class, reg_tokens;
    int qkv_bias, qkv_fused, scale_attn_norm, scale_mlp_norm, pre_norm;
    int final_norm, fc_norm; /* as in ViTs */
    int rope_rotate_half, ref_feat_shape[2];
    double rope_temperature, rope_grid_offset;
    int attn_pool_num_heads;
    double attn_pool_mlp_ratio;
    char global_pool[8], pos_embed[8], attn_type[8], rope_type[8], rope_grid_indexing[8];
    char mlp_layer[16], block_fn[16];
    int file_grid[2]; /* grid of patches of the file's position embedding; unset if unknown */
} att_eva_options;

/* Values of rope_type and attn_type that more than one file knows. */
#define ATT_EVA_NO_ROPE "none"
#define ATT_EVA_AXIAL "cat"
#define ATT_EVA_MIXED "mixed"
#define ATT_EVA_CENTERED "dinov3"
#define ATT_EVA_NO_KEY_BIAS "eva"
#define ATT_EVA_KEY_BIAS "rope"
/* Values of block_fn, which are those of ViTs that compute the same. */
#define ATT_EVA_BLOCK "Block"
#define ATT_EVA_POST_NORM "ResPostBlock"

extern const att_variants att_eva_variants;

/* att_family.build */
void att_eva_build(att_graph *graph, const void *options, att_features *features);

/* att_family.claims */
bool att_eva_claims(const att_tensors *file);
/* att_family.foreign, recognise */
att_foreign att_eva_foreign(const att_context *context, const att_tensors *file);
att_status att_eva_recognise(att_context *context, const att_tensors *file, att_option_values *found);
/* att_family.check_undetermined */
att_status att_eva_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *sources);
/* att_family.regrids, for the position embedding. */
bool att_eva_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid);

#endif
