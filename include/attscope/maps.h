/* attscope/maps.h - files of attention maps of some images, which att_measure_checkpoint() writes
 * (att_measuring_options.maps) and att_report_write() shows.
 *
 * The file is in safetensors format and holds K images. An attention node has N tokens: P prefix tokens (such as a
 * class token), then the patches of its grid; and H heads. Each query has M keys: the prefix tokens and the G patches
 * of its window, or of the whole grid if the node has no windows. a_ij is the weight of query i on its key j in f32,
 * computed in the network's precision.
 *
 *   image            U8 [K, h, w, c], the network's input before normalisation
 *   label            I64 [K], the class in the network's numbering; -1: unknown
 *   classes          U16 [K, h, w], if the network gives each pixel a class: the class of each pixel of `image`; 65535:
 *                    none
 *   output.<name>    F32 [K, ...], one for each output of the network; I32 for one that holds whole numbers
 *
 * and for each attention node whose queries and keys are the tokens of a grid
 *
 *   <node>.patches   U16 [K, H, N, G]: round(65535 a_ij / m_i) for the patches j; m_i is the largest of their a_ij.
 *                    So a_ij = patches m_i / 65535, with an error of at most m_i / 131070
 *   <node>.prefix    F32 [K, H, N, P]: a_ij for the prefix tokens j; missing if P = 0
 *   <node>.figures   F32 [K, H + 1, N, 4]: figures of each query i, indexed by att_maps_figure, computed in f64 from
 *                    a_ij before rounding:
 *                      0  entropy, -sum_j a_ij ln a_ij in nats, over the M keys
 *                      1  weight on itself, a_ii
 *                      2  weight on all prefix tokens together
 *                      3  m_i, the largest weight on a patch
 *   <node>.place     I32 [K, H + 1, N]: the patch that has the weight m_i, as its number in the grid, row by row; the
 *                    first one in the order of the keys if several patches have this weight
 *
 * In figures and place, head index H stands for the mean of the H maps. Its entropy is the entropy of the mean map,
 * which is at least the mean of the heads' entropies.
 *
 * Metadata, all strings: maps, the version of the format; model; nodes, a JSON array with an object for each node, in
 * the network's order: {node, prefix, grid_h, grid_w, window_h, window_w, shift_h, shift_w}; names, a JSON array of the
 * images' short names (att_dataset_short_name()); captions, a JSON array with one line of at most 4096 bytes per image,
 * written by the network's task, which describes the network's answer and the data set's target; classes (if there is
 * the tensor), a JSON array with an object for each class: {label (null: none), colour ("#0060ff")}; weights (if the
 * writer gave it), a digest of the weights, the same as "weights" of run_begin in measure.jsonl.
 *
 * Patches and windows: window_h x window_w is the size of a window; without windows it is the grid. Windows are those
 * of the grid rolled by (shift_h, shift_w), see att_attention(): the patch in row y, column x of the grid is in row
 * ((y - shift_h) mod grid_h) mod window_h, column ((x - shift_w) mod grid_w) mod window_w of its window. The G patches
 * of a query are those of its window, row by row. Weights between patches that share a window only because of the roll
 * are nearly 0.
 */
#ifndef ATTSCOPE_MAPS_H
#define ATTSCOPE_MAPS_H

#include <attscope/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the format that is written. att_report_write() also reads version 3, which had one grid for all nodes,
 * without windows: `nodes` was an array of names, and prefix, grid_h and grid_w were metadata of their own. */
#define ATT_MAPS_FORMAT "4"
/* Name of the tensor of images, and prefix of the names of outputs. */
#define ATT_MAPS_IMAGE "image"
#define ATT_MAPS_CLASSES "classes"
#define ATT_MAPS_OUTPUT "output."

/* The figures of a query, in the order of the last axis of <node>.figures. */
typedef enum att_maps_figure {
    ATT_MAPS_ENTROPY,
    ATT_MAPS_SELF,
    ATT_MAPS_PREFIX,
    ATT_MAPS_LARGEST,
    ATT_MAPS_FIGURES /* number of figures */
} att_maps_figure;

#ifdef __cplusplus
}
#endif
#endif
