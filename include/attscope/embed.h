/* attscope/embed.h - features of the images of a data set, their files, and classification by nearest neighbours.
 *
 *     att_embed_options options = att_embed_options_defaults();
 *     att_embedding features;
 *     if (att_network_embed(network, dataset, &options, &features) == ATT_OK) {
 *         ... att_embedding_write(context, &features, dataset, "features.npz") ...
 *         att_embedding_free(context, &features);
 *     }
 */
#ifndef ATTSCOPE_EMBED_H
#define ATTSCOPE_EMBED_H

#include <attscope/network.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_embed_options {
    const char *output; /* the features: one name that att_network_select_outputs() takes, of F32 values */
    int batch_size;     /* most images per run, as in att_evaluate_options; changes only speed and memory */
    int workers;        /* threads that read images */
    bool skip_corrupt;  /* leave images that cannot be decoded out, instead of failing; the log warns of each */
    att_progress_fn progress;
    void *progress_user;
} att_embed_options;
/* "features", 256 images, 4 workers, corrupt images fatal, no progress. */
ATT_API att_embed_options att_embed_options_defaults(void);

typedef struct att_embedding {
    int64_t count;                        /* images */
    att_shape shape;                      /* of the features of one image */
    float *values;                        /* [count, shape] */
    int64_t *indices;                     /* [count], ascending: the image's index in the data set */
    int32_t *labels;                      /* [count]: the image's class, from 0; -1: unknown */
    double images_per_second, wait_share; /* speed, and share of the time spent waiting for data */
} att_embedding;

/* Runs the network on every image of the data set once, with the network's transform, and keeps one output of it. All
 * features are in memory. The network's outputs are selected as by att_network_select_outputs(). options: NULL means
 * the defaults. On success the caller frees *embedding with att_embedding_free(); on failure it is unchanged. Errors:
 * ERR_STOPPED; ERR_ARGUMENT (`output` names several outputs, or one of whole numbers); ERR_UNSUPPORTED (images whose
 * sizes differ, as a detector's); errors of att_network_select_outputs(), att_network_run() and reading images. */
ATT_API ATT_MUST_CHECK att_status att_network_embed(att_network *network, const att_dataset *dataset,
                                                    const att_embed_options *options, att_embedding *embedding);
/* Frees the arrays and sets *embedding to zero. */
ATT_API void att_embedding_free(att_context *context, att_embedding *embedding);

/* Checks that features of `train` can classify images of `tested`, which a network opened both: the images are not the
 * same split of the same path, also by a link, and the classes have the same names in the same order. Errors:
 * ERR_ARGUMENT, ERR_MISMATCH. */
ATT_API ATT_MUST_CHECK att_status att_embedding_check_sets(att_context *context, const att_dataset *train,
                                                           const att_dataset *tested);

/* Writes the features of images of `dataset`, in the format that the ending of `path` names:
 *   .npz          features <f4 [count, shape]; labels <i8 [count], the class of each image, -1: unknown; names <U
 *                 [count], short names of the images; classes <U [classes], names of the data set's classes
 *   .npy          features alone; the names are the lines of a file beside it, "a.names.txt" for "a.npy"
 *   .safetensors  features F32 and labels I64, as above; metadata "names" and "classes", JSON arrays of strings
 * dataset: NULL for vectors of texts, which have no labels, names and classes: there are only the features.
 * A file is replaced when it is complete; after a failure it is unchanged. Errors: ERR_ARGUMENT (another ending),
 * ERR_UNSUPPORTED (more than 2 GiB in .npz), ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_embedding_write(att_context *context, const att_embedding *embedding,
                                                      const att_dataset *dataset, const char *path);

typedef struct att_embedding_result {
    int64_t count;     /* images that were classified */
    double top1, top5; /* in per cent */
} att_embedding_result;
/* Classifies images by their nearest neighbours among `train`, as the evaluation of DINO does (Caron et al., ICCV
 * 2021). Features f are divided by their length, s_ij = f_i . f_j, and of the k images j of `train` with the largest
 * s_ij each votes for its class with the weight exp(s_ij / 0.07). Of equal votes the lower class number comes first; of
 * equal s_ij the earlier image. top5 counts images whose class is among the five with the most votes; classes without
 * votes do not count.
 *
 * ks [k_count]: numbers of neighbours; a number above train->count means all. results: [k_count]. Errors: ERR_ARGUMENT
 * (no images; features of two shapes; an image without a class; k below 1), ERR_NONFINITE (a feature has no direction:
 * it is zero or not finite), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_embedding_neighbours(att_context *context, const att_embedding *train,
                                                           const att_embedding *tested, const int *ks, int k_count,
                                                           att_embedding_result *results);

typedef struct att_neighbour {
    int64_t image;    /* number in the embedding, 0..count-1 */
    float similarity; /* s_ij, the cosine of the angle between the features */
} att_neighbour;
/* Finds the k images of `among` whose features have the largest s_ij (see above) to `features` [among->shape]; of equal
 * s_ij the earlier image comes first. neighbours [k]: the largest s_ij first. *found: how many there are, k or, if it
 * is less, among->count. Errors: ERR_ARGUMENT (no images; k below 1), ERR_NONFINITE (as above), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_embedding_nearest(att_context *context, const att_embedding *among,
                                                        const float *features, int k, att_neighbour *neighbours,
                                                        int *found);

#ifdef __cplusplus
}
#endif
#endif
