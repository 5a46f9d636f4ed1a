/* io/pickle_numpy.h - reads numpy matrices of uint8 from a pickle. */
#ifndef ATT_IO_PICKLE_NUMPY_H
#define ATT_IO_PICKLE_NUMPY_H

#include "base/io/pickle.h"

typedef struct att_pickle_matrix {
    att_pickle_text bytes; /* points into the pickle */
    bool utf8;             /* byte n is stored as U+00nn in UTF-8, as Python 3 stores bytes in protocol 2 */
    int64_t rows, columns; /* both > 0; rows x columns is at most bytes.length */
} att_pickle_matrix;

/* Returns whether a value is a row-major matrix of uint8, in one of numpy's two representations: that of
 * ndarray.__reduce__() and, in protocol 5, that of _frombuffer(). */
bool att_pickle_matrix_find(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix);
/* Copies rows x columns bytes to `out`. Returns false if the matrix has another number of bytes, or if a character is
 * not Latin-1. */
bool att_pickle_matrix_copy(const att_pickle_matrix *matrix, uint8_t *out);

#endif
