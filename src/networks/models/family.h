/* models/family.h - the descriptor of a family of networks. models/list.h names the families. */
#ifndef ATT_MODELS_FAMILY_H
#define ATT_MODELS_FAMILY_H

#include <limits.h>

#include <attscope/models.h>
#include <attscope/nn.h>

#include "base/core/options.h"
#include "networks/models/config.h"
#include "networks/models/foreign_tensors.h"
#include "networks/models/inputs.h"
#include "networks/models/module_options.h"
#include "networks/models/placement.h"
#include "networks/models/position_heads.h"
#include "networks/models/regrid.h"
#include "networks/models/tensor_rules.h"
#include "networks/models/timm_config.h"
#include "networks/tasks/task.h"

/* An argument of timm's constructors that has no option here. value: the value with which timm's network computes the
 * same as attscope's; ATT_ANY_VALUE: any value. */
#define ATT_ANY_VALUE "*"
typedef struct att_accepted_argument {
    const char *key, *value;
} att_accepted_argument;

/* A named network. */
typedef struct att_variant_row {
    const char *name, *summary;
    int img_size, num_classes; /* num_classes 0: no head */
    double crop_pct;
    /* Options and preprocessing, "embed_dim=192 mean=0.5,0.5,0.5 ", as in models/timm/tags.txt. Of a key that stands
     * twice, the first value counts. */
    const char *settings;
} att_variant_row;

/* The named networks of a family. */
typedef struct att_variants {
    const att_variant_row *rows;
    int count;
    /* Settings of all of them that `settings` of a row does not give. Options that follow from others (fc_norm, layers,
     * ...) may stay unset; complete() sets them. */
    const char *shared;
    /* If the caller gives the option `key` the value `value`, which the named network does not have, `settings` replace
     * those of the network: it then has other images. key NULL: there is no such option. */
    struct {
        const char *key, *value, *settings;
    } images_by;
} att_variants;

/* The options of a file's network by source, before options that no source gives are taken from the named variant. */
typedef struct att_option_sources {
    const char *path, *name; /* names of the file and of the network, for messages */
    /* given: options given by the caller, side files and metadata; found: options from the tensors; own: options of the
     * variant. */
    const att_option_values *given, *found, *own;
} att_option_sources;

/* Options that help to interpret tensors that fit several networks. given: options of all sources; from_file: options
 * of all sources except the caller, which describe the file itself; own: options of the variant. */
typedef struct att_known {
    const att_option_values *given, *from_file, *own;
} att_known;

/* An input of a family's networks. */
struct att_family_input {
    const char *name;
    att_dtype dtype; /* of what callers give; ATT_F32 stands for the type of the graph */
    bool image;      /* [height, width, channels], made from an image as att_preprocess says */
    /* Keys of the options whose numbers are the dimensions, in order: height and width of "img_size", then "in_chans".
     */
    const char *dims[ATT_MAX_RANK];
    /* The one of them that may differ from run to run, with parameters resampled where they depend on it; NULL: none.
     */
    const char *varies;
    /* Key of an option that numbers of an I32 input are below, and not negative: "vocab_size". NULL: they may be any.
     */
    const char *below;
    /* Key of an option, a length that may vary: numbers of an I32 input are 1 to this. NULL: they do not count. */
    const char *counts;
    /* Key of an option: networks for which it is 0 do not have the input. NULL: all networks have it. */
    const char *when;
};

/* A family. Functions may be NULL if there is nothing to do. `options` is the family's struct of options->size bytes.
 */
