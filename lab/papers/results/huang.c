/* Huang et al., "Understanding Self-attention Mechanism via Dynamical System Perspective", ICCV 2023. */
#include "lab/papers/results/list.h"

#define PAPER "Huang et al., ICCV 2023"
#define MODULES "modules"
#define SCALE                                                                                                     \
    "paper: ResNet-164, 164 epochs, CIFAR-100 and STL-10, 5 seeds; here: resnet29, 6 epochs, CIFAR-10, 3 seeds, " \
    "10,000 test images"

#define SETTING(module) "modules=" module
#define FIGURE(module, instrument, statistics) ATT_READ(SETTING(module), instrument, statistics)
/* A reading of a module minus that of the network without a module. */
#define AGAINST_NONE(text, module, reading)                                                               \
    {                                                                                                     \
        .says = text " of " module " minus that of none", .expects = "above 0", .value = reading(module), \
        .against = reading("none"), .expected = ATT_EXPECT_ABOVE                                          \
    }

/* --- Fig. 2 ------------------------------------------------------------------------------------------------------- */

#define TNS_ATTENTION(module) FIGURE(module, "tns", "tns attention")
#define TNS_GATED(module) FIGURE(module, "tns", "tns gated")
#define TNS_UNIT(module) FIGURE(module, "tns", "tns unit")
#define TNS_OF(text, reading)                                                                      \
    AGAINST_NONE("TNS (" text ")", "se", reading), AGAINST_NONE("TNS (" text ")", "eca", reading), \
        AGAINST_NONE("TNS (" text ")", "fca", reading), AGAINST_NONE("TNS (" text ")", "srm", reading)
static const att_criterion stiffness[] = {TNS_OF("attention", TNS_ATTENTION), TNS_OF("gated", TNS_GATED),
                                          TNS_OF("unit", TNS_UNIT)};

/* --- Fig. 3: the first block of each stage is left out, as in TNS ------------------------------------------------- */

#define ZETA(module, stage, fold) \
    ATT_READ_NODES(SETTING(module), "nsi", "attention", "layer" stage ".1.add,layer" stage ".2.add", fold)
#define IN_STAGE(stage, text, how)                                                                                \
    {                                                                                                             \
        .says = text " in stage " stage ", se minus none", .expects = "above 0", .value = ZETA("se", stage, how), \
        .against = ZETA("none", stage, how), .expected = ATT_EXPECT_ABOVE                                         \
    }
#define STAGE(stage) \
    IN_STAGE(stage, "mean zeta", ATT_FOLD_MEAN), IN_STAGE(stage, "largest zeta over mean zeta", ATT_FOLD_PEAK)
static const att_criterion trajectory[] = {STAGE("1"), STAGE("2"), STAGE("3")};

/* --- Fig. 6 ------------------------------------------------------------------------------------------------------- */

#define FEW(module)                                                                               \
    {                                                                                             \
        .says = "share of the 8 x 8 cells (M1 up to 4, M2 up to 2) with p at most 10 %, " module, \
        .expects = "above 0.5",                                                                   \
        .value = {.setting = SETTING(module),                                                     \
                  .figure = "stiff_surface",                                                      \
                  .statistic = "p",                                                               \
                  .nodes = "M1=*",                                                                \
                  .fold = ATT_FOLD_SHARE,                                                         \
                  .limit = 0.1},                                                                  \
        .expected = ATT_EXPECT_ABOVE, .bound = 0.5                                                \
    }
static const att_criterion few_steps[] = {FEW("none"), FEW("se"), FEW("eca"), FEW("fca"), FEW("srm"), FEW("step")};

/* --- Fig. 7 ------------------------------------------------------------------------------------------------------- */

/* The first correlation of the sweep is that of TNS in the reading "attention" with top-1, over all runs. */
static const att_criterion correlation[] = {
    {.says = "Kendall's tau-b of TNS (attention) and top-1 over the runs",
     .expects = "above 0",
     .value = {.file = "sweep.json", .figure = "correlations.0.kendall.value"},
     .expected = ATT_EXPECT_ABOVE},
    {.says = "its p, by permutations of whole settings",
     .expects = "below 0.05",
     .value = {.file = "sweep.json", .figure = "correlations.0.kendall.p"},
     .expected = ATT_EXPECT_BELOW,
     .bound = 0.05},
};

/* --- Table 1 ------------------------------------------------------------------------------------------------------ */

#define ACCURACY(module) FIGURE(module, "accuracy", "top1")
#define TOP1(module) AGAINST_NONE("top-1 [%]", module, ACCURACY)
#define STEP_OVER(module)                                                                           \
    {                                                                                               \
        .says = "top-1 [%] of step minus that of " module, .expects = "above 0",                    \
        .value = FIGURE("step", "accuracy", "top1"), .against = FIGURE(module, "accuracy", "top1"), \
        .expected = ATT_EXPECT_ABOVE                                                                \
    }
