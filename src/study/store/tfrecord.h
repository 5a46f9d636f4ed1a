/* store/tfrecord.h - reads and writes records of TFRecord files.
 *
 * A record is: length (u64, little endian), mask(crc32c(those 8 bytes)) (u32), the bytes, mask(crc32c(bytes)) (u32).
 * mask(c) = (c >> 15 | c << 17) + 0xa282ead8. Format: https://www.tensorflow.org/tutorials/load_data/tfrecord; CRC-32C:
 * RFC 3720, appendix B.4.
 */
#ifndef ATT_STORE_TFRECORD_H
#define ATT_STORE_TFRECORD_H

#include "base/core/text.h"

typedef struct att_crc32c {
    uint32_t table[256];
} att_crc32c;
att_crc32c att_crc32c_make(void);

/* Appends one record of `size` bytes, at most UINT32_MAX, to `text`. */
void att_tfrecord_append(const att_crc32c *crc, const void *bytes, size_t size, att_text *text);

typedef enum att_tfrecord_found { ATT_TFRECORD_WHOLE, ATT_TFRECORD_CUT_SHORT, ATT_TFRECORD_DAMAGED } att_tfrecord_found;
/* Reads the record at the beginning of bytes[0..size-1]. If it is WHOLE, sets *data and *length to its payload and
 * *record_size to its size including length and checksums. CUT_SHORT: the record needs more than `size` bytes. */
att_tfrecord_found att_tfrecord_read(const att_crc32c *crc, const uint8_t *bytes, size_t size, const uint8_t **data,
                                     size_t *length, size_t *record_size);

#endif
