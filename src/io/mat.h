/* io/mat.h - reads a struct array from a MATLAB file of level 5 (.mat).
 *
 * Format: MathWorks, "MAT-File Format". Only what files of labels need is read: little-endian files, plain or
 * compressed variables, and the fields that are numbers or texts.
 */
#ifndef ATT_IO_MAT_H
#define ATT_IO_MAT_H

#include <attscope/context.h>

typedef struct att_mat_struct att_mat_struct;

/* Reads the variable `variable`, a struct array, from the bytes of a file, which are not needed afterwards. what: name
 * of the file for messages; must outlive the array. On success the caller owns *array. Errors: ERR_FORMAT (no such file
 * or variable, damaged), ERR_UNSUPPORTED (big-endian; unpacks to more than 64 MiB), ERR_MEMORY. */
att_status att_mat_struct_read(att_context *context, const char *what, const uint8_t *bytes, size_t size,
                               const char *variable, att_mat_struct **array);
void att_mat_struct_free(att_mat_struct **array);

/* Number of elements of the array. */
int64_t att_mat_struct_count(const att_mat_struct *array);
/* Read a field of element 0..count-1: the first number, or the text, whose length must be less than `size`. Error:
 * ERR_FORMAT (no such field, of another type, or too long). */
att_status att_mat_struct_number(const att_mat_struct *array, int64_t element, const char *field, double *number);
att_status att_mat_struct_text(const att_mat_struct *array, int64_t element, const char *field, char *text,
                               size_t size);

#endif
