/* core/text.h - strings: growing buffers, wildcards, edit distances, numbers. */
#ifndef ATT_CORE_TEXT_H
#define ATT_CORE_TEXT_H

#include <attscope/text.h>

#include "base/core/memory.h"

/* A string that grows. Zero-initialise, then set `context`. If an allocation fails, `failed` is set and later appends
 * do nothing, so it is enough to check `failed` once at the end. */
struct att_text {
    att_context *context;
    char *data; /* NULL before the first append, then NUL-terminated */
    size_t length, capacity;
    bool failed;
};
ATT_FOR_LAB void att_text_append_bytes(att_text *text, const void *bytes, size_t count);
ATT_FOR_LAB void att_text_free(att_text *text);

/* Returns whether the whole text matches the pattern. '*' matches any number of characters, '?' matches one. */
ATT_FOR_LAB bool att_text_matches(const char *pattern, const char *text);
/* Returns whether the whole text matches one of the patterns, which commas separate. Blanks around a pattern do not
 * count. */
ATT_FOR_LAB bool att_text_matches_any(const char *patterns, const char *text);
/* Returns the Damerau-Levenshtein distance, in which swapping two adjacent characters counts as one edit. Returns 128
 * if a text is longer than 127 bytes. */
int att_text_distance(const char *a, const char *b);
/* Returns the length in bytes of the UTF-8 character at the start of the NUL-terminated `text`, or 0 if it is
 * malformed. */
ATT_FOR_LAB size_t att_utf8_length(const char *text);
/* As att_utf8_length(), and also sets *code to the character's number in Unicode if it is not malformed. */
size_t att_utf8_decode(const char *text, uint32_t *code);
bool att_utf8_valid(const char *text);
/* Whether the character is shown as itself on a terminal: it controls nothing (att_text_printable()). */
bool att_code_is_printable(uint32_t code);
/* Returns the length in bytes of the UTF-8 byte order mark at the beginning of the text: 3, or 0 if there is none. */
size_t att_text_bom_size(const char *text);
/* Splits a text that a user wrote into its lines, in place: without a byte order mark and the carriage returns of
 * Windows' line ends. A line end at the very end begins no further line. The arena holds the array *lines. origin:
 * begins the message. Errors: ERR_FORMAT (a zero byte within `size`), ERR_MEMORY. */
att_status att_text_all_lines(att_arena *arena, const char *origin, char *text, size_t size, const char ***lines,
                              int *count);
/* As att_text_all_lines(), without blank lines at the end, for lists. */
att_status att_text_lines(att_arena *arena, const char *origin, char *text, size_t size, const char ***lines,
                          int *count);
/* Returns the part of a path after its last slash. */
ATT_FOR_LAB const char *att_path_last(const char *path);
/* Whether a file of an archive, or a folder that it lies in, begins with a dot: ".ipynb_checkpoints/1.png", and the
 * files "._1.png" that macOS adds. */
bool att_path_is_hidden(const char *path);
/* Writes a size such as "640 bytes" or "1.5 MiB" to `text` and returns `text`. */
char *att_size_format(size_t bytes, char *text, size_t size);
/* Parse the whole string as a number. Return false if other characters follow, or the number is out of range or not
 * finite. */
ATT_FOR_LAB bool att_text_to_i64(const char *text, int64_t *value);
ATT_FOR_LAB bool att_text_to_f64(const char *text, double *value);
/* Parses whole numbers from `low` to `high`, joined by commas. Returns their count; 0 if the text is anything else or
 * has more than `most` numbers. */
int att_text_to_list(const char *text, int low, int high, int *numbers, int most);
/* Writes numbers in that form; returns false if the text does not fit. */
bool att_format_list(const int *numbers, int count, char *text, size_t size);
enum { ATT_NUMBER_TEXT = 32 };
/* Writes a number, or "nan", "inf" or "-inf", to `text` and returns `text`. Uses the fewest of 15, 16 or 17 significant
 * digits that read back as the same number, and a decimal point in every locale. */
ATT_FOR_LAB char *att_format_number(double value, char text[static ATT_NUMBER_TEXT]);

#endif
