/* attscope/lab/measuring.h - measure a checkpoint on images and record the figures, in one call.
 *
 *     const char *data = "flowers";
 *     att_network *network = NULL;
 *     att_measured found = {0};
 *     att_measuring_options options = att_measuring_options_defaults();
 *     options.with = "entropy,nsi";
 *     if (att_network_open(context, "output/first", NULL, &network) == ATT_OK &&
 *         att_measure_checkpoint(network, &data, 1, &options, &found) == ATT_OK)
 *         ... att_measure_at(found.measure, 0).mean ...
 *     att_measured_free(&found);
 *     att_network_close(&network);
 *
 * The folder of the records gets
 *
 *   measure.jsonl       the figures, and the settings that determine them (att_store_open_measured())
 *   maps.safetensors    attention maps, if requested (attscope/maps.h)
 *
 * The figures are also added to the database to which the folder belongs: runs.sqlite in its parent folder.
 */
#ifndef ATTSCOPE_LAB_MEASURING_H
#define ATTSCOPE_LAB_MEASURING_H

#include <attscope/lab/runs.h>
#include <attscope/network.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The options are only read during the call. */
typedef struct att_measuring_options {
    const char *with;  /* instruments, as in att_measure_create(); NULL: "all" */
    double budget;     /* seconds: costly instruments that belong to a view of a network (att_instrument_info.view) and
                          apply to it are measured, too, in the order of the list, as far as this time is enough for
                          them. Each is timed on the first images, which is part of the time. 0: none of them */
    const char *nodes; /* patterns of names of nodes, separated by commas; '*' and '?' allowed; NULL: "*" */
    int samples;       /* also record the values of each of the first `samples` images: att_measure_keep_samples() */

    int maps;               /* write the attention maps of the first `maps` images; 0: none */
    const char *map_images; /* write the maps of these images instead; NULL: not given. A list separated by commas, of
                               numbers from 0 and of names (att_dataset_short_name(), or its part after a '/'). In names
                               '*' and '?' match any characters, and a comma is written "\," */

    /* Also write values of single images, as they are computed: NULL: none. A path that ends in .safetensors: one file;
     * in .npy: one array; a folder, or a path that ends in '/': a .npy file for each array, and index.json. The arrays,
     * [images, ...] in the order of the data set, with NaN for images that were left out:
     *
     *   zeta            F32 [images, additions, 3]: NSI of each residual addition, in the readings attention, gated and
     *                   unit
     *   NODE.rows       [images, heads, queries, ATT_ATTENTION_STATS]: statistics of each row of the attention map
     *                   (att_graph_probe_attention_stats())
     *   NODE.weights    [images, heads, queries, keys]: the attention map, softmax of the scores
     *
     * The last two are F32, or F64 for a network in F64. Metadata, or index.json, as JSON: "images" (names),
     * "zeta.additions", "zeta.readings", "rows.statistics", "rows.units"; "weights" is the digest of the weights. */
    const char *raw;
    const char *raw_arrays; /* a list of zeta, rows and weights; NULL: zeta and rows, if the network has them */

    int init_seed; /* measure the network at initialisation: its weights are drawn anew from this seed, and the network
                      keeps them; 0: measure its own weights. The records need a folder of their own, by default
                      `output`/NAME-init-SEED; without `output` nothing is recorded */

    const char *split;                   /* as in att_dataset_options; NULL: "validation" */
    const char *class_map;               /* as in att_dataset_options */
    bool coarse_labels;                  /* as att_dataset_options.coarse */
    int reduce_zero_label, ignore_label; /* as in att_dataset_options */
    size_t cache_bytes;                  /* as in att_dataset_options */

    int64_t limit; /* as in att_evaluate_options. Maps, map_images and raw values do not follow it: they are those of
                      the data set's images, in its order */
    int batch_size, workers; /* as in att_evaluate_options */
    bool skip_corrupt;       /* as in att_evaluate_options; maps skip such images, too */
    att_comm *comm;          /* as in att_evaluate_options; only rank 0 writes records and maps */

    const char *output; /* the folder that contains the runs. NULL: the records go to the checkpoint's folder if that
                           is the folder of a run; otherwise nothing is recorded. "" in this member and in the next
                           means NULL */
    const char *experiment; /* the folder of the records in `output`. NULL: the name of the checkpoint's file, or of its
                               folder if the file has a common name such as model or pytorch_model, or is last or
                               model_best in the folder of a run; for another checkpoint of a run both, as
                               "RUN-checkpoint-3" */

    att_progress_fn progress; /* stages "measure" and "maps" */
    void *progress_user;
} att_measuring_options;
/* All instruments on all nodes, no samples, no maps, split "validation", batch size and workers of
 * att_evaluate_options_defaults(), corrupt images fail the call, own weights, no output, no progress. */