typedef struct att_family {
    const char *name; /* "vit" */
    /* Names of tensors, the last NULL: every network of the family has one of them: "patch_embed.proj.weight". */
    const char *signatures[3];
    /* Returns whether a file with such a tensor is of this family, rather than of one before it in the list with the
     * same signature. NULL: it is. */
    bool (*claims)(const att_tensors *file);
    att_family_input inputs[ATT_MAX_INPUTS]; /* build() adds them to the graph in this order; the last has no name */
    const att_option_table *options;         /* include ATT_SHARED_OPTIONS */
    att_hooks hooks;                         /* places for modules; the option "modules" chooses among them */
    const att_accepted_argument *accepted_arguments;        /* the last has a NULL key */
    att_classifier_form (*classifier)(const void *options); /* used if the task's head is a classifier */
    const att_variants *variants;
    /* Sets the options that follow from others, and checks that all options are compatible. */
    att_status (*complete)(att_context *context, void *options);
    /* Adds the inputs and the network without the head, and returns the features that heads read. */
    void (*build)(att_graph *graph, const void *options, att_features *features);
    /* The tensors that tell the options; NULL: the family has the functions foreign, recognise, is_added and layer,
     * which follow from the rules. */
    const att_tensor_rules *rules;
    /* Returns the tensors that no network of the family has. */
    att_foreign (*foreign)(const att_context *context, const att_tensors *file);
    /* Sets the options that names and shapes of the tensors determine; the others stay unset. Refuses a tensor that no
     * network of the family has, by name (ERR_UNSUPPORTED, att_foreign_refuse()). */
    att_status (*recognise)(att_context *context, const att_tensors *file, att_option_values *found);
    /* Corrects options that recognise() derived from tensors that fit several networks. */
    void (*disambiguate)(const att_tensors *file, const att_known *known, att_option_values *found);
    /* Appends why recognise() found this image size in tensors that fit other sizes, too: "its windows are ...". NULL:
     * the positions can form a square. */
    void (*explain_size)(const att_tensors *file, const att_option_values *found, att_text *text);
    /* Sets options that only the tensors determine. `options` are complete. */
    att_status (*fit)(att_context *context, const att_tensors *file, void *options);
    /* Handles an argument of timm's constructor that has another form than the option here, such as two ratios in one
     * list: sets the corresponding options unless they are set. Returns false for other arguments. */
    bool (*take_argument)(const char *key, const att_fact *fact, att_option_values *options);
    const att_timm_form *timm; /* NULL: timm has none of the family's networks */
    /* Returns ERR_UNSUPPORTED or ERR_MISMATCH if no network has both the given options and the file's tensors,
     * ERR_UNSUPPORTED if an option that the tensors do not determine must be given because the variant's value cannot
     * be assumed. */
    att_status (*check_undetermined)(att_context *context, const att_tensors *file, const att_option_sources *sources);
    /* Returns whether the file's tensor `name`, which has a float type, differs from the network's parameter only in
     * the grid of patches; *grid then describes the resampling. Grids of equally many patches, such as 2 x 8 and 4 x 4,
     * differ too. Sets grid->options for every tensor whose rows belong to places of a grid or to shifts, to NULL for
     * others. file_options: the options in the file's metadata. */
    bool (*regrids)(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                    att_shape own, att_regrid *grid);
    /* Returns whether the parameter `name` belongs to a module, so that the same network without modules lacks it. */
    bool (*is_added)(const att_context *context, const char *name);
    /* Returns the layer of the parameter `name` for layer-wise learning rates, as timm's group_matcher(): 0 for the
     * stem, a number that rises from block to block, ATT_LAYER_LAST_BLOCK for a norm after the blocks, ATT_LAYER_HEAD
     * for all others. */
    int (*layer)(const char *name);
    /* Heads that attend by position only; NULL: the family has none. */
    const att_position_family *positions;
    att_alias *alias;
    /* Writes the scope of convolution `index` of the network, as "layer1.0.conv2"; returns false past the last. The
     * option "attention_layers" chooses among them. NULL: the family has no such option. */
    bool (*convolution)(att_context *context, const void *options, int index, char *name, size_t size);
} att_family;
enum { ATT_LAYER_LAST_BLOCK = INT_MAX - 1, ATT_LAYER_HEAD = INT_MAX };

/* The input of networks for images. */
#define ATT_IMAGE "image"
#define ATT_IMAGE_INPUT                                                                                            \
    {                                                                                                              \
        .name = ATT_IMAGE, .dtype = ATT_F32, .image = true, .dims = {"img_size", "in_chans"}, .varies = "img_size" \
    }
/* The inputs of networks for texts: ids of tokens and types of tokens, as many as the longest text of a run has, and
 * the number of tokens that are no padding. */
#define ATT_TOKENS "tokens"
#define ATT_TOKEN_TYPES "types"
#define ATT_TOKEN_COUNT "count"
/* The output of a network without a head. */
#define ATT_FEATURES "features"

/* Options of every family with the input ATT_IMAGE_INPUT, and their members in a struct `type`. */
#define ATT_IMAGE_MEMBERS int img_size[2], in_chans
#define ATT_IMAGE_OPTIONS(type)                                                                                      \
    {.key = "img_size",                                                                                              \
     .kind = ATT_OPTION_SIDES,                                                                                       \
     .value = "H [W]",                                                                                               \
     .help = "pixels of an image, height and width; one number is both",                                             \
     .low = 1,                                                                                                       \
     .high = 65536,                                                                                                  \
     ATT_OPTION_AT(type, img_size)},                                                                                 \
    {                                                                                                                \
        .key = "in_chans", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "channels of an image: 1 or 3", .low = 1, \
        .high = 3, .not_compared = true, ATT_OPTION_AT(type, in_chans)                                               \
    }
