/* models/swin.h - shared by the files of the Swin family. */
#ifndef ATT_MODELS_SWIN_H
#define ATT_MODELS_SWIN_H

#include "models/family.h"
#include "models/token_block.h"

/* The family's options, explained by their help (swin.c). */
typedef struct att_swin_options {
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim;
    char depths[24], stage_heads[24], window_size[48], global_pool[8];
    double mlp_ratio;
    int qkv_bias, always_partition;
} att_swin_options;
extern const att_option_table att_swin_table;

/* Tokens of a stage: their number of channels, their grid, and the windows of its attention. Arrays: height, width. */
typedef struct att_swin_stage {
    int width, heads, grid[2];
    int window[2], shift[2]; /* shift: of every other block, the second one first */
} att_swin_stage;

/* The parsed options. */
typedef struct att_swin {
    const att_swin_options *options;
    att_stages depths;
    att_swin_stage stages[ATT_STAGES];
    att_modules modules;
} att_swin;

/* Parses the options but "modules"; *net points to them. Errors: ERR_ARGUMENT if they are not compatible. */
att_status att_swin_measure(att_context *context, const att_swin_options *options, att_swin *net);
/* Parses all options. */
att_status att_swin_read(att_context *context, const att_swin_options *options, att_swin *net);

/* Numbers joined by commas. Parse at most `most`; returns their count, 0 if the text is no such list of numbers from 1
 * to 65536. */
int att_swin_parse_list(const char *text, int *numbers, int most);
void att_swin_format_list(const int *numbers, int count, char *text, size_t size);
/* Writes the windows of all stages in the shortest form: "7", "8,16" (height, width), "7,7,14,7" (one per stage). */
void att_swin_format_windows(int (*windows)[2], int stages, char *text, size_t size);

/* att_family.build, recognise, regrids, is_added, layer */
void att_swin_build(att_graph *graph, const void *options, att_features *features);
att_status att_swin_recognise(att_context *context, const att_tensors *file, att_option_values *found);
bool att_swin_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                      att_shape own, att_regrid *grid);
bool att_swin_is_added(const att_context *context, const char *name);
int att_swin_layer(const char *name);

#endif
