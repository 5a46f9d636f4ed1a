#include "study/store/tfrecord.h"

enum { LENGTH_BYTES = 8, CRC_BYTES = 4, HEAD_BYTES = LENGTH_BYTES + CRC_BYTES };
static const uint32_t polynomial = 0x82f63b78; /* CRC-32C, bits reversed */

att_crc32c att_crc32c_make(void)
{
    att_crc32c crc;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? polynomial : 0);
        crc.table[byte] = value;
    }
    return crc;
}

static uint32_t masked_crc(const att_crc32c *crc, const uint8_t *bytes, size_t size)
{
    uint32_t value = UINT32_MAX;
    for (size_t i = 0; i < size; i++)
        value = crc->table[(value ^ bytes[i]) & 255] ^ value >> 8;
    value ^= UINT32_MAX;
    return (value >> 15 | value << 17) + 0xa282ead8;
}

static void put_number(uint64_t number, int bytes, uint8_t *out)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(number >> 8 * i);
}

static uint64_t get_number(const uint8_t *bytes, int count)
{
    uint64_t number = 0;
    for (int i = 0; i < count; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    return number;
}

void att_tfrecord_append(const att_crc32c *crc, const void *bytes, size_t size, att_text *text)
{
    uint8_t head[HEAD_BYTES], tail[CRC_BYTES];
    put_number(size, LENGTH_BYTES, head);
    put_number(masked_crc(crc, head, LENGTH_BYTES), CRC_BYTES, head + LENGTH_BYTES);
    put_number(masked_crc(crc, bytes, size), CRC_BYTES, tail);
    att_text_append_bytes(text, head, sizeof head);
    att_text_append_bytes(text, bytes, size);
    att_text_append_bytes(text, tail, sizeof tail);
}

att_tfrecord_found att_tfrecord_read(const att_crc32c *crc, const uint8_t *bytes, size_t size, const uint8_t **data,
                                     size_t *length, size_t *record_size)
{
    if (size < HEAD_BYTES)
        return ATT_TFRECORD_CUT_SHORT;
    if (masked_crc(crc, bytes, LENGTH_BYTES) != get_number(bytes + LENGTH_BYTES, CRC_BYTES))
        return ATT_TFRECORD_DAMAGED;
    uint64_t count = get_number(bytes, LENGTH_BYTES);
    if (size - HEAD_BYTES < CRC_BYTES || count > size - HEAD_BYTES - CRC_BYTES)
        return ATT_TFRECORD_CUT_SHORT;
    *data = bytes + HEAD_BYTES;
    *length = (size_t)count;
    *record_size = HEAD_BYTES + *length + CRC_BYTES;
    bool right = masked_crc(crc, *data, *length) == get_number(*data + *length, CRC_BYTES);
    return right ? ATT_TFRECORD_WHOLE : ATT_TFRECORD_DAMAGED;
}