/* Returns ERR_ARGUMENT if the strides of a network need larger images. least: pixels of each side. */
att_status att_image_check_least(att_context *context, const int img_size[2], int least);

/* Options of heads that read maps of features (att_features.stages). They have no value unless one is given. */
#define ATT_MAP_OPTIONS(type)                                                                                          \
    {.key = "head",                                                                                                    \
     .kind = ATT_OPTION_TEXT,                                                                                          \
     .value = "NAME",                                                                                                  \
     .help =                                                                                                           \
         "segment: linear (the default) or uper, UPerNet; detect: rcnn, Faster R-CNN (the default), or rcnn_v2, with " \
         "norms and convolutions in pyramid and box head",                                                             \
     .choice = att_head_choice_name,                                                                                   \
     .not_compared = true,                                                                                             \
     .of_maps = true,                                                                                                  \
     ATT_OPTION_AT(type, head)},                                                                                       \
        {.key = "head_channels",                                                                                       \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help = "channels of UPerNet's convolutions, 512 by default, or of a detector's pyramid, 256",                \
         .low = 1,                                                                                                     \
         .high = 65536,                                                                                                \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, head_channels)},                                                                          \
        {.key = "aux_channels",                                                                                        \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help = "channels of the auxiliary head that is trained beside UPerNet; 256 by default, 0: no such head",     \
         .low = 0,                                                                                                     \
         .high = 65536,                                                                                                \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, aux_channels)},                                                                           \
        {.key = "taps",                                                                                                \
         .kind = ATT_OPTION_TEXT,                                                                                      \
         .value = "LIST",                                                                                              \
         .help =                                                                                                       \
             "blocks whose results the head reads, counted from 0, at most four; of 12 blocks 8,9,10,11 by "           \
             "default, with UPerNet 3,5,7,11",                                                                         \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, taps)},                                                                                   \
        {.key = "tap_norm",                                                                                            \
         .kind = ATT_OPTION_SWITCH,                                                                                    \
         .help =                                                                                                       \
             "the head reads the last block's result after the network's last norm, as mmsegmentation's "              \
             "final_norm",                                                                                             \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, tap_norm)},                                                                               \
    {                                                                                                                  \
        .key = "neck", .kind = ATT_OPTION_TEXT, .value = "NAME",                                                       \
        .help =                                                                                                        \
            "maps of four sizes for UPerNet, from four of one size: none, feature2pyramid (XCiT's and BEiT's "         \
            "transposed convolutions) or multi_level (mmsegmentation's MultiLevelNeck)",                               \
        .choice = att_neck_choice_name, .not_compared = true, .of_maps = true, ATT_OPTION_AT(type, neck)               \
    }

/* Options of detectors. They have no value unless one is given. */
#define ATT_DETECTOR_MEMBERS                                                                                         \
    int box_channels, proposals, level_proposals, detections, anchor_round, anchor_stride, roi_samples, roi_aligned, \
        background_first, box_bounded, small_boxes;                                                                  \
    double score_thresh, nms_thresh, anchor_size
