/* report/map_file.h - reads a run's maps.safetensors. attscope/lab/report.h describes the file. */
#ifndef ATT_REPORT_MAP_FILE_H
#define ATT_REPORT_MAP_FILE_H

#include <attscope/tensors.h>

#include "base/core/memory.h"
#include "base/io/json.h"

/* The tokens of a node and the keys of a query: prefix tokens, then the patches of a window, see attscope/maps.h. */
typedef struct att_map_layout {
    int64_t prefix, grid_h, grid_w, window_h, window_w, shift_h, shift_w;
} att_map_layout;

static inline int64_t att_map_tokens(const att_map_layout *layout)
{
    return layout->prefix + layout->grid_h * layout->grid_w;
}

static inline int64_t att_map_keys(const att_map_layout *layout)
{
    return layout->prefix + layout->window_h * layout->window_w;
}

typedef struct att_map_node {
    const char *name;            /* "blocks.0.attn.patches" */
    int scope_length;            /* of "blocks.0.attn" */
    int patches, figures, place; /* indices of the tensors */
    int64_t heads;
    att_map_layout layout;
} att_map_node;

typedef struct att_map_file {
    att_context *context;
    att_tensors *file;
    json_t *layouts; /* of the nodes, as in the metadata; NULL in files of versions before 4 */
    int64_t images;  /* K */
    int image;       /* index of the tensor */
    att_shape image_shape;
    int classes;        /* index of the tensor with the class of each pixel; -1: none */
    json_t *class_list; /* array of {label, colour}, of each class; NULL: none */
    att_map_node *nodes;
    int node_count;
    size_t bytes_per_image;   /* size of an image and its maps on the page */
    json_t *names, *captions; /* arrays of K texts */
} att_map_file;

/* Opens a file of maps. On success the caller closes *maps with att_map_file_close(). Errors: ERR_UNSUPPORTED (a
 * version of the format that is not supported), ERR_FORMAT, those of att_tensors_open(). */
att_status att_map_file_open(att_context *context, const char *path, att_map_file *maps);
/* Accepts a zeroed structure. */
void att_map_file_close(att_map_file *maps);

/* The name and the caption of image 0..K-1. Valid as long as the file is open. */
const char *att_map_file_name(const att_map_file *maps, int64_t image);
const char *att_map_file_caption(const att_map_file *maps, int64_t image);

/* Writes the `count` images with the indices `shown`: {keys, images: K, count, figure_names, image: {h, w, c, data},
 * pictures: [{name, caption}, ...], classes: {list: [{label, colour}, ...], data}, of files that have them, nodes:
 * [{node, prefix, grid_h, grid_w, window_h, window_w, shift_h, shift_w, heads, centre, levels, figures, place}, ...]}.
 * keys: the largest number of keys of a query in any node. classes.data, U16 [count, h, w]: the class of each pixel.
 * data, centre, levels, figures and place are base64 of little-endian numbers. centre, F32 [H, G]: the weights on
 * patches of the token in the middle of the grid, or of the first window, as means over all images of the file. levels,
 * U8 [count, H, N, G]: weights on patches in 255ths of the query's largest weight. figures, F32, and place, I32: as in
 * the file. figure_names: the kinds of figures of a query, in order. Errors: ERR_FORMAT (an entropy outside of 0..ln M,
 * a weight outside of 0..1, a place outside of the grid or a class outside of the list, in one of these images),
 * ERR_MEMORY, those of reading. */
att_status att_map_file_write(att_json_writer *json, const att_map_file *maps, const int64_t *shown, int64_t count);

/* Returns ERR_FORMAT with a message: the tensor has a value that is not a valid `expected`. */
att_status att_map_file_fail_value(const att_map_file *maps, const char *name, const char *expected);
/* Tolerance of checks. Rounding to bf16 changes each weight, and therefore the sum of the weights, by a relative error
 * of up to 2^-9. */
#define ATT_MAP_ROUNDING 0.01

/* Whether a value is from 0 to 1, except for rounding. */
static inline bool att_map_is_fraction(float value)
{
    return value >= 0 && (double)value <= 1 + ATT_MAP_ROUNDING;
}

#endif
