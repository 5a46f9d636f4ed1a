/* models/swin.h - shared by the files of the Swin family. */
#ifndef ATT_MODELS_SWIN_H
#define ATT_MODELS_SWIN_H

#include "networks/models/family.h"
#include "networks/models/token_block.h"

/* The family's options, explained by their help (swin.c). */
typedef struct att_swin_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim;
    char swin_version[8], depths[24], stage_heads[24], window_size[48], pretrained_window_sizes[24], global_pool[8];
    double mlp_ratio, attn_drop_rate;
    int qkv_bias, always_partition, pad_before_shift, extra_norm_period, extra_norm_stage;
} att_swin_options;
extern const att_option_table att_swin_table;

/* The versions of the network, and what they differ in. */
#define ATT_SWIN_V1 "v1"
#define ATT_SWIN_V2 "v2"
#define ATT_SWIN_V2_CR "v2_cr"
typedef struct att_swin_version {
    const char *name;   /* the option swin_version */
    const char *stages; /* scope of the stages */
    bool post_norm;     /* norms at the end of branches, which start at 0; else at the front */
    int cosine;         /* see att_token_form */
    att_relative_form relative;
    bool qv_bias;          /* see att_token_form */
    bool merge_norm_last;  /* patch merging: the norm follows the linear layer */
    bool last_norm;        /* a norm after the last stage; else norm3 after its last block, and after others if asked */
    att_token_start start; /* of linear layers */
} att_swin_version;
/* NULL past the last version, and for an unknown name. */
const att_swin_version *att_swin_version_at(int index);
const att_swin_version *att_swin_version_named(const char *name);

extern const att_variants att_swin_variants;

/* Tokens of a stage: their number of channels, their grid, and the windows of its attention. Arrays: height, width. */
typedef struct att_swin_stage {
    int width, heads, grid[2];
    int window[2], shift[2]; /* shift: of every other block, the second one first */
    int pretrained;          /* side of the window of the pretraining; 0: that of `window` */
} att_swin_stage;

/* The parsed options. */
typedef struct att_swin {
    const att_swin_options *options;
    const att_swin_version *version;
    att_stages depths;
    att_swin_stage stages[ATT_STAGES];
    att_modules modules;
} att_swin;

/* Parses the options but "modules"; *net points to them. Errors: ERR_ARGUMENT if they are not compatible. */
att_status att_swin_measure(att_context *context, const att_swin_options *options, att_swin *net);
/* Parses all options. */
att_status att_swin_read(att_context *context, const att_swin_options *options, att_swin *net);
/* Whether norm3 follows block b of stage s. */
bool att_swin_has_extra_norm(const att_swin *net, int s, int b);

/* Writes the windows of all stages in the shortest form: "7", "8,16" (height, width), "7,7,14,7" (one per stage). */
void att_swin_format_windows(int (*windows)[2], int stages, char *text, size_t size);

/* att_family.foreign, build, recognise, disambiguate, explain_size, check_undetermined, regrids, is_added, layer */
att_foreign att_swin_foreign(const att_context *context, const att_tensors *file);
void att_swin_build(att_graph *graph, const void *options, att_features *features);
att_status att_swin_recognise(att_context *context, const att_tensors *file, att_option_values *found);
/* A window that a stage's grid clips shows the size of the images. */
void att_swin_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found);
void att_swin_explain_size(const att_tensors *file, const att_option_values *found, att_text *text);
att_status att_swin_check_undetermined(att_context *context, const att_tensors *file,
                                       const att_option_sources *sources);
bool att_swin_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                      att_shape own, att_regrid *grid);
bool att_swin_is_added(const att_context *context, const char *name);
int att_swin_layer(const char *name);

#endif
