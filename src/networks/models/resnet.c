/* Residual networks: ResNet (He et al., CVPR 2016) as in timm and torchvision, also with the stems and shortcuts of He
 * et al., CVPR 2019 (the "d" and "t" variants); Wide ResNet (Zagoruyko, Komodakis, BMVC 2016); ResNeXt (Xie et al.,
 * CVPR 2017); SE (Hu et al., CVPR 2018) and ECA (Wang et al., CVPR 2020) networks; networks for CIFAR of He et al. with
 * option-A shortcuts, and bottleneck networks for CIFAR, post-activation and pre-activation (He et al., ECCV 2016).
 * Dimensions and preprocessing are those of timm 1.0, and for CIFAR those of public training codes, whose tensor names
 * are used. */
#include "networks/models/resnet.h"

#include <string.h>

#include "networks/models/checkpoint.h"
#include "networks/models/variants.h"

static const char RESNET[] = "ResNet (He et al., CVPR 2016)";
static const char TRICKS[] = "ResNet with a bag of tricks (He et al., CVPR 2019)";
static const char WIDE[] = "Wide ResNet (Zagoruyko, Komodakis, BMVC 2016)";
static const char RESNEXT[] = "ResNeXt (Xie et al., CVPR 2017)";
static const char SENET[] = "squeeze and excitation (Hu et al., CVPR 2018)";
static const char ECANET[] = "efficient channel attention (Wang et al., CVPR 2020)";
static const char CIFAR[] = "ResNet for CIFAR (He et al., CVPR 2016)";
static const char PREACT[] = "pre-activation ResNet for CIFAR (He et al., ECCV 2016)";

/* Blocks of each stage. */
#define L18 "layers=2,2,2,2 "
#define L50 "layers=3,4,6,3 "
#define L101 "layers=3,4,23,3 "
#define L152 "layers=3,8,36,3 "
#define L200 "layers=3,24,36,3 "
#define L269 "layers=3,30,48,8 "
#define L14 "layers=1,1,1,1 "
#define L_LIGHT "layers=1,1,11,3 "

/* Kinds of blocks, stems and shortcuts. */
#define BAG "stem_type=deep shortcut=avg_conv "
#define DEEP "stem_type=deep "
#define TIERED "stem_type=deep_tiered shortcut=avg_conv "
#define LIGHT "shortcut=avg_conv "
#define BASIC "block=basic "
#define BASIC_D BASIC BAG
#define BASIC_T BASIC TIERED
#define SMALL_STEM "stem_pool=false "
#define SMALL "stem_type=conv3 width=16 zero_init_last=false " SMALL_STEM
#define CIFAR_A BASIC SMALL ATT_IMAGENET ATT_LINEAR_IMAGES "shortcut=pad "
#define CIFAR_B SMALL ATT_CIFAR
#define CIFAR_PREACT "block=preact " CIFAR_B
#define KUANGLIU "act_shortcut=true final_norm=false stem_type=conv3 zero_init_last=false " SMALL_STEM ATT_CIFAR
#define KUANGLIU_BASIC "block=preact_basic " KUANGLIU
#define KUANGLIU_BOTTLENECK "block=preact " KUANGLIU
#define WRN "block=preact_basic act_shortcut=true stem_channels=16 " CIFAR_B

