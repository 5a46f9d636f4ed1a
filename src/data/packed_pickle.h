/* data/packed_pickle.h - CIFAR's Python version: reads pickles without running code (io/pickle.h) and converts them to
 * the contents of the binary version's files. */
#ifndef ATT_DATA_PACKED_PICKLE_H
#define ATT_DATA_PACKED_PICKLE_H

#include "data/packed.h"

/* Converts a batch to records of the layout. The batch is a dictionary. Its key "data" has a numpy matrix with one row
 * of bytes per image; its key layout->labels_key has a list of as many numbers. `path`: for messages. The caller owns
 * *records. Errors: ERR_FORMAT, ERR_UNSUPPORTED (the pickle asks to call something), ERR_MEMORY. */
att_status att_packed_unpickle_batch(att_context *context, const char *path, const att_packed_layout *layout,
                                     const char *bytes, size_t size, char **records, size_t *records_size);
/* Converts a dictionary with a list of strings under layout->names_key to text with one name per line, which ends in a
 * NUL. The caller owns *text. */
att_status att_packed_unpickle_names(att_context *context, const char *path, const att_packed_layout *layout,
                                     const char *bytes, size_t size, char **text, size_t *text_size);

#endif
