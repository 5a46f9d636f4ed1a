/* data/label_sets.h - several right classes for an image: ImageNet's reassessed labels, "ReaL" (Beyer et al., "Are we
 * done with ImageNet?", 2020).
 */
#ifndef ATT_DATA_LABEL_SETS_H
#define ATT_DATA_LABEL_SETS_H

#include <attscope/data.h>

#include "base/core/memory.h"

/* Image i of the data set has the classes labels[first[i]] to labels[first[i + 1] - 1]; none: it is not judged. */
typedef struct att_label_sets {
    att_arena arena;
    int64_t count;
    int64_t *first; /* [count + 1] */
    int32_t *labels;
} att_label_sets;

/* Reads real.json: an array whose element n is an array of the classes of ILSVRC2012_val_<n + 1, eight digits>. The
 * images of the data set are found in it by their names. sets->arena.context is set, all else zero; the caller calls
 * att_label_sets_free(), also after a failure. Errors: those of att_file_read(); ERR_FORMAT (another content);
 * ERR_MISMATCH (a name of another form, an image that the file lacks, a class outside 0..classes-1). */
att_status att_label_sets_read(const char *path, const att_dataset *dataset, int classes, att_label_sets *sets);
void att_label_sets_free(att_label_sets *sets);

#endif
