/* Hyeon-Woo et al., "Scratching Visual Transformer's Back with Uniform Attention", ICCV 2023. */
#include "lab/papers/results/list.h"

#define PAPER "Hyeon-Woo et al., ICCV 2023"
#define IMAGENET "paper: ViT-S, 300 epochs of ImageNet-1k; here: "
#define FASHION IMAGENET "6 blocks of width 64, 2 epochs of Fashion-MNIST, 3 seeds"
#define TEN IMAGENET "6 blocks of width 64, 2 epochs of Fashion-MNIST, 10 seeds"
#define CIFAR IMAGENET "6 blocks of width 64, 30 epochs of CIFAR-10 in 24 x 24 pixels, 3 seeds"

#define FIGURE(module, instrument, at, how) ATT_READ_NODES("modules=" module, instrument, "mean", at, how)
#define TOP1(module) ATT_READ("modules=" module, "accuracy", "top1")
#define OF_FILE(module, json, path)                                          \
    {                                                                        \
        .setting = "modules=" module, .file = json ".json", .figure = (path) \
    }

#define DIFFERENCE(text, side, a, b)                                                                           \
    {                                                                                                          \
        .says = text, .expects = (side) == ATT_EXPECT_ABOVE ? "above 0" : "below 0", .value = a, .against = b, \
        .expected = (side)                                                                                     \
    }
#define MORE(a, b) DIFFERENCE("top-1 [%] of " a " minus that of " b, ATT_EXPECT_ABOVE, TOP1(a), TOP1(b))
#define LESS(a, b) DIFFERENCE("top-1 [%] of " a " minus that of " b, ATT_EXPECT_BELOW, TOP1(a), TOP1(b))

/* --- tables of accuracy ------------------------------------------------------------------------------------------- */

#define DEEPER "cb@after_mlp:3-5"
#define BOTH "cb@after_attn+cb@after_mlp"
static const att_criterion table1[] = {MORE("uniform_head:how=replace", "none"),
                                       MORE("uniform_head:how=compensate", "none"), MORE("uniform_head", "none")};
static const att_criterion table3[] = {MORE("cb", "none"), MORE("se@after_mlp", "none"), MORE("cb", "se@after_mlp")};
static const att_criterion table4[] = {MORE("cb", "none"), MORE("cb@after_attn", "none"), MORE(BOTH, "none"),
                                       MORE("cb", "cb@after_attn"), MORE("cb", BOTH)};
static const att_criterion table5[] = {MORE("cb@mid_mlp", "none"), MORE("cb", "none"), MORE("cb", "cb@before_mlp")};
static const att_criterion table6[] = {MORE("cb", "none"), MORE("cb_s", "none")};
static const att_criterion table9[] = {MORE(DEEPER, "none"), MORE(DEEPER, "cb")};
static const att_criterion table10[] = {MORE("cb:pool=max", "none"), MORE("cb", "cb:pool=max"),
                                        LESS("cb:pool=class", "none")};

/* --- Table 2 ------------------------------------------------------------------------------------------------------ */

#define COST(number, member)                                        \
    {                                                               \
        .file = "costs.json", .figure = "0.with." number "." member \
    }
static const att_criterion costs[] = {
    {.says = "parameters that cb adds to ViT-S",
     .expects = "below 0.5, so none",
     .value = COST("0", "added_param_count"),
     .expected = ATT_EXPECT_BELOW,
     .bound = 0.5},
    {.says = "parameters that cb_s adds: 12 x 384 = 4608",
     .expects = "below 4608.5",
     .value = COST("1", "added_param_count"),
     .expected = ATT_EXPECT_BELOW,
     .bound = 4608.5},
    {.says = "operations that cb adds, minus those of SE",
     .expects = "below 0",
     .value = COST("0", "added_infer_flops"),
     .against = COST("3", "added_infer_flops"),
     .expected = ATT_EXPECT_BELOW},
};

#define ALL "blocks.*"

/* --- Table 8 ------------------------------------------------------------------------------------------------------ */

#define UNDER(module, json, text)                                                                                    \
    DIFFERENCE("top-1 [%] of " module " minus that of none, " text, ATT_EXPECT_ABOVE, OF_FILE(module, json, "top1"), \
               OF_FILE("none", json, "top1"))
static const att_criterion robustness[] = {
    UNDER("cb", "occluded", "centre occluded"), UNDER("cb_s", "occluded", "centre occluded"),
    UNDER("cb", "fgsm", "attacked by FGSM, 1/255"), UNDER("cb_s", "fgsm", "attacked by FGSM, 1/255")};

/* --- Fig. 2 ------------------------------------------------------------------------------------------------------- */

