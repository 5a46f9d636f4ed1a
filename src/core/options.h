/* core/options.h - option values in the struct of whoever declares the options. */
#ifndef ATT_CORE_OPTIONS_H
#define ATT_CORE_OPTIONS_H

#include <assert.h>

#include <attscope/context.h>
#include <attscope/options.h>

#include "core/export.h"

/* A table. */
typedef struct att_option_table {
    const att_option *options;
    int count;
    size_t size; /* of the struct that holds the values */
} att_option_table;

/* Of a number that was not given. */
enum { ATT_OPTION_OPEN = -1 };
#define ATT_SETTINGS_FIT(type) static_assert(sizeof(type) <= sizeof(att_settings_room), "enlarge att_settings_room")

/* The row of that key or alias; NULL: there is none. */
const att_option *att_option_find(const att_option_table *table, const char *key);
/* Whether the numbers are such as the option's value may be; false for texts. */
bool att_option_accepts(const att_option *option, const double *numbers, int count);
/* Makes every member of the struct open. */
void att_options_open(const att_option_table *table, void *owner);
/* Replaces aliases by keys. */
void att_options_use_keys(const att_option_table *table, att_option_values *values);
/* Fills the struct at `owner`. Keys that the table lacks are left out. ERR_ARGUMENT where a value is not of its
 * option's kind, outside its range, or none of its choices. */
att_status att_options_read(att_context *context, const att_option_table *table, const att_option_values *values,
                            void *owner);
/* Sets every option that is not open in the struct. */
void att_options_write(const att_option_table *table, const void *owner, att_option_values *values);
/* Whether both have the option with one value, or neither has it. */
ATT_FOR_LAB bool att_option_same(const att_option *option, const att_option_values *a, const att_option_values *b);
/* Copies one value; where `from` has none it is unset. */
ATT_FOR_LAB void att_option_copy(const char *key, const att_option_values *from, att_option_values *to);

#endif
