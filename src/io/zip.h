/* io/zip.h - the directory at the end of a zip archive.
 *
 * Layout: PKWARE's APPNOTE 6.3.9, sections 4.3 and 4.5.3 (sizes of 64 bits).
 */
#ifndef ATT_IO_ZIP_H
#define ATT_IO_ZIP_H

#include "io/file.h"

typedef struct att_zip {
    att_context *context;
    const char *path; /* for messages */
    const att_file_reader *reader;
    uint64_t directory, directory_bytes, entries; /* where the directory lies, its size and number of entries */
    uint64_t offset; /* bytes in front of the archive, to be added to att_zip_entry.begin; 0 unless it was appended to
                        another file, as in a self-extracting archive */
} att_zip;

/* Set context, path and reader; finds the directory. Errors: ERR_FORMAT (no end record: truncated or no zip; damaged),
 * ERR_IO, ERR_MEMORY. */
att_status att_zip_find_directory(att_zip *zip);

typedef struct att_zip_entry {
    const char *name; /* not terminated; points into the directory's bytes */
    size_t name_length;
    uint64_t begin; /* of the file's local header */
    uint64_t packed_size, size;
    uint32_t checksum; /* CRC-32 of the unpacked bytes */
    unsigned method;   /* 0: stored */
    bool encrypted;
} att_zip_entry;

/* Reads the directory's entry at `bytes`, of which `left` are there. *length: bytes of the entry. ERR_FORMAT where the
 * entry is damaged or larger than `left`; ATT_ZIP_MOST_ENTRY bytes hold any entry. */
att_status att_zip_read_entry(const att_zip *zip, const uint8_t *bytes, uint64_t left, att_zip_entry *entry,
                              uint64_t *length);
enum { ATT_ZIP_MOST_ENTRY = 46 + 3 * 65535 };

enum { ATT_ZIP_LOCAL_BYTES = 30 };
/* Reads a local header of ATT_ZIP_LOCAL_BYTES bytes: how many bytes lie between its begin and the file's data; 0 where
 * it is no local header. */
uint64_t att_zip_local_length(const uint8_t *header);

#endif
