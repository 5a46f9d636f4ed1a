/* attscope/maps.h - attention maps of some images, in a file.
 *
 * A safetensors file of K images. N tokens: P prefix tokens (a class token, say), then G = grid_h grid_w patches; H
 * heads; a_ij is the weight of query i on key j in f32, in the network's precision.
 *
 *   image            U8 [K, h, w, c], as the network sees them, before normalisation
 *   label            I64 [K], the class in the network's numbering; -1: not known
 *   output.<name>    F32 [K, ...], for each output of the network: what it answers
 *
 * and for each attention node
 *
 *   <node>.patches   U16 [K, H, N, G]: round(65535 a_ij / m_i) for patches j, m_i the largest of them
 *   <node>.prefix    F32 [K, H, N, P]: a_ij for prefix tokens j; missing where P = 0
 *   <node>.figures   F32 [K, H + 1, N, 4] of each query i, in the order of att_maps_figure, computed in f64
 *                    from a_ij before rounding:
 *                    0 entropy, -sum_j a_ij ln a_ij in nats, over all N keys
 *                    1 weight on itself, a_ii
 *                    2 weight on all prefix tokens together
 *                    3 m_i, the largest weight on a patch
 *   <node>.place     I32 [K, H + 1, N]: the patch that has m_i, 0..G - 1, row by row; the first of equals
 *
 * Head H of figures and place is of the mean of the H maps: its entropy is that of the mean map, which is at least the
 * mean of the heads' entropies. So a_ij = patches m_i / 65535 to within m_i / 131070.
 *
 * Metadata, all texts: maps, the format's version; model; nodes, a JSON array of their names in the network's order;
 * prefix, grid_h and grid_w of the first of them; names, a JSON array of the images' names below what was opened
 * (att_dataset_short_name()); captions, a JSON array of one line for each image, of at most 4096 bytes, which says what
 * the network answers and what the data set says of the image, in the words of the network's task; weights, where the
 * writer said it, a digest of the weights: the "weights" of run_begin in measure.jsonl.
 */
#ifndef ATTSCOPE_MAPS_H
#define ATTSCOPE_MAPS_H

#include <attscope/data.h>
#include <attscope/models.h>
#include <attscope/plan.h>
#include <attscope/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version that is written. Version 2, which att_report_write() reads too, had in place of outputs and captions:
 * tensors top, I64 [K, T], the classes of the largest logits, and probability, F32 [K, T]; metadata label_names, the
 * data set's name of each image's class, and classes, the names of the network's classes. Version 1, which had no entry
 * "maps", kept bytes scaled to the largest weight of a row and no figures; it is not read. */
#define ATT_MAPS_FORMAT "3"
/* The tensor of images, and how the names of those of outputs begin. */
#define ATT_MAPS_IMAGE "image"
#define ATT_MAPS_OUTPUT "output."

/* The figures of a query: the last dimension of <node>.figures. */
typedef enum att_maps_figure {
    ATT_MAPS_ENTROPY,
    ATT_MAPS_SELF,
    ATT_MAPS_PREFIX,
    ATT_MAPS_LARGEST,
    ATT_MAPS_FIGURES /* how many there are */
} att_maps_figure;

typedef struct att_maps_options {
    const char *nodes;              /* names of the nodes, '*' and '?' allowed */
    const int64_t *images;          /* `count` indices in the data set; NULL: the first images */
    int count;                      /* 1..65536; without `images` all of the data set where it has fewer */
    bool unlabelled;                /* the data set's classes are not the network's: labels become -1, and captions
                                       compare no class of the data set with an answer */
    const char *const *class_names; /* of the network's classes, by number; NULL: those of the data set, or none where
                                       unlabelled */
    int class_count;
    const char *backend;     /* "cpu", "ref" */
    att_precision precision; /* of the network */
    const char *weights;     /* a digest of the weights, for the metadata; NULL: none */
    bool skip_corrupt;       /* pass over images that cannot be decoded, without a word, instead of failing */
    att_progress_fn progress;
    void *progress_user;
} att_maps_options;
/* "*", the first 8 images, labelled, "cpu", ATT_FULL, no digest, corrupt images fatal, no progress. */
ATT_API att_maps_options att_maps_options_defaults(void);

/* Replaces the file at `path` in one step. options: NULL means the defaults. All maps are in memory at once, two
 * bytes for each weight. Errors: ERR_ARGUMENT (count, an index outside the data set); ERR_NOT_FOUND where no attention
 * fits `nodes`; ERR_STOPPED; ERR_MISMATCH where the transform's result does not fit the model; ERR_FORMAT where no
 * image can be decoded; ERR_NONFINITE where a weight or an output is NaN or infinite; ERR_UNSUPPORTED for models not in
 * f32 and outputs of ATT_MAX_RANK dimensions; ERR_MEMORY; what reading and writing give.
 * After a failure the file is what it was. */
ATT_API att_status att_maps_write(const att_model *model, att_weights *weights, const att_dataset *dataset,
                                  const att_transform_options *transform, const att_maps_options *options,
                                  const char *path);

#ifdef __cplusplus
}
#endif
#endif
