/* Dong, Cordonnier, Loukas, "Attention is not all you need: pure attention loses rank doubly exponentially with depth",
 * ICML 2021. */
#include "lab/papers/results/list.h"

#define PAPER "Dong et al., ICML 2021"
#define STACKS "stacks"
#define SCALE "five random stacks of 64 tokens of width 64, in f64; the statement has no scale of its own"

#define FIGURE(json, path)                            \
    {                                                 \
        .file = json "-{seed}.json", .figure = (path) \
    }
#define EXPECT(text, wanted, reading, side, limit)                                                \
    {                                                                                             \
        .says = text, .expects = (wanted), .value = reading, .expected = (side), .bound = (limit) \
    }

/* --- Theorem 2.2 -------------------------------------------------------------------------------------------------- */

/* Layers 1 to 6: later residuals are below a double's range. */
#define SLOPE(text, json)                                                                                         \
    EXPECT("exponent of the collapse, " text, "above 2.9", FIGURE(json, "stacks.0.rate.slope"), ATT_EXPECT_ABOVE, \
           2.9),                                                                                                  \
        EXPECT("the same", "below 3.1", FIGURE(json, "stacks.0.rate.slope"), ATT_EXPECT_BELOW, 3.1)
#define BOUND(text, json, of, bound)                                                                   \
    {                                                                                                  \
        .says = "ln of the residual less its bound, largest over layers: " text, .expects = "below 0", \
        .value = {.file = json "-{seed}.json",                                                         \
                  .figure = "stacks.0.layers.1-." of ".ln",                                            \
                  .less = "stacks.0.layers.1-." bound ".ln",                                           \
                  .fold = ATT_FOLD_MAX},                                                               \
        .expected = ATT_EXPECT_BELOW                                                                   \
    }
static const att_criterion collapse[] = {
    SLOPE("one head", "one-head"),
    SLOPE("four heads", "attention"),
    BOUND("one layer, one head (A.1)", "one-head", "branch", "branch_paper"),
    BOUND("one layer, four heads (A.3)", "attention", "branch", "branch_paper"),
    BOUND("all layers, one head (A.4)", "one-head", "residual", "paper"),
    BOUND("all layers, four heads (A.5)", "attention", "residual", "paper"),
    BOUND("with skips", "skip", "residual", "paper"),
    BOUND("with MLPs", "mlp", "residual", "paper"),
};

/* --- skips, norms, MLPs ------------------------------------------------------------------------------------------- */

#define AFTER_SIX(json) FIGURE(json, "stacks.0.layers.6.residual.ln")
static const att_criterion skips[] = {
    EXPECT("ln of the residual after 6 layers, with skips", "above 0", AFTER_SIX("skip"), ATT_EXPECT_ABOVE, 0),
    EXPECT("the same without skips", "below 0", AFTER_SIX("attention"), ATT_EXPECT_BELOW, 0),
};

static const att_criterion norms[] = {
    SLOPE("layer norm of each token", "norm"),
    EXPECT("ln of the residual after 6 layers, with layer norm", "below 0", AFTER_SIX("norm"), ATT_EXPECT_BELOW, 0),
};

static const att_criterion mlps[] = {
    {.says = "ln of the residual after 6 layers, with MLPs less without, random weights",
     .expects = "above 0",
     .value = AFTER_SIX("mlp"),
     .against = AFTER_SIX("attention"),
     .expected = ATT_EXPECT_ABOVE},
};

/* The gains are 0.25 and 2. */
#define PRICE(text, member)                                                                                   \
    {                                                                                                         \
        .says = text ", gain 2 less gain 0.25", .expects = "above 0",                                         \
        .value = FIGURE("price", "mlp_prices.1." member), .against = FIGURE("price", "mlp_prices.0." member), \
        .expected = ATT_EXPECT_ABOVE                                                                          \
    }
static const att_criterion price[] = {
    PRICE("ln of the last residual", "ln_residual"),
    PRICE("ln of the sensitivity to the input", "ln_sensitivity"),
    PRICE("variance of the gradient", "gradient_variance"),
};

/* --- paths -------------------------------------------------------------------------------------------------------- */

#define LENGTH(task, number) FIGURE(task, "paths.1.by_length." number ".mean")
#define SHORT_BEATS(task, number)                                                                            \
    {                                                                                                        \
        .says = task ": accuracy of 20 paths of length 1 less that of length " number, .expects = "above 0", \
        .value = LENGTH(task, "1"), .against = LENGTH(task, number), .expected = ATT_EXPECT_ABOVE            \
    }
static const att_criterion paths[] = {
    SHORT_BEATS("sort", "4"),     SHORT_BEATS("sort", "5"),     SHORT_BEATS("sort", "6"),
    SHORT_BEATS("memorize", "4"), SHORT_BEATS("memorize", "5"), SHORT_BEATS("memorize", "6"),
    SHORT_BEATS("hull", "4"),     SHORT_BEATS("hull", "5"),     SHORT_BEATS("hull", "6")};

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const att_result results[] = {
    {.info = {"dong-collapse", PAPER, "Lemmas A.1 to A.5, corollaries",
              "The residual of attention alone is cubed by each layer, and stays below the bounds.", SCALE, STACKS,
              NULL},
     ATT_CRITERIA(collapse)},
    {.info = {"dong-skips", PAPER, "Section 3.1", "Skip connections prevent the collapse.", SCALE, STACKS, NULL},
     ATT_CRITERIA(skips)},
    {.info = {"dong-norms", PAPER, "Section 3.3", "Layer norm does not help against the collapse.", SCALE, STACKS,
              NULL},
     ATT_CRITERIA(norms)},
    {.info = {"dong-mlps", PAPER, "Section 3.2", "MLPs slow the collapse down.", SCALE, STACKS, NULL},
     ATT_CRITERIA(mlps)},
    {.info = {"dong-price", PAPER, "Section 3.2",
              "A larger Lipschitz constant slows the collapse, and makes the network more sensitive.", SCALE, STACKS,
              NULL},
     ATT_CRITERIA(price)},
    {.info = {"dong-paths", PAPER, "Fig. 2 and 3", "Short paths do the work: length 1 is more accurate than 4 to 6.",
              "three networks for each task, one in the paper; memorize with made texts in place of RTE", "paths",
              NULL},
     ATT_CRITERIA(paths)},
};

const att_results_table att_results_dong = {results, sizeof results / sizeof *results};