static const att_variant_row rows[] = {
    {"resnet10t", TRICKS, 176, 1000, 0.875, BASIC_T L14},
    {"resnet14t", TRICKS, 176, 1000, 0.875, TIERED L14},
    {"resnet18", RESNET, 224, 1000, 0.95, BASIC L18},
    {"resnet18d", TRICKS, 224, 1000, 0.875, BASIC_D L18},
    {"resnet26", RESNET, 224, 1000, 0.875, L18},
    {"resnet26d", TRICKS, 224, 1000, 0.875, BAG L18},
    {"resnet26t", TRICKS, 256, 1000, 0.94, TIERED L18},
    {"resnet34", RESNET, 224, 1000, 0.95, BASIC L50},
    {"resnet34d", TRICKS, 224, 1000, 0.875, BASIC_D L50},
    {"resnet50", RESNET, 224, 1000, 0.95, L50},
    {"resnet50c", TRICKS, 224, 1000, 0.875, DEEP L50},
    {"resnet50d", TRICKS, 224, 1000, 0.875, BAG L50},
    {"resnet50t", TRICKS, 224, 1000, 0.875, TIERED L50},
    {"resnet101", RESNET, 224, 1000, 0.95, L101},
    {"resnet101c", TRICKS, 224, 1000, 0.875, DEEP L101},
    {"resnet101d", TRICKS, 256, 1000, 0.95, BAG L101},
    {"resnet152", RESNET, 224, 1000, 0.95, L152},
    {"resnet152c", TRICKS, 224, 1000, 0.875, DEEP L152},
    {"resnet152d", TRICKS, 256, 1000, 0.95, BAG L152},
    {"resnet200", RESNET, 224, 1000, 0.875, L200},
    {"resnet200d", TRICKS, 256, 1000, 0.95, BAG L200},
    {"wide_resnet50_2", WIDE, 224, 1000, 0.875, L50 "base_width=128 "},
    {"wide_resnet101_2", WIDE, 224, 1000, 0.875, L101 "base_width=128 " ATT_LINEAR_IMAGES},
    {"resnext50_32x4d", RESNEXT, 224, 1000, 0.95, L50 "cardinality=32 base_width=4 "},
    {"resnext50d_32x4d", RESNEXT, 224, 1000, 0.875, BAG L50 "cardinality=32 base_width=4 "},
    {"resnext101_32x4d", RESNEXT, 224, 1000, 0.875, L101 "cardinality=32 base_width=4 " ATT_LINEAR_IMAGES},
    {"resnext101_32x8d", RESNEXT, 224, 1000, 0.875, L101 "cardinality=32 base_width=8 " ATT_LINEAR_IMAGES},
    {"resnext101_32x16d", RESNEXT, 224, 1000, 0.875, L101 "cardinality=32 base_width=16 " ATT_LINEAR_IMAGES},
    {"resnext101_32x32d", RESNEXT, 224, 1000, 0.875, L101 "cardinality=32 base_width=32 " ATT_LINEAR_IMAGES},
    {"resnext101_64x4d", RESNEXT, 224, 1000, 0.95, L101 "cardinality=64 base_width=4 "},
    {"seresnet18", SENET, 224, 1000, 0.875, BASIC L18 "modules=se:divisor=8 "},
    {"seresnet34", SENET, 224, 1000, 0.875, BASIC L50 "modules=se:divisor=8 "},
    {"seresnet50", SENET, 224, 1000, 0.95, L50 "modules=se "},
    {"seresnet50t", SENET, 224, 1000, 0.875, TIERED L50 "modules=se "},
    {"seresnet101", SENET, 224, 1000, 0.875, L101 "modules=se "},
    {"seresnet152", SENET, 224, 1000, 0.875, L152 "modules=se "},
    {"seresnet152d", SENET, 256, 1000, 0.95, BAG L152 "modules=se "},
    {"seresnet200d", SENET, 256, 1000, 0.875, BAG L200 "modules=se "},
    {"seresnet269d", SENET, 256, 1000, 0.875, BAG L269 "modules=se "},
    {"seresnext26d_32x4d", SENET, 224, 1000, 0.875, BAG L18 "cardinality=32 base_width=4 modules=se "},
    {"seresnext26t_32x4d", SENET, 224, 1000, 0.875, TIERED L18 "cardinality=32 base_width=4 modules=se "},
    {"seresnext50_32x4d", SENET, 224, 1000, 0.875, L50 "cardinality=32 base_width=4 modules=se "},
    {"seresnext101_32x4d", SENET, 224, 1000, 0.875, L101 "cardinality=32 base_width=4 modules=se "},
    {"seresnext101_32x8d", SENET, 224, 1000, 0.95, L101 "cardinality=32 base_width=8 modules=se "},
    {"seresnext101d_32x8d", SENET, 224, 1000, 0.95, BAG L101 "cardinality=32 base_width=8 modules=se "},
    {"seresnext101_64x4d", SENET, 224, 1000, 0.875, L101 "cardinality=64 base_width=4 modules=se "},
    {"ecaresnet26t", ECANET, 256, 1000, 0.875, TIERED L18 "modules=eca "},
    {"ecaresnet50d", ECANET, 224, 1000, 0.875, BAG L50 "modules=eca "},
    {"ecaresnet50t", ECANET, 256, 1000, 0.875, TIERED L50 "modules=eca "},
    {"ecaresnet101d", ECANET, 224, 1000, 0.875, BAG L101 "modules=eca "},
    {"ecaresnet200d", ECANET, 256, 1000, 0.95, BAG L200 "modules=eca "},
    {"ecaresnet269d", ECANET, 320, 1000, 0.95, BAG L269 "modules=eca "},
    {"ecaresnetlight", ECANET, 224, 1000, 0.875, LIGHT L_LIGHT "modules=eca "},
    {"ecaresnext26t_32x4d", ECANET, 224, 1000, 0.875, TIERED L18 "cardinality=32 base_width=4 modules=eca "},
    {"ecaresnext50t_32x4d", ECANET, 224, 1000, 0.875, TIERED L50 "cardinality=32 base_width=4 modules=eca "},
    {"resnet20", CIFAR, 32, 10, 1, CIFAR_A "depth=20 "},
    {"resnet32", CIFAR, 32, 10, 1, CIFAR_A "depth=32 "},
    {"resnet44", CIFAR, 32, 10, 1, CIFAR_A "depth=44 "},
    {"resnet56", CIFAR, 32, 10, 1, CIFAR_A "depth=56 "},
    {"resnet110", CIFAR, 32, 10, 1, CIFAR_A "depth=110 "},
    {"resnet29", CIFAR, 32, 10, 1, CIFAR_B "depth=29 "},
    {"resnet164", CIFAR, 32, 10, 1, CIFAR_B "depth=164 "},
    {"preresnet29", PREACT, 32, 10, 1, CIFAR_PREACT "depth=29 "},
    {"preresnet164", PREACT, 32, 10, 1, CIFAR_PREACT "depth=164 "},
    {"preresnet18", PREACT, 32, 10, 1, KUANGLIU_BASIC L18},
    {"preresnet34", PREACT, 32, 10, 1, KUANGLIU_BASIC L50},
    {"preresnet50", PREACT, 32, 10, 1, KUANGLIU_BOTTLENECK L50},
    {"preresnet101", PREACT, 32, 10, 1, KUANGLIU_BOTTLENECK L101},
    {"preresnet152", PREACT, 32, 10, 1, KUANGLIU_BOTTLENECK L152},
    {"wide_resnet16_8", WIDE, 32, 10, 1, "width=128 layers=2,2,2 " WRN},
    {"wide_resnet28_10", WIDE, 32, 10, 1, "width=160 layers=4,4,4 " WRN},
    {"wide_resnet40_2", WIDE, 32, 10, 1, "width=32 layers=6,6,6 " WRN},
};

