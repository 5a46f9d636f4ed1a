/* Dong, Cordonnier, Loukas, "Attention is not all you need: pure attention loses rank doubly exponentially with depth",
 * ICML 2021. */
#include "lab/papers/results/list.h"

#define PAPER "Dong et al., ICML 2021"
#define STACKS "stacks"
#define VIT_SCALE "a ViT of 6 blocks of width 64, 2 epochs of Fashion-MNIST, 5 seeds"
#define ENCODERS "encoders"
#define ENCODER_SCALE "32 texts of 128 tokens of the GPL 3, biographies of Wikipedia in the paper"
#define START_SCALE ENCODER_SCALE "; three draws of weights, full size"
#define MINI_LM_RUN "minilm"
#define MINI_LM_SCALE ENCODER_SCALE "; a MiniLM of six layers in place of BERT, ALBERT and XLNet"
#define CHAIN_SCALE "20 products for each text and length, 100 in the paper"
#define CHAIN_NOTE "the distance is relative to the product; the paper shows the difference itself"
#define FIXED "no chance decides the figures of the trained network, so they have no interval"
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

/* --- a trained ViT ------------------------------------------------------------------------------------------------ */

#define VIT(instrument, statistics, at, how) ATT_READ_NODES("modules=none", instrument, statistics, at, how)
#define RESIDUAL(switches, layer) VIT("collapse", "composite " switches, "blocks." layer ".add1", ATT_FOLD_MEAN)
#define LOWER(layer, switches, text)                                                                       \
    {                                                                                                      \
        .says = "|res(X)| / |X| at the attention of block " layer ", attention only minus " text,          \
        .expects = "below 0", .value = RESIDUAL("attention", layer), .against = RESIDUAL(switches, layer), \
        .expected = ATT_EXPECT_BELOW                                                                       \
    }
#define LOWEST(layer) LOWER(layer, "skip", "with skips"), LOWER(layer, "both", "with skips and MLPs")
static const att_criterion vit_residual[] = {LOWEST("0"), LOWEST("1"), LOWEST("2"),
                                             LOWEST("3"), LOWEST("4"), LOWEST("5")};

/* In later blocks both are near what rounding leaves in f32. */
static const att_criterion vit_mlps[] = {
    {.says = "|res(X)| / |X| at the attention of block 1, with MLPs minus attention only",
     .expects = "above 0",
     .value = RESIDUAL("mlp", "1"),
     .against = RESIDUAL("attention", "1"),
     .expected = ATT_EXPECT_ABOVE}};

#define CHAIN(length) VIT("head_chains", "median formula", "length." length, ATT_FOLD_MEAN)
#define SHRINKS(longer, shorter)                                                                              \
    {                                                                                                         \
        .says = "distance of the product of " longer " maps from rank 1, minus that of " shorter,             \
        .expects = "below 0", .value = CHAIN(longer), .against = CHAIN(shorter), .expected = ATT_EXPECT_BELOW \
    }
static const att_criterion chains[] = {SHRINKS("2", "1"), SHRINKS("3", "2"), SHRINKS("4", "3"), SHRINKS("5", "4"),
                                       SHRINKS("6", "5")};

static const att_criterion skip_weight[] = {{.says = "share of the blocks where the skip weighs at most half",
                                             .expects = "below 0.1, so none of six",
                                             .value = {.setting = "modules=none",
                                                       .figure = "skip_weight",
                                                       .statistic = "mean",
                                                       .nodes = "blocks.*",
                                                       .fold = ATT_FOLD_SHARE,
                                                       .limit = 0.5},
                                             .expected = ATT_EXPECT_BELOW,
                                             .bound = 0.1}};

/* --- text encoders ------------------------------------------------------------------------------------------------ */

/* Figures of attscope measure. Networks at initialisation have a file for each seed. */
#define BERT "bert-{seed}.json"
#define ALBERT "albert-{seed}.json"
#define MINI_LM "trained.json"
#define MINI_LM_MAPS "trained-maps.json"
#define MINI_LM_START "start-{seed}.json"
#define MEASURED(json, instrument, statistics, at)                                         \
    {                                                                                      \
        .file = json, .figure = (instrument), .statistic = (statistics), .nodes = "" at "" \
    }
