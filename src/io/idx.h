/* io/idx.h - the IDX format of MNIST and its relatives: unsigned bytes of one to four dimensions, plain or gzipped.
 *
 * Big-endian: two zero bytes, the element type (8: unsigned byte), the rank, one u32 a dimension, then the elements.
 */
#ifndef ATT_IO_IDX_H
#define ATT_IO_IDX_H

#include <attscope/tensor.h>

enum { ATT_IDX_MAX_RANK = 4 };

/* bytes: att_shape_count(shape) elements, the owner's, freed by att_free(). */
typedef struct att_idx {
    att_shape shape;
    uint8_t *bytes;
} att_idx;

/* Reads a file, gzipped or not (found from its first bytes). `cap`: the most elements. On failure *idx is unchanged.
 * Errors: ERR_FORMAT (not IDX, truncated, longer than its dimensions say), ERR_UNSUPPORTED (other element types, more
 * than `cap` elements), ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_idx_read(att_context *context, const char *path, size_t cap, att_idx *idx);

#endif
