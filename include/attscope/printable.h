/* attscope/printable.h - text that came from outside, made fit for a terminal. */
#ifndef ATTSCOPE_PRINTABLE_H
#define ATTSCOPE_PRINTABLE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces, in place, every byte that could steer a terminal by '?': control characters (C0, DEL, and the C1 controls
 * in UTF-8) and bytes that are not valid UTF-8. With `keep_lines` newlines stay. Messages of a context and lines of its
 * log have been through it. Returns `text`. Thread-safe. */
ATT_API char *att_text_printable(char *text, bool keep_lines);

#ifdef __cplusplus
}
#endif
#endif