static const att_criterion extra_layer[] = {
    DIFFERENCE("top-1 [%] with an extra MSA minus that with an extra MLP", ATT_EXPECT_ABOVE,
               ATT_READ("extra_layer=attn", "accuracy", "top1"), ATT_READ("extra_layer=mlp", "accuracy", "top1"))};

/* --- Fig. 7 ------------------------------------------------------------------------------------------------------- */

#define GAIN(heads)                                                                               \
    {                                                                                             \
        .setting = "num_heads=" heads ",modules=cb", .minus = "num_heads=" heads ",modules=none", \
        .figure = "accuracy", .statistic = "top1"                                                 \
    }
static const att_criterion head_counts[] = {
    {.says = "top-1 [%] that CB gains with 1 head", .expects = "above 0", .value = GAIN("1")},
    DIFFERENCE("top-1 [%] that CB gains with 1 head, minus what it gains with 8", ATT_EXPECT_ABOVE, GAIN("1"),
               GAIN("8")),
    DIFFERENCE("top-1 [%] that CB gains with 1 head, minus what it gains with 4", ATT_EXPECT_ABOVE, GAIN("1"),
               GAIN("4")),
};

/* --- Table 7 ------------------------------------------------------------------------------------------------------ */

#define MIOU(module) OF_FILE(module, "whole", "miou")
static const att_criterion streets[] = {
    DIFFERENCE("mIoU [%] of cb minus that of none", ATT_EXPECT_ABOVE, MIOU("cb"), MIOU("none")),
    DIFFERENCE("mIoU [%] of cb_s minus that of none", ATT_EXPECT_ABOVE, MIOU("cb_s"), MIOU("none"))};

/* --- the softmax's Jacobian: uniform rows of 50 tokens ------------------------------------------------------------ */

#define STEEPEST(instrument, statistics, text, uniform)                                          \
    {                                                                                            \
        .says = text " norm of the Jacobian of learned rows, against a uniform row's " #uniform, \
        .expects = "below " #uniform,                                                            \
        .value = ATT_READ_NODES("modules=none", instrument, statistics, ALL, ATT_FOLD_MEAN),     \
        .expected = ATT_EXPECT_BELOW, .bound = (uniform)                                         \
    }
static const att_criterion nuclear[] = {STEEPEST("jacobian", "nuclear", "nuclear", 0.98)};
static const att_criterion frobenius[] = {STEEPEST("jacobian", "frobenius", "Frobenius", 0.14)};
static const att_criterion spectral[] = {STEEPEST("jacobian_spectral", "spectral", "spectral", 0.02)};

static const att_criterion breaks[] = {
    DIFFERENCE("entropy [nats] that a step of length 1 takes from a uniform row, minus from two equal weights",
               ATT_EXPECT_ABOVE, ATT_READ_NODES("modules=none", "entropy_step", "uniform length", ALL, ATT_FOLD_MEAN),
               ATT_READ("modules=none", "entropy_step", "sharp length")),
    DIFFERENCE("the same for a step of learning rate 1", ATT_EXPECT_ABOVE,
               ATT_READ_NODES("modules=none", "entropy_step", "uniform rate", ALL, ATT_FOLD_MEAN),
               ATT_READ("modules=none", "entropy_step", "sharp rate"))};

/* --- Fig. 5 and 6 ------------------------------------------------------------------------------------------------- */

