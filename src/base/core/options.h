/* core/options.h - converts between option values by key and the struct of a family or task that declares the options.
 */
#ifndef ATT_CORE_OPTIONS_H
#define ATT_CORE_OPTIONS_H

#include <assert.h>

#include <attscope/context.h>
#include <attscope/options.h>

#include "base/core/export.h"

typedef struct att_option_table {
    const att_option *options;
    int count;
    size_t size; /* size in bytes of the struct that holds the values */
} att_option_table;

/* The value of a number that is not set. The value of a text that is not set is "". */
enum { ATT_OPTION_UNSET = -1 };
#define ATT_ASSERT_SETTINGS_FIT(type) \
    static_assert(sizeof(type) <= sizeof(att_settings_buffer), "enlarge att_settings_buffer")

/* Returns the row with this key or alias, or NULL. */
const att_option *att_option_find(const att_option_table *table, const char *key);
/* Returns whether the numbers are a valid value of the option. False if the option is a text. */
bool att_option_accepts(const att_option *option, const double *numbers, int count);
/* Sets every member of the struct at `owner` to "not set". */
void att_options_clear(const att_option_table *table, void *owner);
/* Replaces aliases by keys. */
void att_options_use_keys(const att_option_table *table, att_option_values *values);
/* Fills the struct at `owner` from the values. Ignores keys that the table lacks. Fails with ERR_ARGUMENT if a value
 * has the wrong kind, is out of range, or is not one of the choices. */
att_status att_options_read(att_context *context, const att_option_table *table, const att_option_values *values,
                            void *owner);
/* Adds to `values` every option that is set in the struct at `owner`. */
void att_options_write(const att_option_table *table, const void *owner, att_option_values *values);
/* Returns whether `a` and `b` both have the same value of the option, or both lack the option. */
ATT_FOR_LAB bool att_option_same(const att_option *option, const att_option_values *a, const att_option_values *b);
/* Copies one value. If `from` lacks the key, removes the key from `to`. */
ATT_FOR_LAB void att_option_copy(const char *key, const att_option_values *from, att_option_values *to);

/* Parses the value of an option from texts, as in flags and files: one number; two for sides; "true", "false", "1" or
 * "0" for switches. Returns false and changes nothing if the texts do not fit the option's kind, are out of range, or
 * are too many. */
bool att_option_store(const att_option *option, const char *const *texts, int count, att_option_values *values);

/* Describes the possible values, "a whole number from 1 to 65536", and returns `text`. */
char *att_option_describe(const att_option *option, char *text, size_t size);

#endif
