/* io/npz_read.h - reads NumPy's archives (.npz): zip archives of files NAME.npy, as numpy.savez() and
 * numpy.savez_compressed() write them. Arrays that are compressed are unpacked into memory.
 *
 * Format: numpy.lib.format, versions 1 to 3. Names are "NAME", with dots in place of slashes.
 */
#ifndef ATT_IO_NPZ_READ_H
#define ATT_IO_NPZ_READ_H

#include "base/io/zip_records.h"

/* Whether a file of the archive is an array. */
bool att_npz_holds_arrays(const att_zip_records *archive);
/* Sets items and origin of archive->file. Arrays of other types than numbers are left out. Errors: ERR_FORMAT for a
 * damaged array, ERR_UNSUPPORTED for an encrypted archive or numbers that are big-endian, ERR_IO, ERR_MEMORY. */
att_status att_npz_collect(const att_zip_records *archive);

#endif
