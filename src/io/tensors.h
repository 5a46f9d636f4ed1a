/* io/tensors.h - an open file of named tensors, which each format fills. */
#ifndef ATT_IO_TENSORS_H
#define ATT_IO_TENSORS_H

#include <attscope/tensors.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/file.h"

typedef struct att_tensors_item {
    att_tensors_info info;
    const uint8_t *data;           /* of element 0, in the mapped file; may be misaligned */
    int64_t strides[ATT_MAX_RANK]; /* in elements, where the tensor is not packed */
    bool packed;                   /* row-major without gaps */
} att_tensors_item;

struct att_tensors {
    att_context *context;
    att_arena arena;
    char *path;
    att_file_map map;
    att_tensors_item *items;
    int count;
    struct att_tensors_name *names; /* by name; made by the opener */
    att_safetensors_pair *metadata;
    int metadata_count;
    const char *origin;
    bool has_average;
};

/* Readers of a mapped file, one a format. They fill items, metadata, origin and has_average, whose arrays come from
 * att_allocate() and whose texts from the arena; every element of every item lies in the map. What they leave after a
 * failure is freed by the caller. */
att_status att_tensors_read_safetensors(att_tensors *file);
/* The mapped file is a zip archive; a pickle. */
att_status att_tensors_read_torch_zip(att_tensors *file);
att_status att_tensors_read_torch_pickles(att_tensors *file);

/* Takes prefixes that codes put before all names ("module.") off those from item `first` on, for as long as they have
 * one, and appends to `said` which. A few strangers keep their names: at most 16, and a quarter of all. */
void att_tensors_strip(att_tensors *file, int first, att_text *said);

#endif
