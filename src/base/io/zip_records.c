#include "base/io/zip_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/core/error.h"
#include "base/core/memory.h"

enum { MOST_DIRECTORY = 1 << 26, CHECK_BYTES = 1 << 18, DEFLATED = 8, RAW_DEFLATE = -15, MOST_INFLATED = 1 << 30 };

typedef att_zip_records archive;
typedef att_zip_record record;

att_status att_zip_records_refuse(const archive *a, const char *what)
{
    return att_fail(a->file->context, ATT_ERR_FORMAT, "%s: %s", a->file->path, what);
}

att_status att_zip_record_refuse(const archive *a, att_pickle_text name, att_status status, const char *what)
{
    char shown[ATT_PICKLE_SHOWN];
    return att_fail(a->file->context, status, "%s: %s in it %s", a->file->path, att_pickle_show(name, shown), what);
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

static att_status read_at(const archive *a, uint64_t offset, void *out, size_t size)
{
    return att_file_reader_read(a->file->reader, offset, out, size);
}

att_status att_zip_records_bytes(const archive *a, uint64_t offset, uint64_t size, uint8_t **bytes)
{
    *bytes = att_reallocate(a->file->context, NULL, (size_t)size + 1);
    if (!*bytes)
        return att_fail_memory(a->file->context, (size_t)size + 1, a->file->path);
    return read_at(a, offset, *bytes, (size_t)size);
}

/* Sets the offset of a record's data, which follow its local header. */
static att_status place_record(const archive *a, record *r)
{
    uint64_t end = a->zip.directory;
    uint8_t local[ATT_ZIP_LOCAL_BYTES] = {0};
    if (r->begin <= end && end - r->begin >= sizeof local)
        ATT_TRY(read_at(a, r->begin, local, sizeof local));
    uint64_t length = att_zip_local_length(local);
    if (length == 0)
        return att_zip_record_refuse(a, r->name, ATT_ERR_FORMAT,
                                     "has no local header at the offset given in the directory");
    r->data = r->begin + length;
    if (r->data > end || r->size > end - r->data)
        return att_zip_record_refuse(a, r->name, ATT_ERR_FORMAT, "extends beyond the archive");
    return ATT_OK;
}

static att_status read_entry(const archive *a, const att_zip_entry *entry, record *r)
{
    *r = (record){.name = {entry->name, entry->name_length},
                  .begin = entry->begin + a->zip.offset,
                  .size = entry->packed_size,
                  .unpacked = entry->size,
                  .checksum = entry->checksum,
                  .packed = entry->method != 0 || entry->packed_size != entry->size || entry->encrypted,
                  .deflated = entry->method == DEFLATED && !entry->encrypted};
    return place_record(a, r);
}

static int compare_names(const void *a, const void *b)
{
    return att_pickle_text_compare(((const record *)a)->name, ((const record *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
    const record *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Checks that records neither overlap nor share a name. Sorts the records by name. */
static att_status check_records(archive *a)
{
    qsort(a->records, a->count, sizeof *a->records, compare_places);
    for (size_t i = 1; i < a->count; i++)
        if (a->records[i - 1].data + a->records[i - 1].size > a->records[i].begin)
            return att_zip_record_refuse(a, a->records[i].name, ATT_ERR_FORMAT, "overlaps another file");
    qsort(a->records, a->count, sizeof *a->records, compare_names);
    for (size_t i = 1; i < a->count; i++)
        if (compare_names(&a->records[i - 1], &a->records[i]) == 0)
            return att_zip_record_refuse(a, a->records[i].name, ATT_ERR_FORMAT, "occurs twice");
    return ATT_OK;
}

att_status att_zip_records_read(archive *a)
{
    att_zip *zip = &a->zip;
    *zip = (att_zip){.context = a->file->context, .path = a->file->path, .reader = a->file->reader};
    ATT_TRY(att_zip_find_directory(zip));
    if (zip->entries == 0)
        return att_zip_records_refuse(a, "a zip archive without files, as numpy.savez() writes one without arrays");
    if (zip->directory_bytes > MOST_DIRECTORY)
        return att_zip_records_refuse(a, "a zip archive whose directory has more than 67108864 bytes");
    ATT_TRY(att_zip_records_bytes(a, zip->directory, zip->directory_bytes, &a->directory_text));
    ATT_TRY(att_new(a->file->context, &a->records, (size_t)zip->entries, a->file->path));
    const uint8_t *entry = a->directory_text;
    uint64_t left = zip->directory_bytes, length;
    for (; a->count < zip->entries; a->count++, entry += length, left -= length) {
        att_zip_entry found;
        ATT_TRY(att_zip_read_entry(zip, entry, left, &found, &length));
        ATT_TRY(read_entry(a, &found, &a->records[a->count]));
    }
    a->first = a->count > 0 ? a->records[0].name : (att_pickle_text){"", 0};
    return check_records(a);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

record *att_zip_records_find(const archive *a, att_pickle_text name)
{
    const record key = {.name = name};
    return bsearch(&key, a->records, a->count, sizeof *a->records, compare_names);
}

bool att_zip_record_ends(const record *r, const char *ending)
{
    const size_t end = strlen(ending);
    return r->name.length >= end && memcmp(r->name.bytes + r->name.length - end, ending, end) == 0;
}

att_status att_zip_record_check_plain(const archive *a, const record *found, const char *advice)
{
    char what[200];
    if (!found->packed)
        return ATT_OK;
    snprintf(what, sizeof what, "is compressed or encrypted; expected an uncompressed file, %s", advice);
    return att_zip_record_refuse(a, found->name, ATT_ERR_UNSUPPORTED, what);
}

static const char damaged[] = "has a wrong checksum (CRC-32); the file is damaged: copy or download it again";

/* Unpacks until the data end, or `out` is full; *code is then zlib's Z_STREAM_END or Z_BUF_ERROR. *left: bytes of `out`
 * that are not written. */
static att_status inflate_all(att_file_window *window, const record *from, z_stream *z, uint8_t *out, uint64_t *left,
                              int *code)
{
    uint64_t used = 0;
    for (*code = Z_OK; *code == Z_OK;) {
        const uint64_t packed = from->size - used;
        const unsigned room = *left < MOST_INFLATED ? (unsigned)*left : MOST_INFLATED;
        const uint8_t *bytes;
        size_t shown;
        ATT_TRY(att_file_window_peek(window, from->data + used, packed < CHECK_BYTES ? (size_t)packed : CHECK_BYTES,
                                     &bytes, &shown));
        const unsigned supply = (unsigned)(packed < shown ? packed : shown);
        z->next_in = (z_const Bytef *)(uintptr_t)bytes;
        z->avail_in = supply;
        z->next_out = out;
        z->avail_out = room;
        *code = inflate(z, Z_NO_FLUSH);
        used += supply - z->avail_in;
        out += room - z->avail_out;
        *left -= room - z->avail_out;
    }
    return ATT_OK;
}

att_status att_zip_record_unpack(const archive *a, const record *from, void *out)
{
    att_file_window window = {.reader = a->file->reader};
    z_stream z = {.next_out = out};
    uint64_t left = from->unpacked;
    int code;
    if (inflateInit2(&z, RAW_DEFLATE) != Z_OK)
        return att_fail_memory(a->file->context, sizeof z, a->file->path);
    att_status status = inflate_all(&window, from, &z, out, &left, &code);
    inflateEnd(&z);
    att_file_window_free(&window);
    if (status == ATT_OK && code == Z_MEM_ERROR)
        return att_fail_memory(a->file->context, sizeof z, a->file->path);
    if (status == ATT_OK && (code != Z_STREAM_END || left > 0))
        return att_zip_record_refuse(a, from->name, ATT_ERR_FORMAT,
                                     "cannot be unpacked, or to another size; the file is damaged");
    if (status == ATT_OK && from->checksum != (uint32_t)crc32_z(0, out, (size_t)from->unpacked))
        return att_zip_record_refuse(a, from->name, ATT_ERR_FORMAT, damaged);
    return status;
}

static att_status compute_checksum(const archive *a, const record *found, uint32_t *sum)
{
    att_file_window window = {.reader = a->file->reader};
    att_status status = ATT_OK;
    *sum = (uint32_t)crc32_z(0, NULL, 0);
    for (uint64_t done = 0; done < found->size && status == ATT_OK;) {
        uint64_t left = found->size - done;
        size_t wanted = left < CHECK_BYTES ? (size_t)left : CHECK_BYTES, shown;
        const uint8_t *bytes;
        status = att_file_window_peek(&window, found->data + done, wanted, &bytes, &shown);
        if (status == ATT_OK)
            *sum = (uint32_t)crc32_z(*sum, bytes, wanted);
        done += wanted;
    }
    att_file_window_free(&window);
    return status;
}

att_status att_zip_record_check(const archive *a, record *found)
{
    uint32_t sum = found->checksum;
    if (!found->checked && found->checksum != 0)
        ATT_TRY(compute_checksum(a, found, &sum));
    found->checked = true;
    if (sum == found->checksum)
        return ATT_OK;
    return att_zip_record_refuse(a, found->name, ATT_ERR_FORMAT, damaged);
}

void att_zip_records_free(archive *a)
{
    att_free(a->file->context, a->records);
    att_free(a->file->context, a->directory_text);
}
