/* attscope/maps.h - attention maps of some images, in a file.
 *
 * A safetensors file of K images:
 *
 *   image       U8 [K, h, w, c], as the network sees them, before normalisation
 *   label       I64 [K]; -1 where there are none
 *   prediction  I64 [K], the class of the largest logit
 *   <node>.map  U8 [K, H, N, N], for each attention node: round(255 a_ij / m_i), queries i, keys j
 *   <node>.max  F32 [K, H, N], m_i: the largest weight of query i
 *
 * and metadata, all texts: model; nodes, a JSON array of their names in the network's order; prefix (tokens before the
 * grid), grid_h and grid_w of the first of them; classes, a JSON array of the data set's class names; weights, where
 * the writer said it, a digest of the weights: the "weights" of run_begin in measure.jsonl.
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

typedef struct att_maps_options {
    const char *nodes;       /* names of the nodes, '*' and '?' allowed */
    int count;               /* the first so many images of the data set, or all where it has fewer; 1..65536 */
    const char *backend;     /* "cpu", "ref" */
    att_precision precision; /* of the network */
    const char *weights;     /* a digest of the weights, for the metadata; NULL: none */
    bool skip_corrupt;       /* pass over images that cannot be decoded, without a word, instead of failing */
    att_progress_fn progress;
    void *progress_user;
} att_maps_options;
/* "*", 8 images, "cpu", ATT_FULL, no digest, corrupt images fatal, no progress. */
ATT_API att_maps_options att_maps_options_defaults(void);

/* Replaces the file at `path` in one step. options: NULL means the defaults. All maps are in memory at once, a byte for
 * each weight. Errors: ERR_NOT_FOUND where no attention fits `nodes`; ERR_STOPPED; ERR_MISMATCH where the transform's
 * result does not fit the model; ERR_FORMAT where no image can be decoded; ERR_MEMORY; what reading and writing give.
 * After a failure the file is what it was. */
ATT_API att_status att_maps_write(const att_model *model, att_weights *weights, const att_dataset *dataset,
                                  const att_transform_options *transform, const att_maps_options *options,
                                  const char *path);

#ifdef __cplusplus
}
#endif
#endif
