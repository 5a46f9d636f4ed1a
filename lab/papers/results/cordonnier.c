/* Cordonnier, Loukas, Jaggi, "On the Relationship between Self-Attention and Convolutional Layers", ICLR 2020. */
#include "lab/papers/results/list.h"

#define PAPER "Cordonnier et al., ICLR 2020"

/* --- Theorem 1 ---------------------------------------------------------------------------------------------------- */

static const att_criterion theorem[] = {
    {.says = "largest difference of the outputs of resnet29 with all convolutions as heads, relative to the largest "
             "output",
     .expects = "below 1e-5",
     .value = {.setting = "modules=none", .file = "attention.json", .figure = "to_attention.error"},
     .expected = ATT_EXPECT_BELOW,
     .bound = 1e-5},
};

/* --- Fig. 4 ------------------------------------------------------------------------------------------------------- */

#define SPREAD(axis, nodes_of) \
    ATT_READ_NODES("model=attention_cnn_learned", "head_shape", axis " spread", nodes_of, ATT_FOLD_MEAN)
#define ALONG(axis)                                                                                             \
    {                                                                                                           \
        .says = axis " spread of the heads of layers 1 to 3 minus that of layers 4 to 6", .expects = "below 0", \
        .value = SPREAD(axis, "blocks.0.*,blocks.1.*,blocks.2.*"),                                              \
        .against = SPREAD(axis, "blocks.3.*,blocks.4.*,blocks.5.*"), .expected = ATT_EXPECT_BELOW               \
    }
static const att_criterion locality[] = {ALONG("row"), ALONG("column")};

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const att_result results[] = {
    {.info = {"cordonnier-theorem", PAPER, "Theorem 1, Fig. 1",
              "A layer of attention with K K heads and relative positions expresses any K x K convolution.",
              "a whole network, trained, in f32; the statement has no scale of its own", "modules", NULL},
     ATT_CRITERIA(theorem)},
    {.info =
         {"cordonnier-terms", PAPER, "Section 2",
          "Scores are a sum of four terms of content and position, and relative positions make attention equivariant "
          "to shifts.",
          "the definition of the layer; the statements have no scale of their own", NULL,
          "nothing to run: attscope computes scores as this sum, and score_terms measures the variance of each term "
          "(docs/where-heads-attend.md). Scores of relative positions depend on the shift alone by construction"}},
    {.info = {"cordonnier-fig4", PAPER, "Fig. 4",
              "Heads of layers 1 to 3 are local, those of layers 4 to 6 are global.",
              "paper: 400 channels, 300 epochs; here: 96 channels, 9 epochs, CIFAR-10, 3 seeds", "heads", NULL},
     ATT_CRITERIA(locality)},
    {.info = {"cordonnier-accuracy", PAPER, "Section 4",
              "The network reaches 94 % on CIFAR-10; more heads learn other "
              "patterns.",
              "paper: 6 layers, 9 and 16 heads, 400 channels, 300 epochs", NULL,
              "about 350 hours of two cores: attscope train CIFAR10 -c recipes/attention-cnn-learned.yaml, and "
              "--model attention_cnn_isotropic_many"}},
};

const att_results_table att_results_cordonnier = {results, sizeof results / sizeof *results};
