/* attscope/printable.h - makes text from outside safe to print on a terminal. */
#ifndef ATTSCOPE_PRINTABLE_H
#define ATTSCOPE_PRINTABLE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces, in place, by '?' every byte of a character that could control a terminal or make a line look like another
 * one: control characters (C0, DEL, and the C1 controls in UTF-8); characters that change the direction of text
 * (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069); line and paragraph separators (U+2028, U+2029);
 * invisible ones (U+00AD, U+180E, U+200B, the other characters from U+2060 to U+206F, U+FEFF, U+FFF9 to U+FFFB, tags
 * from U+E0000 to U+E007F); and bytes that are not valid UTF-8. Joiners (U+200C, U+200D), which some languages spell
 * words with, stay, and with `keep_lines` newlines stay. Returns `text`. Thread-safe. A context's messages and log
 * lines have already been treated this way. */
ATT_API char *att_text_printable(char *text, bool keep_lines);

#ifdef __cplusplus
}
#endif
#endif
