/* Residual networks: ResNet (He et al., CVPR 2016) as in timm and torchvision, also with the stems and shortcuts of He
 * et al., CVPR 2019 (the "d" and "t" variants); Wide ResNet (Zagoruyko, Komodakis, BMVC 2016); ResNeXt (Xie et al.,
 * CVPR 2017); SE (Hu et al., CVPR 2018) and ECA (Wang et al., CVPR 2020) networks; networks for CIFAR of He et al. with
 * option-A shortcuts, and bottleneck networks for CIFAR, post-activation and pre-activation (He et al., ECCV 2016).
 * Dimensions and preprocessing are those of timm 1.0, and for CIFAR those of public training codes, whose tensor names
 * are used. */
#include "networks/models/resnet.h"

#include <stdio.h>
#include <string.h>

static const char SMALL_STEM[] = "conv3";

typedef struct resnet_style {
    const char *block, *stem_type, *shortcut;
    int width, zero_init_last;
} resnet_style;

static const resnet_style basic = {"basic", "conv7", "conv", 64, 1}, basic_d = {"basic", "deep", "avg_conv", 64, 1},
                          basic_t = {"basic", "deep_tiered", "avg_conv", 64, 1},
                          plain = {"bottleneck", "conv7", "conv", 64, 1}, deep = {"bottleneck", "deep", "conv", 64, 1},
                          bag = {"bottleneck", "deep", "avg_conv", 64, 1},
                          tiered = {"bottleneck", "deep_tiered", "avg_conv", 64, 1},
                          light = {"bottleneck", "conv7", "avg_conv", 64, 1},
                          cifar_a = {"basic", SMALL_STEM, "pad", 16, 0},
                          cifar = {"bottleneck", SMALL_STEM, "conv", 16, 0},
                          cifar_preact = {"preact", SMALL_STEM, "conv", 16, 0};

typedef struct resnet_images {
    double mean[3], std[3];
    const char *interpolation;
} resnet_images;

static const resnet_images imagenet = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "bicubic"},
                           linear = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "bilinear"},
                           colours = {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}, "bilinear"};

static const char RESNET[] = "ResNet (He et al., CVPR 2016)";
static const char TRICKS[] = "ResNet with a bag of tricks (He et al., CVPR 2019)";
static const char WIDE[] = "Wide ResNet (Zagoruyko, Komodakis, BMVC 2016)";
static const char RESNEXT[] = "ResNeXt (Xie et al., CVPR 2017)";
static const char SENET[] = "squeeze and excitation (Hu et al., CVPR 2018)";
static const char ECANET[] = "efficient channel attention (Wang et al., CVPR 2020)";
static const char CIFAR[] = "ResNet for CIFAR (He et al., CVPR 2016)";
static const char PREACT[] = "pre-activation ResNet for CIFAR (He et al., ECCV 2016)";

static const char L18[] = "2,2,2,2", L50[] = "3,4,6,3", L101[] = "3,4,23,3", L152[] = "3,8,36,3", L200[] = "3,24,36,3",
                  L269[] = "3,30,48,8", L14[] = "1,1,1,1", LIGHT[] = "1,1,11,3";

