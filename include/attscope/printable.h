/* attscope/printable.h - makes text from outside safe to print on a terminal. */
#ifndef ATTSCOPE_PRINTABLE_H
#define ATTSCOPE_PRINTABLE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces, in place, every byte that could control a terminal by '?': control characters (C0, DEL, and the C1 controls
 * in UTF-8) and bytes that are not valid UTF-8. With `keep_lines` newlines stay. Returns `text`. Thread-safe. A
 * context's messages and log lines have already been treated this way. */
ATT_API char *att_text_printable(char *text, bool keep_lines);

#ifdef __cplusplus
}
#endif
#endif
