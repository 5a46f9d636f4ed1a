/* core/text.h - strings: growing buffers, wildcards, distances. */
#ifndef ATT_CORE_TEXT_H
#define ATT_CORE_TEXT_H

#include <attscope/context.h>

#include "core/export.h"

/* A string that grows. Zero-initialise, then set `context`. After a failed allocation `failed` is set and appends do
 * nothing; check it once at the end. */
typedef struct att_text {
    att_context *context;
    char *data; /* NUL-terminated once anything was appended */
    size_t length, capacity;
    bool failed;
} att_text;
ATT_API void att_text_append(att_text *text, const char *format, ...) ATT_PRINTF(2, 3);
ATT_FOR_LAB void att_text_append_bytes(att_text *text, const void *bytes, size_t count);
ATT_FOR_LAB void att_text_free(att_text *text);

/* fnmatch-like: '*' any run of characters, '?' one. */
bool att_text_matches(const char *pattern, const char *text);
/* Damerau-Levenshtein distance (adjacent transpositions count one), for texts of up to 127 bytes; larger ones are far.
 */
int att_text_distance(const char *a, const char *b);
/* Bytes of the mark with which some editors begin UTF-8: 3, or 0 where there is none. */
size_t att_text_mark(const char *text);
/* The part of a path behind its last slash. */
ATT_FOR_LAB const char *att_path_last(const char *path);
/* "640 bytes", "1.5 MiB" in `text`, which is returned. */
char *att_size_format(size_t bytes, char *text, size_t size);
/* Whole-string numbers: false where anything is left over, out of range, or not finite. */
ATT_FOR_LAB bool att_text_to_i64(const char *text, int64_t *value);
ATT_FOR_LAB bool att_text_to_f64(const char *text, double *value);
enum { ATT_NUMBER_TEXT = 32 };
/* The shortest digits that read back as the same number ("nan", "inf", "-inf" for those), with a point whatever the
 * locale; returns `text`. */
ATT_FOR_LAB char *att_format_number(double value, char text[static ATT_NUMBER_TEXT]);

#endif