/* Networks that are given the stem for small images are meant for images like those of CIFAR. */
static const att_variants variants = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .shared = ATT_IMAGENET
    "block=bottleneck stem_type=conv7 shortcut=conv width=64 cardinality=1 base_width=64 "
    "stem_pool=true stride_in_1x1=false output_stride=32 zero_init_last=true global_pool=avg "
    "act_shortcut=false final_norm=true attention_layers=none",
    .images_by = {.key = "stem_type", .value = "conv3", .settings = SMALL_STEM "img_size=32 crop_pct=1 " ATT_CIFAR}};

/* Networks for CIFAR, recognised by padded shortcuts, name the classifier "linear"; the others "fc". */
static att_classifier_form resnet_classifier(const void *options)
{
    const att_resnet_options *o = options;
    return (att_classifier_form){.scope = strcmp(o->shortcut, "pad") == 0 ? "linear" : "fc",
                                 .build = att_nn_classifier};
}

/* stem_width and avg_down may have any value because the tensors show them. A member of an argument that is a mapping
 * follows a dot, and names a module that they show. */
static const att_accepted_argument resnet_arguments[] = {
    {"drop_block_rate", ATT_ANY_VALUE}, {"block_reduce_first", "1"},
    {"down_kernel_size", "1"},          {"act_layer", "relu"},
    {"replace_stem_pool", "false"},     {"norm_layer", "batchnorm"},
    {"norm_layer", "batchnorm2d"},      {"stem_width", ATT_ANY_VALUE},
    {"avg_down", ATT_ANY_VALUE},        {"block_args.attn_layer", "se"},
    {"block_args.attn_layer", "eca"},   {NULL, NULL},
};