#define ATT_DETECTOR_OPTIONS(type)                                                                                     \
    {.key = "box_channels",                                                                                            \
     .kind = ATT_OPTION_WHOLE,                                                                                         \
     .value = "N",                                                                                                     \
     .help = "detect: channels of the box head's linear layers; 1024 by default",                                      \
     .low = 1,                                                                                                         \
     .high = 65536,                                                                                                    \
     .not_compared = true,                                                                                             \
     .of_maps = true,                                                                                                  \
     ATT_OPTION_AT(type, box_channels)},                                                                               \
        {.key = "proposals",                                                                                           \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help = "detect: proposals of an image that the box head reads; 1000 by default",                             \
         .low = 1,                                                                                                     \
         .high = 100000,                                                                                               \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, proposals)},                                                                              \
        {.key = "level_proposals",                                                                                     \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help =                                                                                                       \
             "detect: proposals of each level of the pyramid before those that overlap are left out; 1000 by default", \
         .low = 1,                                                                                                     \
         .high = 100000,                                                                                               \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, level_proposals)},                                                                        \
        {.key = "detections",                                                                                          \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help = "detect: boxes of an image in an answer, at most; 100 by default",                                    \
         .low = 1,                                                                                                     \
         .high = 100000,                                                                                               \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, detections)},                                                                             \
        {.key = "score_thresh",                                                                                        \
         .kind = ATT_OPTION_REAL,                                                                                      \
         .value = "X",                                                                                                 \
         .help = "detect: boxes with a score of at most this are left out; 0.05 by default",                           \
         .low = 0,                                                                                                     \
         .high = 0.999999,                                                                                             \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, score_thresh)},                                                                           \
        {.key = "nms_thresh",                                                                                          \
         .kind = ATT_OPTION_REAL,                                                                                      \
         .value = "X",                                                                                                 \
         .help =                                                                                                       \
             "detect: of two boxes of a class with a larger overlap, only that with the larger score stays; 0.5 by "   \
             "default",                                                                                                \
         .low = 0,                                                                                                     \
         .high = 1,                                                                                                    \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, nms_thresh)},                                                                             \
        {.key = "anchor_size",                                                                                         \
         .kind = ATT_OPTION_REAL,                                                                                      \
         .value = "X",                                                                                                 \
         .help =                                                                                                       \
             "detect: side in pixels of the square anchor of the first level, which doubles from level to level; 32 "  \
             "by default",                                                                                             \
         .low = 1,                                                                                                     \
         .high = 65536,                                                                                                \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, anchor_size)},                                                                            \
        {.key = "anchor_round",                                                                                        \
         .kind = ATT_OPTION_SWITCH,                                                                                    \
         .help = "detect: sides of anchors are rounded, as in torchvision; on by default",                             \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, anchor_round)},                                                                           \
        {.key = "anchor_stride",                                                                                       \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help =                                                                                                       \
             "detect: pixels between anchors of the first level, which double from level to level (mmdetection: 4); "  \
             "0: the sides of the image over those of the map, rounded down, as in torchvision (the default)",         \
         .low = 0,                                                                                                     \
         .high = 4096,                                                                                                 \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, anchor_stride)},                                                                          \
        {.key = "roi_samples",                                                                                         \
         .kind = ATT_OPTION_WHOLE,                                                                                     \
         .value = "N",                                                                                                 \
         .help =                                                                                                       \
             "detect: points along each side of a part of a box, of 7 x 7 parts; 0: as many as places of the map, as " \
             "in mmdetection; 2 by default",                                                                           \
         .low = 0,                                                                                                     \
         .high = 64,                                                                                                   \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, roi_samples)},                                                                            \
        {.key = "roi_aligned",                                                                                         \
         .kind = ATT_OPTION_SWITCH,                                                                                    \
         .help = "detect: maps are read half a place to the left and above, as in mmdetection; off by default",        \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, roi_aligned)},                                                                            \
        {.key = "background_first",                                                                                    \
         .kind = ATT_OPTION_SWITCH,                                                                                    \
         .help =                                                                                                       \
             "detect: the first output of the box head is the background, as in torchvision (the default), not the "   \
             "last, as in mmdetection",                                                                                \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, background_first)},                                                                       \
        {.key = "box_bounded",                                                                                         \
         .kind = ATT_OPTION_SWITCH,                                                                                    \
         .help =                                                                                                       \
             "detect: sides of a box shrink to 16/1000 of those of its anchor or proposal at most, as in "             \
             "mmdetection; off by default",                                                                            \
         .not_compared = true,                                                                                         \
         .of_maps = true,                                                                                              \
         ATT_OPTION_AT(type, box_bounded)},                                                                            \
    {                                                                                                                  \
        .key = "small_boxes", .kind = ATT_OPTION_SWITCH,                                                               \
        .help =                                                                                                        \
            "detect: proposals with sides of less than 0.001 pixels and boxes with less than 0.01 stay, as in "        \
            "mmdetection; off by default",                                                                             \
        .not_compared = true, .of_maps = true, ATT_OPTION_AT(type, small_boxes)                                        \
    }

/* Options that every family declares, and their members in a struct `type`. */
#define ATT_SHARED_MEMBERS                     \
    int num_classes;                           \
    char task[ATT_OPTION_KEY];                 \
    char modules[ATT_OPTION_TEXT_BYTES];       \
    double drop_rate, drop_path_rate;          \
    char head[8], neck[16], taps[24];          \
    int head_channels, aux_channels, tap_norm; \
    ATT_DETECTOR_MEMBERS
