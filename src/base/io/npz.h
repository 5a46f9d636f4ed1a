/* io/npz.h - writes numpy's files: the header of a .npy file, and .npz files, which are zip archives of .npy files.
 *
 * Format: numpy.lib.format, version 1.0; PKWARE's APPNOTE 6.3.9 with stored entries.
 */
#ifndef ATT_IO_NPZ_H
#define ATT_IO_NPZ_H

#include <attscope/tensor.h>

#include "base/io/file.h"

enum { ATT_NPY_HEADER = 512 };
/* Writes the header in front of the numbers of a .npy file, row by row, and returns its length, a multiple of 64. type:
 * as numpy names it: "<f4", "<f8", "<i8", "|b1", "<U40". */
ATT_FOR_LAB size_t att_npy_header(const char *type, att_shape shape, char header[ATT_NPY_HEADER]);

/* Writes a .npz file, which replaces another one atomically. */
typedef struct att_npz att_npz;
ATT_FOR_LAB ATT_MUST_CHECK att_status att_npz_open(att_context *context, const char *path, att_npz **npz);
/* Adds an array; its type and shape as above. bytes: its data, of `size` bytes, which are not kept. After a failure,
 * caller must still abort or commit, which then fails. Errors: ERR_UNSUPPORTED (2^32 bytes and more), those of
 * writing. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_npz_add(att_npz *npz, const char *name, const char *type, att_shape shape,
                                                  const void *bytes, size_t size);
/* Adds an array [count] of texts. name(user, i) returns text i. Bytes that are not UTF-8 become '?'. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_npz_add_texts(att_npz *npz, const char *name, int64_t count,
                                                        const char *(*text)(const void *user, int64_t index),
                                                        const void *user);
/* As att_file_writer_commit(): always frees *npz and sets it to NULL. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_npz_commit(att_npz **npz);
/* Leaves no file, frees *npz and sets it to NULL. NULL and pointers to NULL are allowed. */
ATT_FOR_LAB void att_npz_abort(att_npz **npz);

#endif