#define ENCODER_RESIDUAL(json, switches, at) MEASURED(json, "collapse", "composite " switches, at)
#define REACHES(text, json, switches, at, wanted, side, limit) \
    EXPECT("|res(X)| / |X| after the last layer of " text, wanted, ENCODER_RESIDUAL(json, switches, at), side, limit)
#define FALLS(text, json, switches, at, limit) \
    REACHES(text, json, switches, at, "below " #limit, ATT_EXPECT_BELOW, limit)
#define STAYS(text, json, switches, at, limit) \
    REACHES(text, json, switches, at, "above " #limit, ATT_EXPECT_ABOVE, limit)
#define COLLAPSES(text, json, last, limit)                                            \
    FALLS(text ", attention only", json, "attention", "blocks." last ".add1", limit), \
        FALLS(text ", with MLPs", json, "mlp", "blocks." last ".add2", limit),        \
        STAYS(text ", with skips", json, "skip", "blocks." last ".add1", 0.1),        \
        STAYS(text ", with skips and MLPs", json, "both", "blocks." last ".add2", 0.1)
static const att_criterion encoders_start[] = {COLLAPSES("BERT-base", BERT, "11", 0.01),
                                               COLLAPSES("ALBERT-base", ALBERT, "11", 0.01)};

#define LOWER_AT(layer, switches, text)                                                                       \
    {                                                                                                         \
        .says = "|res(X)| / |X| at the attention of block " layer ", attention only minus " text,             \
        .expects = "below 0", .value = ENCODER_RESIDUAL(MINI_LM, "attention", "blocks." layer ".add1"),       \
        .against = ENCODER_RESIDUAL(MINI_LM, switches, "blocks." layer ".add1"), .expected = ATT_EXPECT_BELOW \
    }
#define LOWEST_AT(layer) LOWER_AT(layer, "skip", "with skips"), LOWER_AT(layer, "both", "with skips and MLPs")
static const att_criterion minilm[] = {COLLAPSES("MiniLM at initialisation", MINI_LM_START, "5", 0.1),
                                       COLLAPSES("the trained MiniLM", MINI_LM, "5", 0.1),
                                       LOWEST_AT("0"),
                                       LOWEST_AT("1"),
                                       LOWEST_AT("2"),
                                       LOWEST_AT("3"),
                                       LOWEST_AT("4"),
                                       LOWEST_AT("5")};

#define SLOWER(text, json)                                                                                \
    {                                                                                                     \
        .says = "|res(X)| / |X| at the attention of block 1 of " text ", with MLPs minus attention only", \
        .expects = "above 0", .value = ENCODER_RESIDUAL(json, "mlp", "blocks.1.add1"),                    \
        .against = ENCODER_RESIDUAL(json, "attention", "blocks.1.add1"), .expected = ATT_EXPECT_ABOVE     \
    }
static const att_criterion encoder_mlps[] = {SLOWER("BERT-base", BERT), SLOWER("ALBERT-base", ALBERT)};
static const att_criterion minilm_mlps[] = {SLOWER("MiniLM at initialisation", MINI_LM_START),
                                            SLOWER("the trained MiniLM", MINI_LM)};

#define ENCODER_CHAIN(json, length) MEASURED(json, "head_chains", "median formula", "length." length)
#define CHAIN_SHRINKS(text, json, longer, shorter)                                                           \
    {                                                                                                        \
        .says = text ": distance of the product of " longer " maps from rank 1, minus that of " shorter,     \
        .expects = "below 0", .value = ENCODER_CHAIN(json, longer), .against = ENCODER_CHAIN(json, shorter), \
        .expected = ATT_EXPECT_BELOW                                                                         \
    }
/* At initialisation, rounding hides the distances of longer products: it leaves about 2e-7 in f32. */
static const att_criterion encoder_chains[] = {
    CHAIN_SHRINKS("BERT-base", BERT, "2", "1"),     CHAIN_SHRINKS("BERT-base", BERT, "3", "2"),
    CHAIN_SHRINKS("BERT-base", BERT, "4", "3"),     CHAIN_SHRINKS("ALBERT-base", ALBERT, "2", "1"),
    CHAIN_SHRINKS("ALBERT-base", ALBERT, "3", "2"), CHAIN_SHRINKS("ALBERT-base", ALBERT, "4", "3")};
#define TRAINED "the trained MiniLM"
static const att_criterion minilm_chains[] = {
    CHAIN_SHRINKS(TRAINED, MINI_LM_MAPS, "2", "1"), CHAIN_SHRINKS(TRAINED, MINI_LM_MAPS, "3", "2"),
    CHAIN_SHRINKS(TRAINED, MINI_LM_MAPS, "4", "3"), CHAIN_SHRINKS(TRAINED, MINI_LM_MAPS, "5", "4"),
    CHAIN_SHRINKS(TRAINED, MINI_LM_MAPS, "6", "5")};

#define ENCODER_COUNT(text, json, length, number, least, most)                           \
    EXPECT(text ": paths of length " length ": " number, "above " #least,                \
           MEASURED(json, "paths", "paths", "length." length), ATT_EXPECT_ABOVE, least), \
        EXPECT("the same", "below " #most, MEASURED(json, "paths", "paths", "length." length), ATT_EXPECT_BELOW, most)
#define UNEXPLAINED(text, json)                                                                             \
    EXPECT(text ": norm of what the sum over all paths leaves of the output, relative to it", "below 1e-4", \
           MEASURED(json, "paths", "unexplained", ""), ATT_EXPECT_BELOW, 1e-4)
/* Twelve layers of twelve heads, and six. */
static const att_criterion encoder_counts[] = {ENCODER_COUNT("BERT-base", BERT, "1", "144", 143.9, 144.1),
                                               ENCODER_COUNT("BERT-base", BERT, "6", "2.759e9", 2.758e9, 2.760e9),
                                               ENCODER_COUNT("BERT-base", BERT, "12", "8.916e12", 8.915e12, 8.917e12),
                                               UNEXPLAINED("BERT-base", BERT)};
static const att_criterion minilm_counts[] = {ENCODER_COUNT(TRAINED, MINI_LM_MAPS, "3", "34560", 34559.9, 34560.1),
                                              UNEXPLAINED(TRAINED, MINI_LM_MAPS)};

/* Six layers of four heads: C(6, k) 4^k paths of length k. */
#define COUNT(length, number, least, most)                                                                           \
    EXPECT("paths of length " length ": " number, "above " #least,                                                   \
           VIT("paths", "paths", "length." length, ATT_FOLD_MEAN), ATT_EXPECT_ABOVE, least),                         \
        EXPECT("the same", "below " #most, VIT("paths", "paths", "length." length, ATT_FOLD_MEAN), ATT_EXPECT_BELOW, \
               most)
static const att_criterion counts[] = {
    COUNT("1", "24", 23.9, 24.1), COUNT("3", "1280", 1279.9, 1280.1), COUNT("6", "4096", 4095.9, 4096.1),
    EXPECT("norm of what the sum over all paths leaves of the output, relative to it", "below 1e-4",
           VIT("paths", "unexplained", "", ATT_FOLD_MEAN), ATT_EXPECT_BELOW, 1e-4)};

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

static const att_criterion pieces[] = {
    {.says = "memorize: accuracy of the whole network less the share of the most frequent class",
     .expects = "above 0",
     .value = FIGURE("memorize", "whole.mean"),
     .against = FIGURE("memorize", "baseline.mean"),
     .expected = ATT_EXPECT_ABOVE},
    SHORT_BEATS("memorize", "4"),
    SHORT_BEATS("memorize", "5"),
    SHORT_BEATS("memorize", "6")};

/* The variants are base, skip and mlp. */
#define DISTANCE(variant) FIGURE("circle", "circle." variant ".distance_end.mean")
#define APART(text, variant)                                                                            \
    {                                                                                                   \
        .says = "distance of the points after 300 steps, " text " minus without", .expects = "above 0", \
        .value = DISTANCE(variant), .against = DISTANCE("0"), .expected = ATT_EXPECT_ABOVE              \
    }
static const att_criterion circle[] = {APART("with skips", "1"), APART("with MLPs", "2")};

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
    {.info = {"dong-residual", PAPER, "public code, residual by layer",
              "In every layer of a trained network, attention only has the lowest residual.", VIT_SCALE, "vit",
              "the paper has text encoders: dong-encoders and dong-minilm"},
     ATT_CRITERIA(vit_residual)},
    {.info = {"dong-encoders", PAPER, "Section 4, residual by layer",
              "At initialisation, tokens of BERT and ALBERT collapse as soon as skips are removed.",
              START_SCALE "; XLNet, which the paper has, too, is left out", ENCODERS, NULL},
     ATT_CRITERIA(encoders_start)},
    {.info = {"dong-minilm", PAPER, "Section 4, residual by layer",
              "In a trained encoder, too, tokens collapse as soon as skips are removed.", MINI_LM_SCALE, MINI_LM_RUN,
              FIXED},
     ATT_CRITERIA(minilm)},
    {.info = {"dong-encoder-mlps", PAPER, "Section 3.2", "MLPs slow the collapse down, also in text encoders.",
              START_SCALE, ENCODERS, "in single precision, whose rounding leaves 1e-6: residuals near it are noise"},
     ATT_CRITERIA(encoder_mlps)},
    {.info = {"dong-minilm-mlps", PAPER, "Section 3.2", "MLPs slow the collapse down, also in a trained encoder.",
              MINI_LM_SCALE, MINI_LM_RUN, FIXED},
     ATT_CRITERIA(minilm_mlps)},
    {.info = {"dong-encoder-chains", PAPER, "public code, chained heads",
              "Products of attention maps of random heads of BERT approach rank 1 with their number.",
              START_SCALE "; " CHAIN_SCALE, ENCODERS, CHAIN_NOTE},
     ATT_CRITERIA(encoder_chains)},
    {.info = {"dong-minilm-chains", PAPER, "public code, chained heads",
              "Products of attention maps of random heads of a trained encoder approach rank 1 with their number.",
              MINI_LM_SCALE "; " CHAIN_SCALE, MINI_LM_RUN, FIXED},
     ATT_CRITERIA(minilm_chains)},
    {.info = {"dong-encoder-counts", PAPER, "Theorem 2.1",
              "BERT-base is the sum over C(12, k) 12^k paths of each length k.", START_SCALE, ENCODERS, NULL},
     ATT_CRITERIA(encoder_counts)},
    {.info = {"dong-minilm-counts", PAPER, "Theorem 2.1", "MiniLM is the sum over C(6, k) 12^k paths of each length k.",
              MINI_LM_SCALE, MINI_LM_RUN, NULL},
     ATT_CRITERIA(minilm_counts)},
    {.info = {"dong-trained-mlps", PAPER, "Section 3.2", "MLPs slow the collapse down, also in a trained network.",
              VIT_SCALE, "vit", NULL},
     ATT_CRITERIA(vit_mlps)},
    {.info = {"dong-chains", PAPER, "public code, chained heads",
              "Products of attention maps of random heads approach rank 1 with their "
              "number.",
              VIT_SCALE, "vit", "the paper takes the difference from the matrix of rank 1 of BERT with skips"},
     ATT_CRITERIA(chains)},
    {.info = {"dong-skip-weight", PAPER, "Section 3.1", "The skip outweighs the attention branch.", VIT_SCALE, "vit",
              NULL},
     ATT_CRITERIA(skip_weight)},
    {.info = {"dong-counts", PAPER, "Theorem 2.1", "The output is the sum over C(L, k) H^k paths of each length k.",
              VIT_SCALE, "vit", NULL},
     ATT_CRITERIA(counts)},
    {.info = {"dong-paths", PAPER, "Fig. 2 and 3", "Short paths do the work: length 1 is more accurate than 4 to 6.",
              "three networks for each task, one in the paper; memorize with made texts in place of RTE", "paths",
              NULL},
     ATT_CRITERIA(paths)},
    {.info =
         {"dong-paths-pieces", PAPER, "Fig. 3",
          "Short paths do the work in memorisation, also with the tokens of WordPiece.",
          "three networks, one in the paper; 500 paragraphs of perldiag.pod in place of RTE, divided by WordPiece as "
          "there",
          "pieces", NULL},
     ATT_CRITERIA(pieces)},
    {.info = {"dong-circle", PAPER, "public code, circle",
              "Without skips and MLPs, two points that should follow a circle fall into one.",
              "one layer of two heads and width 32, as in the paper; ten networks, one in the paper", "circle",
              "attscope experiment circle and attscope report draw the trajectories"},
     ATT_CRITERIA(circle)},
};

const att_results_table att_results_dong = {results, sizeof results / sizeof *results};
