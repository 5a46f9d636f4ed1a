/* attscope/text.h - text for people: safe to print, suggestions for mistyped names, and the buffer in which a task
 * (attscope/task.h) writes its lines. */
#ifndef ATTSCOPE_TEXT_H
#define ATTSCOPE_TEXT_H

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

/* Returns the candidate with the smallest Damerau-Levenshtein distance to `text`, the first if several have it, or NULL
 * if the distance is more than a third of the letters of `text`, rounded up. name(user, i) returns candidate i, 0 <= i
 * < count. Thread-safe. */
ATT_API const char *att_text_nearest(const char *text, const char *(*name)(const void *user, int index),
                                     const void *user, int count);

/* A text buffer that grows. */
typedef struct att_text att_text;
/* Appends formatted text, as printf(). If memory runs out, the function that provided `text` reports it. */
ATT_API void att_text_append(att_text *text, const char *format, ...) ATT_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
