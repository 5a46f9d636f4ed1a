#include "base/io/zip.h"

#include "base/core/error.h"
#include "base/core/memory.h"

enum {
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    MOST_COMMENT = 65535,
};

static att_status refuse(const att_zip *zip, const char *what)
{
    return att_fail(zip->context, ATT_ERR_FORMAT, "%s: %s", zip->path, what);
}

static uint64_t little_endian(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static bool has_signature(const uint8_t *bytes, uint8_t third, uint8_t fourth)
{
    return bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == third && bytes[3] == fourth;
}

/* Returns the offset in `tail`, the file's last `size` bytes, of the last end record, or `size` if there is none. The
 * archive's comment follows the record, and in some files a few more bytes. */
static size_t find_end(const uint8_t *tail, size_t size)
{
    if (size < END_BYTES)
        return size;
    size_t last = size - END_BYTES;
    for (size_t at = last;; at--) {
        if (has_signature(tail + at, 5, 6) && little_endian(tail + at + 20, 2) <= last - at)
            return at;
        if (at == 0 || last - at == MOST_COMMENT)
            return size;
    }
}

/* Reads the directory's offset, size and number of entries from the end record `end`, which is at offset `place` of the
 * file. */
static void read_end_record(att_zip *zip, const uint8_t *end, uint64_t place)
{
    zip->entries = little_endian(end + 10, 2);
    zip->directory_bytes = little_endian(end + 12, 4);
    zip->directory = little_endian(end + 16, 4);
    if (zip->directory_bytes <= place && zip->directory < place - zip->directory_bytes) {
        zip->offset = place - zip->directory_bytes - zip->directory;
        zip->directory += zip->offset;
    }
}

/* Reads the directory's offset, size and number of entries from the zip64 end record, whose offset is in `locator`. */
static att_status read_end64_record(att_zip *zip, const uint8_t *locator)
{
    uint64_t file_size = att_file_reader_size(zip->reader), place = little_endian(locator + 8, 8);
    uint8_t wide[END64_BYTES] = {0};
    if (place <= file_size && file_size - place >= END64_BYTES)
        ATT_TRY(att_file_reader_read(zip->reader, place, wide, sizeof wide));
    if (!has_signature(wide, 6, 6))
        return refuse(zip, "a zip archive whose end is damaged");
    zip->entries = little_endian(wide + 32, 8);
    zip->directory_bytes = little_endian(wide + 40, 8);
    zip->directory = little_endian(wide + 48, 8);
    return ATT_OK;
}

/* Finds the directory. tail: the file's last `size` bytes. */
static att_status read_directory_place(att_zip *zip, const uint8_t *tail, size_t size)
{
    uint64_t file_size = att_file_reader_size(zip->reader);
    size_t at = find_end(tail, size);
    if (at == size)
        return refuse(zip, "a zip archive without its end, probably truncated: copy or download it again");
    if (at >= LOCATOR_BYTES && has_signature(tail + at - LOCATOR_BYTES, 6, 7))
        ATT_TRY(read_end64_record(zip, tail + at - LOCATOR_BYTES));
    else
        read_end_record(zip, tail + at, file_size - size + at);
    if (zip->directory > file_size || zip->directory_bytes > file_size - zip->directory ||
        zip->entries > zip->directory_bytes / CENTRAL_BYTES)
        return refuse(zip, "a zip archive whose directory is damaged");
    return ATT_OK;
}

att_status att_zip_find_directory(att_zip *zip)
{
    enum { TAIL = LOCATOR_BYTES + END_BYTES + MOST_COMMENT };
    uint64_t file_size = att_file_reader_size(zip->reader);
    size_t size = file_size < TAIL ? (size_t)file_size : TAIL;
    uint8_t *tail = att_reallocate(zip->context, NULL, size + 1);
    if (!tail)
        return att_fail_memory(zip->context, size + 1, zip->path);
    att_status status = att_file_reader_read(zip->reader, file_size - size, tail, size);
    if (status == ATT_OK)
        status = read_directory_place(zip, tail, size);
    att_free(zip->context, tail);
    return status;
}

/* Replaces each number that is 0xFFFFFFFF by a 64-bit number from the extra field, which contains them in this order.
 * Returns false if the extra field is malformed. */
static bool read_64_bit_numbers(const uint8_t *extra, uint64_t length, uint64_t *const numbers[3])
{
    while (length >= 4) {
        uint64_t size = little_endian(extra + 2, 2);
        if (size > length - 4)
            return false;
        if (little_endian(extra, 2) == 1) {
            const uint8_t *at = extra + 4;
            for (int i = 0; i < 3; i++) {
                if (*numbers[i] != UINT32_MAX)
                    continue;
                if (extra + 4 + size - at < 8)
                    return false;
                *numbers[i] = little_endian(at, 8);
                at += 8;
            }
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return true;
}

att_status att_zip_read_entry(const att_zip *zip, const uint8_t *bytes, uint64_t left, att_zip_entry *entry,
                              uint64_t *length)
{
    if (left < CENTRAL_BYTES || !has_signature(bytes, 1, 2))
        return refuse(zip, "a zip archive whose directory is damaged");
    uint64_t name = little_endian(bytes + 28, 2), extra = little_endian(bytes + 30, 2);
    *length = CENTRAL_BYTES + name + extra + little_endian(bytes + 32, 2);
    if (*length > left)
        return refuse(zip, "a zip archive whose directory is damaged");
    *entry = (att_zip_entry){.name = (const char *)bytes + CENTRAL_BYTES,
                             .name_length = (size_t)name,
                             .begin = little_endian(bytes + 42, 4),
                             .packed_size = little_endian(bytes + 20, 4),
                             .size = little_endian(bytes + 24, 4),
                             .checksum = (uint32_t)little_endian(bytes + 16, 4),
                             .method = (unsigned)little_endian(bytes + 10, 2),
                             .encrypted = little_endian(bytes + 8, 2) & 1};
    uint64_t *const numbers[] = {&entry->size, &entry->packed_size, &entry->begin};
    if (!read_64_bit_numbers(bytes + CENTRAL_BYTES + name, extra, numbers))
        return refuse(zip, "a zip archive whose directory has sizes that cannot be read");
    return ATT_OK;
}

uint64_t att_zip_local_length(const uint8_t *header)
{
    if (!has_signature(header, 3, 4))
        return 0;
    return ATT_ZIP_LOCAL_BYTES + little_endian(header + 26, 2) + little_endian(header + 28, 2);
}