#define ATT_SHARED_OPTIONS(type)                                                                                  \
    {.key = "num_classes",                                                                                        \
     .kind = ATT_OPTION_WHOLE,                                                                                    \
     .value = "N",                                                                                                \
     .help = "classes, the outputs of the classifier; 0: no classifier",                                          \
     .low = 0,                                                                                                    \
     .high = 10000000,                                                                                            \
     .not_compared = true,                                                                                        \
     ATT_OPTION_AT(type, num_classes)},                                                                           \
        {.key = "task",                                                                                           \
         .kind = ATT_OPTION_TEXT,                                                                                 \
         .value = "NAME",                                                                                         \
         .help = "what the network is trained for: its head, targets and loss",                                   \
         .choice = att_task_choice_name,                                                                          \
         .choice_in = att_task_choice_in,                                                                         \
         .not_compared = true,                                                                                    \
         ATT_OPTION_AT(type, task)},                                                                              \
        ATT_MAP_OPTIONS(type), ATT_DETECTOR_OPTIONS(type),                                                        \
        {.key = "modules",                                                                                        \
         .kind = ATT_OPTION_TEXT,                                                                                 \
         .value = "LIST",                                                                                         \
         .help =                                                                                                  \
             "modules and where they are: cb_s, se:ratio=8@after_branch:every:2, "                                \
             "cb@after_attn+cb_s@after_mlp:0-5; attscope modules lists both",                                     \
         .choice = att_module_choice_name,                                                                        \
         .choice_in = att_module_choice_in,                                                                       \
         .differs_as = "the module",                                                                              \
         .detailed = true,                                                                                        \
         .not_compared = true,                                                                                    \
         ATT_OPTION_AT(type, modules)},                                                                           \
        {.key = "drop_rate",                                                                                      \
         .flag = "drop",                                                                                          \
         .kind = ATT_OPTION_REAL,                                                                                 \
         .value = "X",                                                                                            \
         .help = "dropout before the head",                                                                       \
         .high = 0.999999,                                                                                        \
         .not_compared = true,                                                                                    \
         .training = true,                                                                                        \
         ATT_OPTION_AT(type, drop_rate)},                                                                         \
    {                                                                                                             \
        .key = "drop_path_rate", .flag = "drop-path", .kind = ATT_OPTION_REAL, .value = "X",                      \
        .help = "drop path rate of the last block; no block's is larger", .high = 0.999999, .not_compared = true, \
        .training = true, ATT_OPTION_AT(type, drop_path_rate)                                                     \
    }

/* The option of families with attention, a member attn_drop_rate of `type`. */
#define ATT_ATTENTION_DROP_OPTION(type)                                                                 \
    {                                                                                                   \
        .key = "attn_drop_rate", .flag = "attn-drop", .kind = ATT_OPTION_REAL, .value = "X",            \
        .help = "dropout of attention maps, after the softmax", .high = 0.999999, .not_compared = true, \
        ATT_OPTION_AT(type, attn_drop_rate)                                                             \
    }

/* Sets what features say about tokens, and returns the list of `count` blocks for their results. NULL: the graph has
 * failed. */
att_value *att_features_of_tokens(att_graph *graph, int prefix, int height, int width, int count,
                                  att_features *features);

/* Defines the function att_option.choice of these names. */
#define ATT_CHOICES(function, ...)                                                \
    static const char *function(int index)                                        \
    {                                                                             \
        static const char *const names[] = {__VA_ARGS__, NULL};                   \
        return index < (int)(sizeof names / sizeof *names) ? names[index] : NULL; \
    }

/* "none", then every built-in module; every built-in task; NULL past the last. */
const char *att_module_choice_name(int index);
const char *att_task_choice_name(int index);
/* The values of the options "head" and "neck"; NULL past the last. */
const char *att_head_choice_name(int index);
const char *att_neck_choice_name(int index);
/* The same, with the modules and tasks that are registered with the context. */
const char *att_module_choice_in(const att_context *context, int index);
const char *att_task_choice_in(const att_context *context, int index);

/* A named variant. */
typedef struct att_variant {
    const att_family *family;
    int index; /* index within the family */
    /* The settings of the pretrained tag in the name that differ from the variant's; nothing without a tag. */
    att_config tag;
} att_variant;

const att_family *att_model_family(const att_model *model);
/* The complete options, in the family's struct. */
const void *att_model_settings(const att_model *model);
/* Reads all `count` elements of parameter `index` as f64. Errors: those of att_weights_get(). */
att_status att_model_parameter(const att_model *model, const att_weights *weights, int index, int64_t count,
                               double *values);
