/* report/map_file.h - a run's maps.safetensors (attscope/report.h says what is in it). */
#ifndef ATT_REPORT_MAP_FILE_H
#define ATT_REPORT_MAP_FILE_H

#include <attscope/tensors.h>

#include "core/memory.h"
#include "io/json.h"

typedef struct att_map_node {
    const char *name; /* "blocks.0.attn.map" */
    int map, max;     /* the tensors' indices */
    int64_t heads;
} att_map_node;

typedef struct att_map_file {
    att_context *context;
    att_tensors *file;
    int64_t grid_h, grid_w, prefix, tokens;
    int64_t images; /* K */
    int image;      /* tensor's index */
    att_shape image_shape;
    att_map_node *nodes;
    int node_count;
    size_t bytes_per_image; /* of image and maps */
    json_t *class_names;    /* NULL where the file has none */
} att_map_file;

/* Errors: ERR_FORMAT where the file is something else; those of att_tensors_open(). After success *maps is the
 * caller's, freed by att_map_file_close(). */
att_status att_map_file_open(att_context *context, const char *path, att_map_file *maps);
/* Zeros are allowed. */
void att_map_file_close(att_map_file *maps);

/* The first `count` images: {grid_h, grid_w, prefix, tokens, images: K, count, image: {h, w, c, data}, label,
 * prediction, label_name, prediction_name: arrays of `count`, nodes: [{node, heads, map, max}, ...]}. data, map and max
 * are base64, max of f32 in little endian. ERR_MEMORY, and what reading says. */
att_status att_map_file_write(att_json_writer *json, const att_map_file *maps, int64_t count);

#endif
