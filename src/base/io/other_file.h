/* io/other_file.h - files of other kinds, which people give in place of weights. */
#ifndef ATT_IO_OTHER_FILE_H
#define ATT_IO_OTHER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ATT_OTHER_FILE_BYTES = 264, /* a tar archive has its signature at byte 257 */
    ATT_OTHER_FILE_TEXT = 128
};

/* Writes what a file seems to be, and for some kinds what to do: "HDF5, as Keras writes; ...". Returns false, and
 * leaves text as it is, if neither the file's first bytes nor the ending of its name tell. begin: its first
 * ATT_OTHER_FILE_BYTES, or all of it. */
bool att_other_file(const char *path, const uint8_t *begin, size_t size, char text[ATT_OTHER_FILE_TEXT]);

#endif