static const att_criterion accuracy[] = {TOP1("se"),       TOP1("eca"),      TOP1("fca"),
                                         TOP1("srm"),      TOP1("step"),     STEP_OVER("se"),
                                         STEP_OVER("eca"), STEP_OVER("fca"), STEP_OVER("srm")};

/* --- Table 4 ------------------------------------------------------------------------------------------------------ */

#define BOTH_OVER(input, text)                                                                                   \
    {                                                                                                            \
        .says = "top-1 [%] of step with both inputs minus that with " text, .expects = "above 0",                \
        .value = FIGURE("step", "accuracy", "top1"), .against = FIGURE("step:input=" input, "accuracy", "top1"), \
        .expected = ATT_EXPECT_ABOVE                                                                             \
    }
static const att_criterion inputs[] = {BOTH_OVER("x_t", "the state before only"),
                                       BOTH_OVER("x_t1", "the guessed state after only"),
                                       BOTH_OVER("difference", "their difference only")};

/* --- Theorem 2 and step sizes of ODE methods ---------------------------------------------------------------------- */

/* theorem.1 to theorem.7 are the heat equation with 8, 16, .. 512 points. */
static const att_criterion theorem[] = {
    {.says = "Q = SAI - c SI of the heat equation with 8 points, minus that with 512",
     .expects = "above 0",
     .value = {.file = "heat.json", .figure = "theorem.1.rest", .less = "theorem.7.rest"},
     .expected = ATT_EXPECT_ABOVE},
    {.says = "Q with 512 points, where SI is 1e6",
     .expects = "below 0.001",
     .value = {.file = "heat.json", .figure = "theorem.7.rest"},
     .expected = ATT_EXPECT_BELOW,
     .bound = 0.001},
};

#define FALLS(system, name)                                                                       \
    {                                                                                             \
        .says = "Spearman's rho of step size and stiffness index over the steps of RKF45, " name, \
        .expects = "below 0",                                                                     \
        .value = {.file = system ".json",                                                         \
                  .figure = "methods.0.steps.*.h",                                                \
                  .less = "methods.0.steps.*.stiffness_index",                                    \
                  .fold = ATT_FOLD_RHO},                                                          \
        .expected = ATT_EXPECT_BELOW                                                              \
    }
static const att_criterion step_sizes[] = {FALLS("vanderpol", "Van der Pol's equation"),
                                           FALLS("robertson", "Robertson's reaction")};

/* --- few blocks --------------------------------------------------------------------------------------------------- */

#define IN_BLOCK(which) FIGURE("se@after_branch:{" which "}", "accuracy", "top1")
static const att_criterion few_blocks[] = {
    {.says = "top-1 [%] of se in the stiffest block only, minus the mean over single other blocks",
     .expects = "above 0",
     .value = IN_BLOCK("stiffest"),
     .against = IN_BLOCK("other"),
     .expected = ATT_EXPECT_ABOVE}};

/* --- the text ----------------------------------------------------------------------------------------------------- */

#define BELOW_ONE(module)                                                                                  \
    {                                                                                                      \
        .says = "share of the gate's values below 1, mean over blocks, " module, .expects = "above 0.999", \
        .value = ATT_READ_NODES(SETTING(module), "gate", "share < 1", "*", ATT_FOLD_MEAN),                 \
        .expected = ATT_EXPECT_ABOVE, .bound = 0.999                                                       \
    }
#define FOLLOWS(module)                                                                               \
    {                                                                                                 \
        .says = "correlation of a block's gate with its zeta over images, mean over blocks, " module, \
        .expects = "below 0", .value = FIGURE(module, "gate_stiffness", "mean correlation"),          \
        .expected = ATT_EXPECT_BELOW                                                                  \
    }
static const att_criterion gates[] = {BELOW_ONE("se"),   BELOW_ONE("eca"), BELOW_ONE("fca"), BELOW_ONE("srm"),
                                      BELOW_ONE("step"), FOLLOWS("se"),    FOLLOWS("eca"),   FOLLOWS("fca"),
                                      FOLLOWS("srm"),    FOLLOWS("step")};

#define IMPORTANT(module)                                                                                     \
    {                                                                                                         \
        .says = "Spearman's rho of accuracy lost without a block and its zeta, over blocks, " module,         \
        .expects = "above 0", .value = FIGURE(module, "skip_block", "spearman"), .expected = ATT_EXPECT_ABOVE \
    }
