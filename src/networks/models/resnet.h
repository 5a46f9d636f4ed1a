/* models/resnet.h - shared by the files of the family of residual networks. */
#ifndef ATT_MODELS_RESNET_H
#define ATT_MODELS_RESNET_H

#include <attscope/nn.h>

#include "networks/models/family.h"
#include "networks/models/placement.h"

/* Each enum has the order of its names in resnet_options.c. */
typedef enum att_resnet_block { ATT_BASIC, ATT_BOTTLENECK, ATT_PREACT, ATT_PREACT_BASIC } att_resnet_block;
typedef enum att_resnet_stem { ATT_CONV7, ATT_DEEP, ATT_DEEP_TIERED, ATT_CONV3 } att_resnet_stem;
typedef enum att_resnet_shortcut { ATT_CONV, ATT_AVG_CONV, ATT_PAD } att_resnet_shortcut;

/* The family's options, explained by their help (resnet_options.c). */
typedef struct att_resnet_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int depth, width, cardinality, base_width;
    int zero_init_last, output_stride, stem_pool, stem_channels, stride_in_1x1, final_norm, act_shortcut;
    double bn_eps;
    char global_pool[8], block[16], stem_type[12], shortcut[12], layers[24];
    /* Value of the module's option "hidden" for each block that has the first module, in order: "3x2,5x2,10" is 3, 3,
     * 5, 5, 10. "": all have the value in `modules`. */
    char modules_hidden[128];
    char attention_layers[ATT_OPTION_TEXT_BYTES];
} att_resnet_options;
extern const att_option_table att_resnet_table;

/* The parsed options. */
typedef struct att_resnet {
    const att_resnet_options *options;
    att_resnet_block block;
    att_resnet_stem stem;
    att_resnet_shortcut shortcut;
    att_stages stages;
    att_modules modules;
} att_resnet;

/* Parses the options; *net points to them. Errors: ERR_ARGUMENT if they are not compatible. */
att_status att_resnet_read(att_context *context, const att_resnet_options *options, att_resnet *net);

/* Writes the name of convolution `index` of the network, as "layer1.0.conv2"; false past the last. */
bool att_resnet_conv(const att_resnet *net, int index, char *name, size_t size);
/* Whether the convolution of this name is attention (option "attention_layers"). */
bool att_resnet_attends(const att_resnet *net, const char *conv);
/* Refuses names in "attention_layers" that no convolution has (ERR_ARGUMENT). */
att_status att_resnet_check_attention(att_context *context, const att_resnet *net);

/* Returns the number of layers with weights, without shortcuts. */
int att_resnet_depth(att_resnet_block block, const att_stages *stages);
/* Whether a block has two convolutions of 3 x 3; whether its norms and ReLUs come before its convolutions. */
bool att_resnet_is_basic(att_resnet_block block);
bool att_resnet_is_preact(att_resnet_block block);
/* Number of convolutions in a block, and ratio of its outputs to the channels of its stage. */
int att_resnet_convs(att_resnet_block block);
int att_resnet_expansion(att_resnet_block block);
/* Pixels of the image for a place of the map that the first stage gets. */
int att_resnet_stem_stride(const att_resnet *net);
int att_resnet_stem_channels(const att_resnet *net); /* of that map */
/* Channels of a bottleneck's 3 x 3 convolution in a stage of `planes` channels. */
int64_t att_resnet_inner(int64_t planes, int cardinality, int base_width);

/* att_family.complete, build, foreign, recognise, fit, check_undetermined, is_added, layer, alias, convolution */
att_foreign att_resnet_foreign(const att_context *context, const att_tensors *file);
att_status att_resnet_complete(att_context *context, void *options);
void att_resnet_build(att_graph *graph, const void *options, att_features *features);
att_status att_resnet_recognise(att_context *context, const att_tensors *file, att_option_values *found);
att_status att_resnet_fit(att_context *context, const att_tensors *file, void *options);
bool att_resnet_is_added(const att_context *context, const char *name);
int att_resnet_layer(const char *name);
bool att_resnet_convolution(att_context *context, const void *options, int index, char *name, size_t size);
att_status att_resnet_check_undetermined(att_context *context, const att_tensors *file,
                                         const att_option_sources *sources);
bool att_resnet_alias(const att_context *context, const char *name, int index, char *other, size_t size);

#endif
