/* attscope/lab/measuring.h - a checkpoint measured on images, and the figures recorded, in one call.
 *
 *     const char *data = "flowers";
 *     att_network *network;
 *     att_measured found = {0};
 *     att_measuring_options options = att_measuring_options_defaults();
 *     options.with = "entropy,nsi";
 *     if (att_network_open(context, "output/first", NULL, &network) == ATT_OK &&
 *         att_measure_checkpoint(network, &data, 1, &options, &found) == ATT_OK)
 *         ... att_measure_at(found.measure, 0).mean ...
 *     att_measured_free(&found);
 *     att_network_close(&network);
 *
 * In the folder of the records:
 *
 *   measure.jsonl       the figures, and what decides them (att_store_open_measured())
 *   maps.safetensors    attention maps, where they are asked for (attscope/maps.h)
 *
 * The figures go to the database of the folder's runs, too (att_run_database()).
 */
#ifndef ATTSCOPE_LAB_MEASURING_H
#define ATTSCOPE_LAB_MEASURING_H

#include <attscope/lab/runs.h>
#include <attscope/network.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Only read during a call. */
typedef struct att_measuring_options {
    const char *with;  /* instruments, as att_measure_create() takes them */
    const char *nodes; /* only nodes whose name fits; '*' and '?' allowed */
    int samples;       /* keep the numbers of each of the first images too: att_measure_keep_samples() */

    int maps;               /* keep the attention maps of the first images; 0: of none */
    const char *map_images; /* keep those of these images instead; NULL: none are named. A list of numbers, from 0, and
                               of names (att_dataset_short_name(), or what stands behind a '/' in it), separated by
                               commas; '*' and '?' match any characters in names, and "\," is a comma in one */

    const char *split;     /* as in att_dataset_options */
    const char *class_map; /* as in att_dataset_options */
    bool coarse_labels;    /* as att_dataset_options.coarse */
    size_t cache_bytes;    /* as in att_dataset_options */

    int batch_size, workers; /* as in att_evaluate_options */
    bool skip_corrupt;       /* as in att_evaluate_options; maps pass over such images, too */

    const char *output;     /* the folder that runs lie in; NULL: the folder of the checkpoint takes the records where
                               it is a run's, and otherwise none are kept */
    const char *experiment; /* the folder of the records in there; NULL: named as the checkpoint's file, or as its
                               folder where the file is called model, pytorch_model or the like */

    att_progress_fn progress; /* stages "measure" and "maps" */
    void *progress_user;
} att_measuring_options;
/* Every instrument ("all") on every node, no samples, no maps, split "validation", batches and workers of
 * att_evaluate_options_defaults(), corrupt images fatal, no output, no progress. */
ATT_API att_measuring_options att_measuring_options_defaults(void);

typedef struct att_measured {
    att_measure *measure; /* the figures; NULL where not every image was seen */
    att_evaluation evaluation;
    char split[64];            /* of the images; "all" where they have no splits */
    char folder[ATT_RUN_PATH]; /* of the records; "": none are kept */
} att_measured;
/* Frees the figures; an empty one is allowed. */
ATT_API void att_measured_free(att_measured *measured);

/* What att_measure_checkpoint() refuses before it reads an image or a weight, for the checkpoint at this path (a file).
 * data_count: how many paths of images there will be. Errors: ERR_NOT_FOUND (an instrument), ERR_ARGUMENT. */
ATT_API ATT_MUST_CHECK att_status att_measuring_check(att_context *context, const char *checkpoint, int data_count,
                                                      const att_measuring_options *options);

/* Shows the network every image of `data` once, and records what the instruments found. The network was opened from a
 * file. data: one data set, or several paths of images without classes. options: NULL means the defaults. "all" leaves
 * out instruments that need labels where the images have no classes, or others than the network. Maps name classes as
 * the network does (att_network_name_classes()).
 *
 * Figures of an earlier call for the same weights, images and settings stay where they were not measured again
 * (att_store_open_measured()). Records are written once every image was seen; maps follow.
 *
 * *measured is empty before ({0}) and to be freed by att_measured_free() whatever comes back: it has the figures also
 * where records or maps then could not be written. The log tells what was opened and what is left out.
 *
 * Errors: ERR_STOPPED; ERR_ARGUMENT (options that contradict each other or ask for what the network or the data set
 * lacks: instruments, nodes, images, maps without a folder or without tokens; a network without a file); ERR_MISMATCH
 * (the folder holds a training that the checkpoint does not belong to; classes, as att_network_compare_classes() says);
 * ERR_UNSUPPORTED (an instrument that needs labels, and a network without a head); ERR_NONFINITE; what opening and
 * evaluating the data set, att_store_open_measured() and att_maps_write() give. */
ATT_API ATT_MUST_CHECK att_status att_measure_checkpoint(att_network *network, const char *const *data, int data_count,
                                                         const att_measuring_options *options, att_measured *measured);

#ifdef __cplusplus
}
#endif
#endif
