/* io/pickle_numpy.h - numpy's matrices of bytes in a pickle. */
#ifndef ATT_IO_PICKLE_NUMPY_H
#define ATT_IO_PICKLE_NUMPY_H

#include "io/pickle.h"

typedef struct att_pickle_matrix {
    att_pickle_text bytes; /* in the pickle */
    bool utf8;             /* each is a character of Latin-1 in UTF-8: how Python 3 writes bytes in protocol 2 */
    int64_t rows, columns; /* both > 0, and as many bytes or more are there */
} att_pickle_matrix;

/* Whether a value is a matrix of uint8 that lies row by row, as numpy's arrays describe themselves
 * (ndarray.__reduce__() and, in protocol 5, numpy's _frombuffer()). */
bool att_pickle_matrix_find(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix);
/* Copies its rows x columns bytes; false where it has more, fewer, or others than bytes. */
bool att_pickle_matrix_copy(const att_pickle_matrix *matrix, uint8_t *out);

#endif
