/* attscope/npz.h - writes arrays as numpy.savez() does. */
#ifndef ATTSCOPE_NPZ_H
#define ATTSCOPE_NPZ_H

#include <attscope/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array in C order. */
typedef struct att_npz_array {
    const char *name; /* by which numpy.load() finds it; at most 200 bytes, without '/' */
    const char *type; /* of the elements, as numpy writes it: "<f8", "<f4", "<i8", "<i4" or "|u1" */
    att_shape shape;
    const void *data;
} att_npz_array;

/* Writes an .npz file, uncompressed, by att_file_replace(). Errors: ERR_ARGUMENT (a name or type that is not as above,
 * more than 65,535 arrays or 2 GiB); those of att_file_replace(). */
ATT_API ATT_MUST_CHECK att_status att_npz_write(att_context *context, const att_npz_array *arrays, int count,
                                                const char *path);

#ifdef __cplusplus
}
#endif
#endif
