/* models/vit.h - shared by the files of the ViT family. */
#ifndef ATT_MODELS_VIT_H
#define ATT_MODELS_VIT_H

#include "models/family.h"
#include "models/token_block.h"

/* The family's options; options without a comment are explained by their help (vit.c). */
typedef struct att_vit_options {
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim, depth, num_heads;
    double mlp_ratio, init_values;
    int class_token, embed_class, qkv_bias;
    int final_norm, fc_norm; /* final_norm: a norm after the last block; fc_norm: that norm comes after the pooling, not
                                before it */
    char global_pool[8], extra_layer[8];
    int file_grid[2]; /* grid of patches of the file's position embedding; unset if unknown */
} att_vit_options;

/* The named networks. */
enum { ATT_VIT_VARIANTS = 58 };
att_model_info att_vit_info(int index);
/* Sets the options that differ between the named networks, and the preprocessing. */
void att_vit_describe(int index, att_vit_options *options, att_preprocess *preprocess);

/* att_family.build */
void att_vit_build(att_graph *graph, const void *options, att_features *features);

/* att_family.recognise */
att_status att_vit_recognise(att_context *context, const att_tensors *file, att_option_values *found);
/* att_family.disambiguate: the grid of the position embedding, and whether it has a row for the class token. */
void att_vit_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found);
/* att_family.regrids, for the position embedding. */
bool att_vit_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid);
/* att_family.check_undetermined */
att_status att_vit_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *unsaid);
/* att_family.is_added */
bool att_vit_is_added(const att_context *context, const char *name);

#endif