static const struct resnet_variant {
    const char *name, *summary;
    const resnet_style *style;
    const char *layers; /* NULL: from the depth */
    int depth, cardinality, base_width;
    const char *modules;
    int img_size;
    double crop_pct;
    const resnet_images *images;
} variants[] = {
    {"resnet10t", TRICKS, &basic_t, L14, 0, 1, 64, "none", 176, 0.875, &imagenet},
    {"resnet14t", TRICKS, &tiered, L14, 0, 1, 64, "none", 176, 0.875, &imagenet},
    {"resnet18", RESNET, &basic, L18, 0, 1, 64, "none", 224, 0.95, &imagenet},
    {"resnet18d", TRICKS, &basic_d, L18, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet26", RESNET, &plain, L18, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet26d", TRICKS, &bag, L18, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet26t", TRICKS, &tiered, L18, 0, 1, 64, "none", 256, 0.94, &imagenet},
    {"resnet34", RESNET, &basic, L50, 0, 1, 64, "none", 224, 0.95, &imagenet},
    {"resnet34d", TRICKS, &basic_d, L50, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet50", RESNET, &plain, L50, 0, 1, 64, "none", 224, 0.95, &imagenet},
    {"resnet50c", TRICKS, &deep, L50, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet50d", TRICKS, &bag, L50, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet50t", TRICKS, &tiered, L50, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet101", RESNET, &plain, L101, 0, 1, 64, "none", 224, 0.95, &imagenet},
    {"resnet101c", TRICKS, &deep, L101, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet101d", TRICKS, &bag, L101, 0, 1, 64, "none", 256, 0.95, &imagenet},
    {"resnet152", RESNET, &plain, L152, 0, 1, 64, "none", 224, 0.95, &imagenet},
    {"resnet152c", TRICKS, &deep, L152, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet152d", TRICKS, &bag, L152, 0, 1, 64, "none", 256, 0.95, &imagenet},
    {"resnet200", RESNET, &plain, L200, 0, 1, 64, "none", 224, 0.875, &imagenet},
    {"resnet200d", TRICKS, &bag, L200, 0, 1, 64, "none", 256, 0.95, &imagenet},
    {"wide_resnet50_2", WIDE, &plain, L50, 0, 1, 128, "none", 224, 0.875, &imagenet},
    {"wide_resnet101_2", WIDE, &plain, L101, 0, 1, 128, "none", 224, 0.875, &linear},
    {"resnext50_32x4d", RESNEXT, &plain, L50, 0, 32, 4, "none", 224, 0.95, &imagenet},
    {"resnext50d_32x4d", RESNEXT, &bag, L50, 0, 32, 4, "none", 224, 0.875, &imagenet},
    {"resnext101_32x4d", RESNEXT, &plain, L101, 0, 32, 4, "none", 224, 0.875, &linear},
    {"resnext101_32x8d", RESNEXT, &plain, L101, 0, 32, 8, "none", 224, 0.875, &linear},
    {"resnext101_32x16d", RESNEXT, &plain, L101, 0, 32, 16, "none", 224, 0.875, &linear},
    {"resnext101_32x32d", RESNEXT, &plain, L101, 0, 32, 32, "none", 224, 0.875, &linear},
    {"resnext101_64x4d", RESNEXT, &plain, L101, 0, 64, 4, "none", 224, 0.95, &imagenet},
    {"seresnet18", SENET, &basic, L18, 0, 1, 64, "se:divisor=8", 224, 0.875, &imagenet},
    {"seresnet34", SENET, &basic, L50, 0, 1, 64, "se:divisor=8", 224, 0.875, &imagenet},
    {"seresnet50", SENET, &plain, L50, 0, 1, 64, "se", 224, 0.95, &imagenet},
    {"seresnet50t", SENET, &tiered, L50, 0, 1, 64, "se", 224, 0.875, &imagenet},
    {"seresnet101", SENET, &plain, L101, 0, 1, 64, "se", 224, 0.875, &imagenet},
    {"seresnet152", SENET, &plain, L152, 0, 1, 64, "se", 224, 0.875, &imagenet},
    {"seresnet152d", SENET, &bag, L152, 0, 1, 64, "se", 256, 0.95, &imagenet},
    {"seresnet200d", SENET, &bag, L200, 0, 1, 64, "se", 256, 0.875, &imagenet},
    {"seresnet269d", SENET, &bag, L269, 0, 1, 64, "se", 256, 0.875, &imagenet},
    {"seresnext26d_32x4d", SENET, &bag, L18, 0, 32, 4, "se", 224, 0.875, &imagenet},
    {"seresnext26t_32x4d", SENET, &tiered, L18, 0, 32, 4, "se", 224, 0.875, &imagenet},
    {"seresnext50_32x4d", SENET, &plain, L50, 0, 32, 4, "se", 224, 0.875, &imagenet},
    {"seresnext101_32x4d", SENET, &plain, L101, 0, 32, 4, "se", 224, 0.875, &imagenet},
    {"seresnext101_32x8d", SENET, &plain, L101, 0, 32, 8, "se", 224, 0.95, &imagenet},
    {"seresnext101d_32x8d", SENET, &bag, L101, 0, 32, 8, "se", 224, 0.95, &imagenet},
    {"seresnext101_64x4d", SENET, &plain, L101, 0, 64, 4, "se", 224, 0.875, &imagenet},
    {"ecaresnet26t", ECANET, &tiered, L18, 0, 1, 64, "eca", 256, 0.875, &imagenet},
    {"ecaresnet50d", ECANET, &bag, L50, 0, 1, 64, "eca", 224, 0.875, &imagenet},
    {"ecaresnet50t", ECANET, &tiered, L50, 0, 1, 64, "eca", 256, 0.875, &imagenet},
    {"ecaresnet101d", ECANET, &bag, L101, 0, 1, 64, "eca", 224, 0.875, &imagenet},
    {"ecaresnet200d", ECANET, &bag, L200, 0, 1, 64, "eca", 256, 0.95, &imagenet},
    {"ecaresnet269d", ECANET, &bag, L269, 0, 1, 64, "eca", 320, 0.95, &imagenet},
    {"ecaresnetlight", ECANET, &light, LIGHT, 0, 1, 64, "eca", 224, 0.875, &imagenet},
    {"ecaresnext26t_32x4d", ECANET, &tiered, L18, 0, 32, 4, "eca", 224, 0.875, &imagenet},
    {"ecaresnext50t_32x4d", ECANET, &tiered, L50, 0, 32, 4, "eca", 224, 0.875, &imagenet},
    {"resnet20", CIFAR, &cifar_a, NULL, 20, 1, 64, "none", 32, 1, &linear},
    {"resnet32", CIFAR, &cifar_a, NULL, 32, 1, 64, "none", 32, 1, &linear},
    {"resnet44", CIFAR, &cifar_a, NULL, 44, 1, 64, "none", 32, 1, &linear},
    {"resnet56", CIFAR, &cifar_a, NULL, 56, 1, 64, "none", 32, 1, &linear},
    {"resnet110", CIFAR, &cifar_a, NULL, 110, 1, 64, "none", 32, 1, &linear},
    {"resnet29", CIFAR, &cifar, NULL, 29, 1, 64, "none", 32, 1, &colours},
    {"resnet164", CIFAR, &cifar, NULL, 164, 1, 64, "none", 32, 1, &colours},
    {"preresnet29", PREACT, &cifar_preact, NULL, 29, 1, 64, "none", 32, 1, &colours},
    {"preresnet164", PREACT, &cifar_preact, NULL, 164, 1, 64, "none", 32, 1, &colours},
};

static att_model_info resnet_info(int index)
{
    const struct resnet_variant *variant = &variants[index];
    return (att_model_info){
        .name = variant->name, .summary = variant->summary, .height = variant->img_size, .width = variant->img_size};
}

/* Whether the caller chooses the stem for small images for a network that has another stem. The network is then meant
 * for images like those of CIFAR. */
static bool is_made_small(const resnet_style *style, const att_option_values *given)
{
    return strcmp(att_options_text(given, "stem_type"), SMALL_STEM) == 0 && strcmp(style->stem_type, SMALL_STEM) != 0;
}

static void set_images(const resnet_images *images, int img_size, double crop_pct, att_preprocess *preprocess)
{
    *preprocess = (att_preprocess){
        .height = img_size, .width = img_size, .in_chans = 3, .crop_pct = crop_pct, .crop_mode = "center"};
    memcpy(preprocess->mean, images->mean, sizeof preprocess->mean);
    memcpy(preprocess->std, images->std, sizeof preprocess->std);
    snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", images->interpolation);
}

static void resnet_defaults(int index, const att_option_values *given, att_option_values *options,
                            att_preprocess *preprocess)
{
    const struct resnet_variant *variant = &variants[index];
    const resnet_style *style = variant->style;
    if (is_made_small(style, given))
        set_images(&colours, 32, 1, preprocess);
    else
        set_images(variant->images, variant->img_size, variant->crop_pct, preprocess);
    att_resnet_options o;
    att_options_clear(&att_resnet_table, &o);
    o.img_size[0] = preprocess->height;
    o.img_size[1] = preprocess->width;
    o.in_chans = 3;
    o.num_classes = variant->layers ? 1000 : 10;
    o.drop_rate = o.drop_path_rate = 0;
    if (!variant->layers)
        o.depth = variant->depth;
    o.width = style->width;
    o.cardinality = variant->cardinality;
    o.base_width = variant->base_width;
    o.zero_init_last = style->zero_init_last;
    snprintf(o.global_pool, sizeof o.global_pool, "avg");
    snprintf(o.block, sizeof o.block, "%s", style->block);
    snprintf(o.stem_type, sizeof o.stem_type, "%s", style->stem_type);
    snprintf(o.shortcut, sizeof o.shortcut, "%s", style->shortcut);
    snprintf(o.layers, sizeof o.layers, "%s", variant->layers ? variant->layers : "");
    snprintf(o.modules, sizeof o.modules, "%s", variant->modules);
    snprintf(o.attention_layers, sizeof o.attention_layers, "none");
    att_options_write(&att_resnet_table, &o, options);
}

/* Networks for CIFAR, recognised by padded shortcuts, name the classifier "linear"; the others "fc". */
static att_classifier_form resnet_classifier(const void *options)
{
    const att_resnet_options *o = options;
    return (att_classifier_form){.scope = strcmp(o->shortcut, "pad") == 0 ? "linear" : "fc",
                                 .build = att_nn_classifier};
}

/* stem_width and avg_down may have any value because the tensors show them. */
static const att_accepted_argument resnet_arguments[] = {
    {"drop_block_rate", ATT_ANY_VALUE},
    {"output_stride", "32"},
    {"block_reduce_first", "1"},
    {"down_kernel_size", "1"},
    {"act_layer", "relu"},
    {"replace_stem_pool", "false"},
    {"norm_layer", "batchnorm"},
    {"norm_layer", "batchnorm2d"},
    {"stem_width", ATT_ANY_VALUE},
    {"avg_down", ATT_ANY_VALUE},
    {NULL, NULL},
};

static const att_module_hook hooks[] = {
    {"after_branch", "at the end of a residual branch, before the addition", ATT_ON_MAPS},
};
const att_hooks att_resnet_hooks = {hooks, sizeof hooks / sizeof *hooks};

extern const att_family att_family_resnet;

const att_family att_family_resnet = {
    .name = "resnet",
    .signatures = {"layer1.0.conv1.weight"},
    .options = &att_resnet_table,
    .hooks = {hooks, sizeof hooks / sizeof *hooks},
    .accepted_arguments = resnet_arguments,
    .classifier = resnet_classifier,
    .variant_count = sizeof variants / sizeof *variants,
    .variant = resnet_info,
    .defaults = resnet_defaults,
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
    .attention_layers = att_resnet_attention_layers,
};
