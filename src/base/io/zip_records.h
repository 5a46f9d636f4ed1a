/* io/zip_records.h - the files in a zip archive of tensors, which are read in place. */
#ifndef ATT_IO_ZIP_RECORDS_H
#define ATT_IO_ZIP_RECORDS_H

#include "base/io/pickle.h"
#include "base/io/tensors.h"
#include "base/io/zip.h"

/* A file in the archive. */
typedef struct att_zip_record {
    att_pickle_text name;
    uint64_t begin; /* offset of its local header */
    uint64_t data;  /* offset of its `size` bytes of data */
    uint64_t size;
    uint64_t unpacked;              /* bytes of the file, which `size` bytes hold */
    uint32_t checksum;              /* CRC-32; 0 if missing, as after torch.serialization.set_crc32_options(False) */
    bool packed, deflated, checked; /* deflated: packed, by the method that att_zip_record_unpack() reads */
} att_zip_record;

typedef struct att_zip_records {
    att_tensors *file; /* the archive, an open file; set by the caller */
    att_zip zip;
    uint8_t *directory_text;
    att_zip_record *records; /* sorted by name */
    size_t count;            /* at least 1 */
    att_pickle_text first;   /* name of the first file of the directory */
} att_zip_records;

/* Reads the directory. Records neither overlap nor share a name. Caller frees what was read with
 * att_zip_records_free(), also on failure. Errors: ERR_FORMAT, ERR_IO, ERR_MEMORY. */
att_status att_zip_records_read(att_zip_records *archive);
void att_zip_records_free(att_zip_records *archive);
/* Returns NULL if there is none. */
att_zip_record *att_zip_records_find(const att_zip_records *archive, att_pickle_text name);
bool att_zip_record_ends(const att_zip_record *record, const char *ending);

/* Fails unless the file is stored as it is. advice: how to store it so. */
att_status att_zip_record_check_plain(const att_zip_records *archive, const att_zip_record *record, const char *advice);
/* Unpacks a deflated file into `out`, of record->unpacked bytes, and checks the checksum. Errors: ERR_FORMAT if the
 * data are damaged, or more or fewer; ERR_IO, ERR_MEMORY. */
att_status att_zip_record_unpack(const att_zip_records *archive, const att_zip_record *record, void *out);
/* Fails if the checksum is wrong; reads the data once. Of files that are stored as they are. */
att_status att_zip_record_check(const att_zip_records *archive, att_zip_record *record);
/* Fails with "PATH: NAME in it WHAT". */
att_status att_zip_record_refuse(const att_zip_records *archive, att_pickle_text name, att_status status,
                                 const char *what);
/* Fails with "PATH: WHAT" (ERR_FORMAT). */
att_status att_zip_records_refuse(const att_zip_records *archive, const char *what);
/* Reads `size` bytes of the archive, and a NUL. Caller frees *bytes, also on failure. */
att_status att_zip_records_bytes(const att_zip_records *archive, uint64_t offset, uint64_t size, uint8_t **bytes);

#endif