static const att_criterion important[] = {IMPORTANT("none"), IMPORTANT("se"), IMPORTANT("step")};

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const att_result results[] = {
    {.info = {"huang-fig1", PAPER, "Fig. 1",
              "Attention moves the features nearer to the trajectory of the best network.", SCALE, MODULES,
              "a picture: attscope report OUTPUT/modules --reference OUTPUT/modules/modules=step-seed1 draws it"}},
    {.info = {"huang-fig2", PAPER, "Fig. 2", "Networks with SE, ECA, FCA or SRM have a larger total neural stiffness.",
              SCALE, MODULES, NULL},
     ATT_CRITERIA(stiffness)},
    {.info = {"huang-fig3", PAPER, "Fig. 3", "With SE, zeta is larger and more uneven over the blocks of each stage.",
              SCALE, MODULES, NULL},
     ATT_CRITERIA(trajectory)},
    {.info = {"huang-fig5", PAPER, "Fig. 5", "Four other adaptors of StepNet are worse than the paper's.",
              "the structures are lost pictures, and no code was published", NULL,
              "never: attscope has seven adaptors of its own (attscope modules step), none of which is known to be the "
              "paper's"}},
    {.info = {"huang-fig6", PAPER, "Fig. 6",
              "Few steps of a trajectory are stiff: p is at most 10 % for most thresholds.", SCALE, MODULES, NULL},
     ATT_CRITERIA(few_steps)},
    {.info = {"huang-fig7", PAPER, "Fig. 7",
              "Accuracy and total neural stiffness are positively correlated over networks.", SCALE, MODULES, NULL},
     ATT_CRITERIA(correlation)},
    {.info = {"huang-table1", PAPER, "Table 1",
              "StepNet is more accurate than SE, ECA, FCA and SRM, and these than none.", SCALE, MODULES,
              "about 15 hours of two cores for each network and seed at full scale, at the 157 images/s of "
              "SE-ResNet-164 in "
              "f32 (docs/performance.md): recipes/step-resnet164.yaml"},
     ATT_CRITERIA(accuracy)},
    {.info = {"huang-table2", PAPER, "Table 2", "StepNet is more accurate than SE, ECA, FCA and SRM on ImageNet.",
              "paper: ResNet-50 and 101, 100 epochs of ImageNet-1k", NULL,
              "about 3,000 hours of two cores for each network and seed, at the 11.9 images/s of ResNet-50 in f32 "
              "(docs/performance.md): recipes/step-resnet50.yaml. The direction on small "
              "images is that of huang-table1"}},
    {.info = {"huang-table3", PAPER, "Table 3", "StepNet adds 2.9 AP to Faster R-CNN on COCO, 3.0 with ResNet-101.",
              "paper: ResNet-50 and 101 with a feature pyramid, COCO", NULL,
              "weeks of two cores, after those of huang-table2: "
              "recipes/faster-rcnn-resnet50-mmdetection-1x.yaml with --modules step and its weights for ImageNet; "
              "recipes/synthetic-objects.yaml is a detector of minutes"}},
    {.info = {"huang-table4", PAPER, "Table 4",
              "StepNet needs both inputs: the state before and the guessed one after.", SCALE, "inputs", NULL},
     ATT_CRITERIA(inputs)},
    {.info =
         {"huang-theorem1", PAPER, "Theorem 1", "The total neural stiffness converges.",
          "an integral in closed form; the statement has no scale of its own", NULL,
          "nothing to run: for each image TNS = z (z / m - 1) with the largest zeta z and the mean m over blocks. The "
          "instrument tns computes this, and a test compares it with the integral over the grid of stiff_surface"}},
    {.info = {"huang-theorem2", PAPER, "Theorem 2", "SAI = c SI + Q(SI), and Q vanishes for a large SI.",
              "the heat equation, which meets the hypotheses, at its initial value, in f64", "equations", NULL},
     ATT_CRITERIA(theorem)},
    {.info = {"huang-steps", PAPER, "Section 2.1",
              "On stiff equations, adaptive methods take small steps where SI is "
              "large.",
              "two stiff equations; the statement has no scale of its own", "equations",
              "of an explicit method, which stability limits; BDF, an implicit method, has rho +0.71 on Robertson's "
              "reaction (docs/ode.md)"},
     ATT_CRITERIA(step_sizes)},
    {.info = {"huang-few-blocks", PAPER, "Section 2.3", "Modules in a few blocks, the stiff ones, suffice.",
              "paper: ResNet-164, lottery tickets among its blocks; here: resnet29, 2 epochs, CIFAR-10, 3 seeds",
              "blocks", "tools/stiff-blocks compares several blocks with the first, the last and random ones"},
     ATT_CRITERIA(few_blocks)},
    {.info = {"huang-gates", PAPER, "Section 2.4", "The gate is a step size below 1 that is small where zeta is large.",
              SCALE, MODULES, NULL},
     ATT_CRITERIA(gates)},
    {.info = {"huang-important", PAPER, "Section 3.1", "Stiff features are the important ones.", SCALE, MODULES, NULL},
     ATT_CRITERIA(important)},
};

const att_results_table att_results_huang = {results, sizeof results / sizeof *results};
