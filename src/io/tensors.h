/* io/tensors.h - an open file of named tensors, which each format fills. */
#ifndef ATT_IO_TENSORS_H
#define ATT_IO_TENSORS_H

#include <attscope/tensors.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/file.h"

typedef struct att_tensors_item {
    att_tensors_info info;
    uint64_t place;         /* of element 0, in bytes from the file's beginning */
    const int64_t *strides; /* [rank], in elements; in the arena. NULL: row-major without gaps */
} att_tensors_item;

struct att_tensors {
    att_context *context;
    att_arena arena;
    char *path;
    att_file_reader *reader;
    char *header; /* what names and metadata of safetensors point into */
    att_tensors_item *items;
    int count;
    struct att_tensors_name *names; /* by name; made by the opener */
    att_safetensors_pair *metadata;
    int metadata_count;
    const char *origin, *skipped;
    bool has_average;
};

/* Readers of an open file, one a format. They fill items, metadata, origin and has_average, whose arrays come from
 * att_allocate() and whose texts lie in the arena or the header; every element of every item lay in the file when it
 * was opened. What they leave after a failure is freed by the caller. */
att_status att_tensors_read_safetensors(att_tensors *file);
/* The file is a zip archive; a pickle. */
att_status att_tensors_read_torch_zip(att_tensors *file);
att_status att_tensors_read_torch_pickles(att_tensors *file);

/* Gives the tensors from item `first` on the names that their network has, as attscope/tensors.h says: takes prefixes
 * off ("module."), removes what only a self-supervised training uses and adds it to file->skipped, and joins chunks of
 * blocks. Appends to `said` what was changed. A few tensors without a prefix keep their names: at most 16, and a
 * quarter of all. Errors: ERR_MEMORY. */
att_status att_tensors_tidy(att_tensors *file, int first, att_text *said);

#endif
