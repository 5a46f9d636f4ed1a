/* models/vit.h - shared by the files of the ViT family. */
#ifndef ATT_MODELS_VIT_H
#define ATT_MODELS_VIT_H

#include "networks/models/family.h"
#include "networks/models/token_block.h"

/* The family's options; options without a comment are explained by their help (vit.c). */
typedef struct att_vit_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim, depth, num_heads;
    double mlp_ratio, init_values, norm_eps, attn_drop_rate;
    int class_token, embed_class, reg_tokens, distilled, rel_pos_dim, shared_rel_pos;
    int qkv_bias, proj_bias, qk_norm, scale_attn_norm, scale_mlp_norm, pre_norm, pixel_norm;
    int final_norm, fc_norm; /* final_norm: a norm after the last block; fc_norm: that norm comes after the pooling, not
                                before it */
    int pool_include_prefix;
    char global_pool[8], extra_layer[8], pos_embed[8], rel_pos_type[8], attn_layer[8];
    char pos_embed_resize[24], norm_layer[16], embed_norm_layer[16], act_layer[16], mlp_layer[16], block_fn[32];
    int file_grid[2]; /* grid of patches of the file's position embedding; unset if unknown */
} att_vit_options;

extern const att_variants att_vit_variants;

/* Names of pos_embed_resize, rel_pos_type, norm_layer, mlp_layer, attn_layer and block_fn that more than one file
 * knows. */
#define ATT_VIT_PLAIN "bicubic_plain"
#define ATT_VIT_BILINEAR_ANTIALIASED "bilinear_antialiased"
#define ATT_VIT_BILINEAR "bilinear"
#define ATT_VIT_CORNERS "bilinear_corners"
#define ATT_VIT_SINES "sines"
#define ATT_VIT_BIAS "bias"
#define ATT_VIT_MLP "mlp"
#define ATT_VIT_RMS_NORM "rmsnorm"
#define ATT_VIT_DIFFERENTIAL "diff"
#define ATT_VIT_BLOCK "Block"
#define ATT_VIT_POST_NORM "ResPostBlock"
#define ATT_VIT_BEIT "BeitBlock"
#define ATT_VIT_SCALING "ParallelScalingBlock"
#define ATT_VIT_DIFF_SCALING "DiffParallelScalingBlock"
#define ATT_VIT_THINGS "ParallelThingsBlock"
/* Whether blocks of this kind compute attention, then the MLP: Block, ResPostBlock and BeitBlock. */
bool att_vit_is_sequential(const char *block_fn);
bool att_vit_is_beit(const att_vit_options *options);
/* Whether blocks have relative positions, or share them. */
bool att_vit_is_relative(const att_vit_options *options);
/* Tokens before those of the patches. */
int att_vit_prefix(const att_vit_options *options);

/* att_family.build */
void att_vit_build(att_graph *graph, const void *options, att_features *features);

/* att_family.foreign, recognise */
att_foreign att_vit_foreign(const att_context *context, const att_tensors *file);
att_status att_vit_recognise(att_context *context, const att_tensors *file, att_option_values *found);
/* Sets the options of relative positions, the kind of blocks if they are BEiT's, and the number of heads. */
void att_vit_read_relative(const att_tensors *file, att_option_values *found);
/* Whether a tensor of this name is a table of relative positions. */
bool att_vit_is_table(const char *name);
/* Rows of the file's first table of relative positions; 0 if there is none. */
int64_t att_vit_table_rows(const att_tensors *file);
/* Sets image size and embed_class from the position embedding, or the image size from a table of relative positions, if
 * the grid is square. */
void att_vit_read_grid(const att_tensors *file, att_option_values *found);
/* Fails if the grid is not known. */
att_status att_vit_check_grid(att_context *context, const att_tensors *file, const att_option_sources *sources);
/* att_family.disambiguate: the grid of the position embedding, and whether it has rows for the tokens before the
 * patches; the kind of blocks and of pooling. */
void att_vit_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found);
/* att_family.regrids, for the position embedding and tables of relative positions. */
bool att_vit_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid);
/* att_family.check_undetermined */
att_status att_vit_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *unsaid);

#endif