/* Sets all elements of parameter `index` of weights in the type of the model's graph, and uses `values` as room. */
att_status att_model_set_parameter(const att_model *model, att_weights *weights, int index, int64_t count,
                                   double *values);
/* The features of the model's network; ATT_NONE for features that it lacks. */
const att_features *att_model_features(const att_model *model);
const att_task *att_model_task_of(const att_model *model);
/* Returns whether `name` is a parameter of a head: that of any task, or the classifier of the model's family. */
bool att_model_is_head(const att_model *model, const char *name);
/* Returns the layer of a parameter, see att_family.layer. */
int att_model_layer(const att_model *model, const char *name);

/* Builds a network of any family, in the list or not; otherwise as att_model_create(). */
att_status att_model_build(att_context *context, const att_variant *variant, const att_option_values *options,
                           att_dtype dtype, att_model **model);
/* Builds the network again with other options (NULL: its own), in the type of its graph and with its preprocessing. */
att_status att_model_rebuild(const att_model *model, const att_option_values *options, att_model **out);

/* Makes the parameters of `model` that differ in shape or grid of patches from those of `from_model`, the same network
 * for images of another size. They are resampled from `from` as att_model_load() does. On success the caller owns
 * *resized and puts it over `from` with att_weights_overlay(); *resized is NULL if no parameter differs. Errors:
 * ERR_UNSUPPORTED if a parameter differs in another way. */
att_status att_model_resize_weights(const att_model *model, const att_model *from_model, const att_weights *from,
                                    const char *backend, att_weights **resized);

int att_family_count(void);
const att_family *att_family_at(int index);
/* Returns the declaration of an option by key or alias, from the first family that has it; NULL if none has. */
const att_option *att_family_option(const char *key);
/* Returns the last family of the list that has a signature among the file's tensors and claims the file; NULL if there
 * is none. */
const att_family *att_family_detect(const att_tensors *file);
/* Returns the family for a file: that of its signature; without one, the family that knows most of its tensors. */
const att_family *att_family_nearest(att_context *context, const att_tensors *file);
/* The functions of att_family that rules can replace. */
att_status att_family_recognise(att_context *context, const att_family *family, const att_tensors *file,
                                att_option_values *found);
bool att_family_is_added(const att_context *context, const att_family *family, const char *name);
/* Returns ERR_UNSUPPORTED if no family knows all of the file's tensors. The message names the family that knows most of
 * them, and the most telling tensor that it does not know. */
att_status att_family_check_tensors(att_context *context, const att_tensors *file);
/* Checks keys and values. Errors: ERR_ARGUMENT if the family lacks a key, or a value is out of range. */
att_status att_family_check(att_context *context, const att_family *family, const att_option_values *options);
/* Logs a note for each number that was given and that the complete options replace. */
void att_family_note_ignored(att_context *context, const att_family *family, const att_option_values *given,
                             const att_option_values *options);
/* Sets the options that follow from others, in place. */
att_status att_family_complete(att_context *context, const att_family *family, att_option_values *options);

int att_variant_count(void);
att_variant att_variant_at(int index);
/* Finds the variant of a name. `text` and errors: as for att_model_resolve(). */
att_status att_variant_find(att_context *context, const char *text, att_variant *variant);
/* Returns the variant's options and preprocessing, with the settings of the pretrained tag applied. given: options
 * known to differ from the variant, which may imply other images (att_variants.images_by); NULL: none. */
void att_variant_defaults(const att_variant *variant, const att_option_values *given, att_option_values *options,
                          att_preprocess *preprocess);

/* Returns the number of keys of a query in the network's largest attention: its tokens, class tokens included, or those
 * of a window; zero tokens around the map of att_pair_attention() count. 0 without attention. */
ATT_FOR_LAB int64_t att_model_tokens(const att_model *model);
/* If the task makes images of its own (att_task.images), sets the option img_size and the preprocessing to these.
 * Returns whether it does. task: a name; "": none. */
bool att_task_take_images(const att_context *context, const char *task, att_option_values *options,
                          att_preprocess *preprocess);
/* Replaces the preprocessing that checkpoints record. Use it if images are prepared in another way. The sides and
 * in_chans are not changed: they are those of the graph. */
ATT_FOR_LAB void att_model_set_preprocess(att_model *model, const att_preprocess *preprocess);

#endif