ATT_API att_measuring_options att_measuring_options_defaults(void);

typedef struct att_measured {
    att_measure *measure; /* the figures; NULL if not every image was measured */
    att_evaluation evaluation;
    char split[64];            /* the split that was measured; "all" if the data set has no splits */
    char folder[ATT_RUN_PATH]; /* the folder of the records; "": nothing was recorded */
} att_measured;
/* Frees the figures and empties *measured. Empty structs and NULL are allowed. */
ATT_API void att_measured_free(att_measured *measured);

/* Checks the options as att_measure_checkpoint() does before it reads images or weights. checkpoint: the path of a
 * file. data_count: the number of paths of images. options: NULL means the defaults. Errors: ERR_NOT_FOUND (an
 * instrument), ERR_ARGUMENT. */
ATT_API ATT_MUST_CHECK att_status att_measuring_check(att_context *context, const char *checkpoint, int data_count,
                                                      const att_measuring_options *options);

/* Runs the network once on every image of `data`, observes it with the instruments, and records the figures. The
 * network must have been opened from a file or by att_network_open_tensors(), or by its name if `init_seed` is given.
 * Without a file nothing is recorded without `output`, and the network's name takes the place of the checkpoint's name
 * and path. data: one data set, or
 * several paths of images without classes. options: NULL means the defaults. "all" leaves out instruments that need
 * labels if the images have no classes, or classes that differ from the network's. Maps use the network's names of
 * classes (att_network_name_classes()).
 *
 * Figures of an earlier call for the same weights, images and settings are kept if this call does not measure them
 * (att_store_open_measured()). Figures of other weights are replaced in the folder of a training only; elsewhere they
 * are ERR_MISMATCH before anything is measured. Records are written after the last image; maps follow.
 *
 * *measured must be empty ({0}) before. The caller frees it with att_measured_free(), also after a failure: it has the
 * figures even if writing records or maps failed. The log lists what was opened and what is left out.
 *
 * Errors: ERR_STOPPED; ERR_ARGUMENT (options that contradict each other, or that name instruments, nodes or images that
 * do not exist; maps without a folder or of a network without tokens; a network opened by its name without `init_seed`;
 * NULL for data, one of its paths, or measured); ERR_MISMATCH (the folder has a training run to which the checkpoint
 * does not belong, or figures of other weights; classes, as in att_network_compare_classes()); ERR_UNSUPPORTED (an
 * instrument that needs labels with a network without a head); ERR_NONFINITE; those of opening and evaluating the data
 * set, att_store_open_measured(), and of writing the maps: ERR_NOT_FOUND if no attention node matches `nodes`;
 * ERR_FORMAT if no image can be decoded; ERR_UNSUPPORTED for maps of a network that is not in f32.
 */
ATT_API ATT_MUST_CHECK att_status att_measure_checkpoint(att_network *network, const char *const *data, int data_count,
                                                         const att_measuring_options *options, att_measured *measured);

#ifdef __cplusplus
}
#endif
#endif
