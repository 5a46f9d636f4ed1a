/* attscope/lab/ablation.h - what parts of a network do: its answers to images or texts without them.
 *
 *     att_ablation *ablation = NULL;
 *     att_ablation_options options = att_ablation_options_defaults();
 *     options.heads = "all";
 *     if (att_ablate(network, dataset, &options, &ablation) == ATT_OK)
 *         ... att_ablation_at(ablation, 0).loss.mean ...
 *     att_ablation_destroy(&ablation);
 *
 * The network is compiled once with its changes as inputs (attscope/explore.h), so that a changed network costs what
 * the network itself costs. Every image is read once, or once in each step of a greedy ablation.
 */
#ifndef ATTSCOPE_LAB_ABLATION_H
#define ATTSCOPE_LAB_ABLATION_H

#include <attscope/encoder.h>
#include <attscope/explore.h>
#include <attscope/lab/correlation.h>
#include <attscope/lab/json.h>
#include <attscope/lab/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The options are only read during the call.
 *
 * The lists say what is removed. ';' separates what is removed one after another, '+' joins what is removed together:
 *
 *   heads      "all", or attention layers, as "blocks.3.attn" or "blocks.3", with wildcards '*' and '?': each of their
 *              heads alone. "blocks.3:0,2" removes two heads together, "blocks.3:*" all heads of the layer,
 *              "blocks.3:0+blocks.4:1" heads of several layers
 *   branches   residual branches by the scope of their addition, as "blocks.3.add1", with wildcards; or "all",
 *              "attention", "mlp", "convolution", "pooling": each branch with this content alone. With '+' together
 *   tokens     "all", "class", "registers": each of them alone; or numbers and ranges: "0", and "1-4,7" together
 *
 * NULL: nothing of this kind. If all three are NULL, heads are "all". */
typedef struct att_ablation_options {
    const char *heads, *branches, *tokens;
    bool uniform; /* make heads uniform (ATT_HEAD_UNIFORM) instead of removing them */
    /* Remove the parts of the lists one after another for good: in each step the one without which accuracy is highest,
     * and of these the one with the lowest loss, as long as accuracy is not below `bound`, in per cent. */
    bool greedy;
    double bound;
    int batch_size, workers;  /* as in att_evaluate_options */
    bool skip_corrupt;        /* as in att_evaluate_options */
    att_progress_fn progress; /* stage "ablate"; a batch is a run of the network */
    void *progress_user;
} att_ablation_options;
/* No lists, removed, not greedy, bound 0, batches and workers of att_evaluate_options_defaults(), no progress. */
ATT_API att_ablation_options att_ablation_options_defaults(void);

typedef struct att_ablation att_ablation;

/* Runs the network on every image of the data set, once unchanged and once with each change. Images without a class
 * have the class that the unchanged network predicts. On success the caller owns *ablation, which outlives network and
 * data set, and frees it with att_ablation_destroy(); on failure *ablation is unchanged. options: NULL means the
 * defaults. Errors: ERR_ARGUMENT (a list that is malformed, or names layers, heads, branches or tokens that do not
 * exist; `bound` outside 0..100), ERR_UNSUPPORTED (heads of a network without attention layers; tokens that cannot be
 * removed, see att_explorer_remove_token(); a network of a task without classes, or without a head), those of
 * att_explorer_create() and of att_network_evaluate(). */
ATT_API ATT_MUST_CHECK att_status att_ablate(att_network *network, const att_dataset *dataset,
                                             const att_ablation_options *options, att_ablation **ablation);
/* As att_ablate(), for a network that reads texts (attscope/encoder.h), which have no labels: of a classifier the right
 * class is the one that the unchanged network predicts. Of a network without classes the loss of a text is the cosine
 * distance 1 - u . v / (|u| |v|) of its vector u, the mean over the tokens, to that of the unchanged network, v; there
 * is no accuracy and no probability (NaN), and no greedy ablation. The network is compiled for each number of tokens.
 * Of the options, workers and skip_corrupt do not matter. Errors: as above; ERR_UNSUPPORTED also for a network that
 * reads images, and for options.tokens, which differ from text to text. */
ATT_API ATT_MUST_CHECK att_status att_ablate_texts(att_network *network, const att_token_texts *texts,
                                                   const att_ablation_options *options, att_ablation **ablation);
ATT_API void att_ablation_destroy(att_ablation **ablation);

typedef enum att_ablated { ATT_ABLATED_HEADS, ATT_ABLATED_BRANCHES, ATT_ABLATED_TOKENS } att_ablated;

/* A change, and its effect as means over images of changed minus unchanged, with 95 % intervals by Student's t on these
 * differences. For an image of class y with logits z: loss L = -ln softmax(z)_y, probability p = softmax(z)_y, and the
 * image is right if no class comes before y by its logit (of equal ones the lower number comes first). */
