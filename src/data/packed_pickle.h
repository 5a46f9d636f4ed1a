/* data/packed_pickle.h - CIFAR's version for Python: pickles that are read without running code (io/pickle.h), and made
 * what the binary version has in the same place. */
#ifndef ATT_DATA_PACKED_PICKLE_H
#define ATT_DATA_PACKED_PICKLE_H

#include "data/packed.h"

/* Records of the layout from a batch: a dictionary with "data", numpy's matrix of one row of bytes an image, and a list
 * of as many numbers under the layout's key. `path`: for messages. *records is the caller's. Errors: ERR_FORMAT,
 * ERR_UNSUPPORTED (it asks for something to be called), ERR_MEMORY. */
att_status att_packed_unpickle_batch(att_context *context, const char *path, const att_packed_layout *layout,
                                     const char *bytes, size_t size, char **records, size_t *records_size);
/* One name a line, and a NUL, from a dictionary with a list of texts under the layout's key. */
att_status att_packed_unpickle_names(att_context *context, const char *path, const att_packed_layout *layout,
                                     const char *bytes, size_t size, char **text, size_t *text_size);

#endif
