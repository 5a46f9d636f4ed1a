/* attscope/lab/json.h - writing JSON: results for --json, records of a log.
 *
 * The writer remembers the first failure: a wrong order of calls (a value without its key, an end without its begin) or
 * lack of memory. att_json_writer_finish() reports it, so the calls before need no checks.
 *
 * Jansson, which reads JSON here, does not write it: json_dumps() needs a tree outside of the context's memory, refuses
 * NaN and text that is not UTF-8, and writes 0.1 with 17 digits.
 */
#ifndef ATTSCOPE_LAB_JSON_H
#define ATTSCOPE_LAB_JSON_H

#include <attscope/context.h>
#include <attscope/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_json_writer att_json_writer;

/* indented: one member per line, for people; otherwise everything on one line. On success the caller owns *writer and
 * frees it with att_json_writer_destroy(). Error: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_json_writer_create(att_context *context, bool indented, att_json_writer **writer);
ATT_API void att_json_writer_destroy(att_json_writer **writer);

/* Objects and arrays may be nested 32 levels deep. */
ATT_API void att_json_begin_object(att_json_writer *writer);
ATT_API void att_json_end_object(att_json_writer *writer);
ATT_API void att_json_begin_array(att_json_writer *writer);
ATT_API void att_json_end_array(att_json_writer *writer);

/* Writes a key. Within an object, a key comes before each value. In keys and strings, bytes that are not UTF-8 are
 * replaced by U+FFFD. */
ATT_API void att_json_key(att_json_writer *writer, const char *key);
/* NULL is written as null. */
ATT_API void att_json_string(att_json_writer *writer, const char *text);
/* Writes the shortest digits that read back as the same number. NaN and infinities, which JSON lacks, become null. */
ATT_API void att_json_number(att_json_writer *writer, double value);
/* The same, but "1.0" instead of "1", for readers that tell integers from other numbers, as Python does. */
ATT_API void att_json_float(att_json_writer *writer, double value);
ATT_API void att_json_integer(att_json_writer *writer, int64_t value);
ATT_API void att_json_bool(att_json_writer *writer, bool value);

/* Members of an object: a key and its value. The last two begin the value. */
static inline void att_json_put_string(att_json_writer *writer, const char *key, const char *text)
{
    att_json_key(writer, key);
    att_json_string(writer, text);
}

static inline void att_json_put_number(att_json_writer *writer, const char *key, double value)
{
    att_json_key(writer, key);
    att_json_number(writer, value);
}

static inline void att_json_put_integer(att_json_writer *writer, const char *key, int64_t value)
{
    att_json_key(writer, key);
    att_json_integer(writer, value);
}

static inline void att_json_put_bool(att_json_writer *writer, const char *key, bool value)
{
    att_json_key(writer, key);
    att_json_bool(writer, value);
}

static inline void att_json_put_object(att_json_writer *writer, const char *key)
{
    att_json_key(writer, key);
    att_json_begin_object(writer);
}

static inline void att_json_put_array(att_json_writer *writer, const char *key)
{
    att_json_key(writer, key);
    att_json_begin_array(writer);
}

/* Writes an object that describes an option of a module or an instrument: option, summary, default, and either choices
 * or low and high. */
ATT_API void att_detail_write_json(const att_detail *option, att_json_writer *writer);

/* Ends the document. *text is the document without a final newline, owned by the writer and valid until the next call
 * for this writer. The next call starts another document, also after a failure. Errors: ERR_MEMORY; ERR_ARGUMENT if the
 * calls did not make exactly one document. */
ATT_API ATT_MUST_CHECK att_status att_json_writer_finish(att_json_writer *writer, const char **text, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