typedef struct att_ablation_change {
    const char *name; /* "blocks.3.attn:0", "blocks.3.add1", "token 0"; several: as in the list */
    att_ablated kind;
    int part;            /* number of the layer, branch or token; -1: several */
    int head;            /* of the layer; -1: several, or no head */
    int rank;            /* 0: the largest increase of the loss */
    att_paired accuracy; /* in percentage points */
    att_paired loss, probability;
    int64_t lost, gained; /* images that were right and are wrong, and the reverse */
} att_ablation_change;
/* In the order of the lists and the network; of a greedy ablation: its steps, each with all earlier ones, and rank is
 * the number of the step. index: 0..count-1. Texts live as long as the ablation. */
ATT_API int att_ablation_count(const att_ablation *ablation);
ATT_API att_ablation_change att_ablation_at(const att_ablation *ablation, int index);
/* The number of the change with this rank. */
ATT_API int att_ablation_ranked(const att_ablation *ablation, int rank);

/* The unchanged network. */
typedef struct att_ablation_facts {
    int64_t images;
    int64_t unlabelled; /* of these, images without a class */
    int classes;
    const char *vector; /* the output whose distance is the loss: "mean"; NULL: the network has classes */
    bool texts;         /* images are texts */
    double accuracy, loss, probability; /* in per cent, and means over images */
    int64_t runs;                       /* of the network on an image, the unchanged ones included */
    double seconds;                     /* that the runs took, with the reading of images */
} att_ablation_facts;
ATT_API att_ablation_facts att_ablation_describe(const att_ablation *ablation);

/* An image, 0..images-1, in the order in which they were seen. */
typedef struct att_ablation_image {
    const char *name; /* att_dataset_short_name() */
    int64_t index;    /* in the data set */
    int label;        /* y */
    bool labelled;    /* false: y is what the unchanged network predicts */
} att_ablation_image;
ATT_API att_ablation_image att_ablation_image_at(const att_ablation *ablation, int64_t image);
/* The losses of the images, and whether the answers are right: [images]. change: -1 is the unchanged network. They live
 * as long as the ablation. */
ATT_API const double *att_ablation_losses(const att_ablation *ablation, int change);
ATT_API const bool *att_ablation_right(const att_ablation *ablation, int change);
/* Writes the numbers of the `count` images whose loss differs most from that of the unchanged network, the largest
 * increase or decrease first, and returns how many there are: at most `count`. */
ATT_API int att_ablation_most_changed(const att_ablation *ablation, int change, int64_t *images, int count);

/* Rank correlation of the change of the loss with a figure that an instrument measured on the same images, over single
 * heads or branches that have the figure. Figures that equal an earlier one, as the readings of NSI do without gates,
 * are left out. Not of a greedy ablation. */
typedef struct att_ablation_correlation {
    att_ablated kind;
    const char *figure;            /* "entropy mean", "nsi unit": instrument and statistic */
    int count;                     /* of heads or branches */
    att_rank_correlation spearman; /* only `value` with more than ATT_CORRELATE_MOST */
} att_ablation_correlation;
ATT_API int att_ablation_correlation_count(const att_ablation *ablation);
ATT_API att_ablation_correlation att_ablation_correlation_at(const att_ablation *ablation, int index);
/* The figure of a change; NaN: it has none. */
ATT_API double att_ablation_figure(const att_ablation *ablation, int correlation, int change);

/* How the numbers of the ablation are computed and read, one line each. */
typedef struct att_ablation_method {
    const char *name, *formula, *reading;
} att_ablation_method;
/* All zero past the last. */
ATT_API att_ablation_method att_ablation_method_at(const att_ablation *ablation, int index);

/* Writes members of the JSON object that is open: "images", "unlabelled", "unchanged", "change", "greedy", "bound" if
 * it is, "layers" of {node, heads, prefix, grid_h, grid_w}, "parts" in their order, "correlations" and "methods".
 * Of texts, "texts" in place of "images"; of a network without classes, "vector" (att_ablation_facts) in place of
 * "unchanged", and "distance" in place of the numbers of classes. */
ATT_API void att_ablation_write_json(const att_ablation *ablation, att_json_writer *writer);
/* Writes a .npz file of numpy with the numbers of each image: names and classes of the images [images], "loss",
 * "right" and "p_class" [1 + changes, images], of which row 0 is the unchanged network, the changes with means and
 * intervals [changes], and a "figure ..." [changes] for each correlation. Of a network without classes,
 * "distance" [1 + changes, texts] in place of the numbers of classes. Errors: those of att_file_replace(). */
ATT_API ATT_MUST_CHECK att_status att_ablation_write_npz(const att_ablation *ablation, const char *path);

#ifdef __cplusplus
}
#endif
#endif
