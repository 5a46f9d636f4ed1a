/* io/base64.h - RFC 4648. */
#ifndef ATT_IO_BASE64_H
#define ATT_IO_BASE64_H

#include "base/core/text.h"

/* Appends the encoding of `count` bytes to `text`, with padding. */
ATT_FOR_LAB void att_base64_append(att_text *text, const uint8_t *bytes, size_t count);
/* Decodes `length` characters, with padding and without blanks. bytes: room for length / 4 * 3. Returns false if they
 * are anything else. */
bool att_base64_decode(const char *text, size_t length, uint8_t *bytes, size_t *count);

#endif
