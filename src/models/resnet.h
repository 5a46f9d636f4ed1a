/* models/resnet.h - what the files of the residual networks' family share. */
#ifndef ATT_MODELS_RESNET_H
#define ATT_MODELS_RESNET_H

#include <attscope/nn.h>

#include "models/family.h"
#include "models/placement.h"

/* Each in the order of its names in resnet_options.c. */
typedef enum att_resnet_block { ATT_BASIC, ATT_BOTTLENECK, ATT_PREACT } att_resnet_block;
typedef enum att_resnet_stem { ATT_CONV7, ATT_DEEP, ATT_DEEP_TIERED, ATT_CONV3 } att_resnet_stem;
typedef enum att_resnet_shortcut { ATT_CONV, ATT_AVG_CONV, ATT_PAD } att_resnet_shortcut;

/* The family's options: each is what its help says (resnet_options.c). */
typedef struct att_resnet_options {
    ATT_SHARED_MEMBERS;
    int depth, width, cardinality, base_width;
    int zero_init_last;
    char global_pool[8], block[12], stem_type[12], shortcut[12], layers[24];
    /* The module's option `hidden` block by block, for the blocks that have the first module, in order: "3x2,5x2,10" is
     * 3, 3, 5, 5, 10; "": as `modules` says in all of them. */
    char modules_hidden[128];
} att_resnet_options;
extern const att_option_table att_resnet_table;

/* Where modules can be put, in the order of att_resnet_hooks. */
enum { ATT_RESNET_AFTER_BRANCH };
extern const att_hooks att_resnet_hooks;

/* What options say, read. */
typedef struct att_resnet {
    const att_resnet_options *options;
    att_resnet_block block;
    att_resnet_stem stem;
    att_resnet_shortcut shortcut;
    att_stages stages;
    att_modules modules;
} att_resnet;

/* ERR_ARGUMENT where the options do not go together. *net refers to them. */
att_status att_resnet_read(att_context *context, const att_resnet_options *options, att_resnet *net);

/* Layers with weights, shortcuts aside. */
int att_resnet_depth(att_resnet_block block, const att_stages *stages);
/* "3,4,6,3" */
void att_stages_format(const att_stages *stages, char *text, size_t size);
/* A block's convolutions, and its outputs over the channels of its stage. */
int att_resnet_convs(att_resnet_block block);
int att_resnet_expansion(att_resnet_block block);
/* Channels of a bottleneck's 3 x 3 convolution in a stage of `planes` channels. */
int64_t att_resnet_inner(int64_t planes, int cardinality, int base_width);

/* att_family.complete, build, recognise, fit, is_added, alias */
att_status att_resnet_complete(att_context *context, void *options);
void att_resnet_build(att_graph *graph, const void *options, att_features *features);
att_status att_resnet_recognise(att_context *context, const att_tensors *file, att_option_values *found);
att_status att_resnet_fit(att_context *context, const att_tensors *file, void *options);
bool att_resnet_is_added(const att_context *context, const char *name);
bool att_resnet_alias(const att_context *context, const char *name, int index, char *other, size_t size);

#endif
