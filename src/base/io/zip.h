/* io/zip.h - reads the directory at the end of a zip archive.
 *
 * Format: PKWARE's APPNOTE 6.3.9, sections 4.3 and 4.5.3 (64-bit sizes).
 */
#ifndef ATT_IO_ZIP_H
#define ATT_IO_ZIP_H

#include "base/io/file.h"

typedef struct att_zip {
    att_context *context;
    const char *path; /* for messages */
    const att_file_reader *reader;
    uint64_t directory, directory_bytes, entries; /* offset, size and number of entries of the directory */
    uint64_t offset; /* bytes in front of the archive, to be added to att_zip_entry.begin; 0 unless the archive was
                        appended to another file, such as a self-extracting program */
} att_zip;

/* Finds the directory. Caller sets context, path and reader. Errors: ERR_FORMAT (no end record, so truncated or not a
 * zip; or damaged), ERR_IO, ERR_MEMORY. */
att_status att_zip_find_directory(att_zip *zip);

typedef struct att_zip_entry {
    const char *name; /* not NUL-terminated; points into the directory's bytes */
    size_t name_length;
    uint64_t begin; /* offset of the file's local header */
    uint64_t packed_size, size;
    uint32_t checksum; /* CRC-32 of the unpacked bytes */
    unsigned method;   /* 0: stored */
    bool encrypted;
} att_zip_entry;

/* Reads the directory entry at `bytes`. left: number of bytes available; ATT_ZIP_MOST_ENTRY bytes are enough for any
 * entry. *length: size of the entry. Fails with ERR_FORMAT if the entry is damaged or larger than `left`. */
att_status att_zip_read_entry(const att_zip *zip, const uint8_t *bytes, uint64_t left, att_zip_entry *entry,
                              uint64_t *length);
enum { ATT_ZIP_MOST_ENTRY = 46 + 3 * 65535 };

enum { ATT_ZIP_LOCAL_BYTES = 30 };
/* Returns the number of bytes from the beginning of a local header to the file's data, or 0 if this is not a local
 * header. header: its first ATT_ZIP_LOCAL_BYTES bytes. */
uint64_t att_zip_local_length(const uint8_t *header);

#endif
