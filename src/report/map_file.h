/* report/map_file.h - a run's maps.safetensors (attscope/lab/report.h says what is in it). */
#ifndef ATT_REPORT_MAP_FILE_H
#define ATT_REPORT_MAP_FILE_H

#include <attscope/tensors.h>

#include "core/memory.h"
#include "io/json.h"

typedef struct att_map_node {
    const char *name;            /* "blocks.0.attn.patches" */
    int patches, figures, place; /* the tensors' indices */
    int64_t heads;
} att_map_node;

typedef struct att_map_file {
    att_context *context;
    att_tensors *file;
    int64_t grid_h, grid_w, prefix, tokens;
    int64_t images; /* K */
    int image;      /* the tensor's index */
    att_shape image_shape;
    att_map_node *nodes;
    int node_count;
    size_t bytes_per_image;   /* of image and maps on the page */
    json_t *names, *captions; /* arrays of K texts */
} att_map_file;

/* Errors: ERR_UNSUPPORTED where the file is of a version of the format that is not read; ERR_FORMAT where it is
 * something else; those of att_tensors_open(). After success *maps is the caller's, freed by att_map_file_close(). */
att_status att_map_file_open(att_context *context, const char *path, att_map_file *maps);
/* Zeros are allowed. */
void att_map_file_close(att_map_file *maps);

/* The name of image 0..K-1 and what stands below it; they live as long as the file is open. */
const char *att_map_file_name(const att_map_file *maps, int64_t image);
const char *att_map_file_caption(const att_map_file *maps, int64_t image);

/* The `count` images with the numbers `shown`: {grid_h, grid_w, prefix, tokens, images: K, count, figure_names, image:
 * {h, w, c, data}, pictures: [{name, caption}, ...], nodes: [{node, heads, levels, figures, place}, ...]}. data,
 * levels, figures and place are base64 in little endian: levels U8 [count, H, N, G], the patches' weights in 255ths of
 * the query's largest; figures F32 and place I32 as in the file; figure_names names the figures of a query in their
 * order. Errors: ERR_FORMAT where one of these images has an entropy outside 0..ln N, a weight outside 0..1 or a place
 * outside the grid; ERR_MEMORY, and what reading says. */
att_status att_map_file_write(att_json_writer *json, const att_map_file *maps, const int64_t *shown, int64_t count);

/* --- for those who read a version's own tensors and metadata --- */

/* A JSON array of texts from the metadata, `count` of them unless it is negative. *list is the caller's after success
 * and failure. ERR_FORMAT where it is something else. */
att_status att_map_file_texts(const att_map_file *maps, const char *key, int64_t count, json_t **list);
/* ERR_FORMAT: the tensor is missing or is not `expected`; it has a value that is no `expected`. */
att_status att_map_file_fail_tensor(const att_map_file *maps, const char *name, const char *expected);
att_status att_map_file_fail_value(const att_map_file *maps, const char *name, const char *expected);
/* Whether it is a number from 0 to 1, to within rounding. */
bool att_map_file_is_share(float value);

#endif
