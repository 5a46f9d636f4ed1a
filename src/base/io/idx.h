/* io/idx.h - reads the IDX format of MNIST: arrays of unsigned bytes with one to four dimensions, plain or gzipped.
 *
 * Layout, big-endian: two zero bytes, the element type (8: unsigned byte), the rank, one u32 per dimension, the
 * elements.
 */
#ifndef ATT_IO_IDX_H
#define ATT_IO_IDX_H

#include <attscope/tensor.h>

enum { ATT_IDX_MAX_RANK = 4 };

/* bytes: att_shape_count(shape) elements, to be freed with att_free(). */
typedef struct att_idx {
    att_shape shape;
    uint8_t *bytes;
} att_idx;

/* Reads a file. Detects gzip from the first bytes. cap: limit on the number of elements. On failure *idx is unchanged.
 * Errors: ERR_FORMAT (not IDX, truncated, or longer than its dimensions require), ERR_UNSUPPORTED (another element
 * type, or more than `cap` elements), ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_idx_read(att_context *context, const char *path, size_t cap, att_idx *idx);

#endif