#define DEEP "blocks.3.*,blocks.4.*,blocks.5.*"
static const att_criterion depth[] = {
    DIFFERENCE("entropy of the deeper half of the blocks, cb minus none", ATT_EXPECT_BELOW,
               FIGURE("cb", "entropy", DEEP, ATT_FOLD_MEAN), FIGURE("none", "entropy", DEEP, ATT_FOLD_MEAN)),
    {.says = "distance of attention, cb minus none",
     .expects = "within 5 % of none's",
     .value = FIGURE("cb", "distance", ALL, ATT_FOLD_MEAN),
     .against = FIGURE("none", "distance", ALL, ATT_FOLD_MEAN),
     .expected = ATT_EXPECT_WITHIN,
     .bound = 0.05},
    {.says = "slope over the blocks of the mean scale of cb_s",
     .expects = "above 0",
     .value = FIGURE("cb_s", "cbs_scale", "*", ATT_FOLD_SLOPE),
     .expected = ATT_EXPECT_ABOVE},
};

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define VIT "6 blocks of width 64, 2 epochs of Fashion-MNIST, 5 seeds"
static const att_result results[] = {
    {.info = {"hyeon-woo-nuclear", PAPER, "Section 3, nuclear norm", "The softmax is steepest at uniform attention.",
              VIT, "vit", NULL},
     ATT_CRITERIA(nuclear)},
    {.info = {"hyeon-woo-frobenius", PAPER, "Section 3, Frobenius norm",
              "The softmax is steepest at uniform attention.", VIT, "vit", "the paper names no norm"},
     ATT_CRITERIA(frobenius)},
    {.info = {"hyeon-woo-spectral", PAPER, "Section 3, spectral norm", "The softmax is steepest at uniform attention.",
              VIT, "vit", "the paper names no norm"},
     ATT_CRITERIA(spectral)},
    {.info = {"hyeon-woo-step", PAPER, "Section 3", "A single gradient step breaks uniform attention.", VIT, "vit",
              "the paper does not define the step: it is compared with the same step from a row of two equal weights"},
     ATT_CRITERIA(breaks)},
    {.info =
         {"hyeon-woo-fig2", PAPER, "Fig. 2", "An extra MSA after the last block helps more than an extra MLP.",
          "paper: a ViT of 8 blocks, 300 epochs of ImageNet-1k; here: 8 blocks of width 64, 2 epochs of Fashion-MNIST, "
          "10 seeds",
          "extra-layer", NULL},
     ATT_CRITERIA(extra_layer)},
    {.info = {"hyeon-woo-fig3", PAPER, "Fig. 3", "The attention of ViT-S is dense: 4.4 nats of 5.28.",
              "paper: ViT-S trained on ImageNet-1k", NULL,
              "no verdict without weights of ViT-S from the authors; attscope measure IMAGES --checkpoint FILE --with "
              "entropy --maps 8 shows both for any ViT"}},
    {.info = {"hyeon-woo-table1", PAPER, "Table 1", "A uniform head helps, whether it replaces a head or is appended.",
              FASHION, "uniform", NULL},
     ATT_CRITERIA(table1)},
    {.info = {"hyeon-woo-table2", PAPER, "Table 2", "CB costs no parameters and less than SE.",
              "exact, at full scale; every addition and multiplication counts, while the paper's torchprofile counts "
              "products of matrices only",
              "costs", NULL},
     ATT_CRITERIA(costs)},
    {.info = {"hyeon-woo-table3", PAPER, "Table 3", "CB helps more than SE, and SE helps.", TEN, "uniform-ten", NULL},
     ATT_CRITERIA(table3)},
    {.info = {"hyeon-woo-table4", PAPER, "Table 4",
              "CB helps in the MLP, after attention and in both; most in the MLP.", FASHION, "uniform", NULL},
     ATT_CRITERIA(table4)},
    {.info = {"hyeon-woo-table5", PAPER, "Table 5", "In the MLP, CB helps in the middle and at the end.", FASHION,
              "uniform", NULL},
     ATT_CRITERIA(table5)},
    {.info = {"hyeon-woo-table6", PAPER, "Table 6", "CB and CB_S are more accurate than none.", CIFAR, "context",
              "about 7,400 hours of two cores for each network and seed at full scale, at the 14.4 images/s of ViT-S "
              "in f32 "
              "(docs/performance.md): recipes/cb-vit-s.yaml"},
     ATT_CRITERIA(table6)},
    {.info =
         {"hyeon-woo-table7", PAPER, "Table 7", "CB adds 0.4 to 1.0 mIoU to UPerNet on ADE20K.",
          "paper: ADE20K, 40,000 updates of 512 x 512 pixels; here: UPerNet of 64 channels over DeiT-Tiny, CamVid, 960 "
          "updates of 320 x 240 pixels, 3 seeds",
          "streets",
          "about 1,300 hours of two cores for each network at full scale, at 0.14 images/s of ViT-S: "
          "recipes/upernet-cb-vit.yaml"},
     ATT_CRITERIA(streets)},
    {.info = {"hyeon-woo-table8", PAPER, "Table 8", "CB and CB_S make the network more robust.", CIFAR, "context",
              NULL},
     ATT_CRITERIA(robustness)},
    {.info = {"hyeon-woo-table9", PAPER, "Table 9", "CB in the deeper half of the blocks is better than in all.", TEN,
              "uniform-ten", NULL},
     ATT_CRITERIA(table9)},
    {.info = {"hyeon-woo-table10", PAPER, "Table 10", "The maximum helps less than the mean; the class token hurts.",
              FASHION, "uniform", NULL},
     ATT_CRITERIA(table10)},
    {.info = {"hyeon-woo-fig5", PAPER, "Fig. 5 and 6",
              "CB lowers entropy in deeper blocks and keeps the distance; the scale of CB_S rises with depth.", CIFAR,
              "context", NULL},
     ATT_CRITERIA(depth)},
    {.info = {"hyeon-woo-fig7", PAPER, "Fig. 7", "CB gains most with few heads.",
              IMAGENET "6 blocks of width 64, 2 epochs of Fashion-MNIST, 3 seeds", "head-counts", NULL},
     ATT_CRITERIA(head_counts)},
};

const att_results_table att_results_hyeon_woo = {results, sizeof results / sizeof *results};