/* timm's networks without avg_down may have other shortcuts here, which the tensors show. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (strcmp(key, "avg_down") != 0 || fact->kind != ATT_FACT_NUMBERS || fact->numbers[0] != 1)
        return false;
    if (!att_options_find(options, "shortcut"))
        att_options_set_text(options, "shortcut", "avg_conv");
    return true;
}

/* timm's stem has 64 channels, those of three convolutions twice stem_width. */
static bool give_stem(const char *stem, att_json_writer *writer)
{
    const bool plain = strcmp(stem, "conv7") == 0;
    if (strcmp(stem, "conv3") == 0)
        return false;
    att_json_put_string(writer, "stem_type", plain ? "" : stem);
    att_json_put_integer(writer, "stem_width", plain ? 64 : 32);
    return true;
}

/* timm's modules have no options; its hidden widths are multiples of 8. */
static bool give_modules(const att_timm_network *network, const char *modules, att_json_writer *writer)
{
    const bool basic = strcmp(att_options_text(network->options, "block"), "basic") == 0,
               gated = att_checkpoint_lists(basic ? "se:divisor=8" : "se se:divisor=8", modules),
               eca = strcmp(modules, "eca") == 0;
    if (!gated && !eca && strcmp(modules, "none") != 0)
        return false;
    att_json_put_object(writer, "block_args");
    if (gated || eca)
        att_json_put_string(writer, "attn_layer", gated ? "se" : "eca");
    att_json_end_object(writer);
    return true;
}

static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    const char *text = att_options_text(network->options, option->key);
    if (att_checkpoint_lists("img_size depth", option->key)) /* any size; the depth follows from the layers */
        return true;
    if (strcmp(option->key, "layers") == 0)
        return att_timm_give_list(text, option->key, writer);
    if (strcmp(option->key, "stem_type") == 0)
        return give_stem(text, writer);
    if (strcmp(option->key, "modules") == 0)
        return give_modules(network, text, writer);
    if (strcmp(option->key, "shortcut") != 0)
        return att_timm_give_of("in_chans cardinality base_width output_stride", network, option, writer);
    att_json_put_bool(writer, "avg_down", strcmp(text, "avg_conv") == 0);
    return strcmp(text, "pad") != 0;
}

static const att_timm_form timm_form = {.give_argument = give_argument};

extern const att_family att_family_resnet;

const att_family att_family_resnet = {
    .name = "resnet",
    .signatures = {"layer1.0.conv1.weight"},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &att_resnet_table,
    .hooks = ATT_BRANCH_HOOK_SET,
    .accepted_arguments = resnet_arguments,
    .take_argument = take_argument,
    .timm = &timm_form,
    .classifier = resnet_classifier,
    .variants = &variants,
    .complete = att_resnet_complete,
    .build = att_resnet_build,
    .foreign = att_resnet_foreign,
    .recognise = att_resnet_recognise,
    .fit = att_resnet_fit,
    .check_undetermined = att_resnet_check_undetermined,
    .is_added = att_resnet_is_added,
    .layer = att_resnet_layer,
    .alias = att_resnet_alias,
    .convolution = att_resnet_convolution,
};
