/* flags/flags.h - tables of flags, and the values of single rows. */
#ifndef ATT_FLAGS_FLAGS_H
#define ATT_FLAGS_FLAGS_H

#include <attscope/lab/flags.h>

#include "base/core/export.h"

struct att_flags {
    att_context *context;
    att_flags_options options;
    att_flag_use *uses; /* groups with rows, in order */
    int use_count;
    att_flag *rows;
    size_t *offsets;               /* offset of each row's struct in the table's struct */
    const att_flag_group **groups; /* of each row */
    char (*names)[ATT_OPTION_KEY];
    int count;
    void *defaults;
};

/* A row that was found by its name. */
typedef struct att_named_flag {
    const att_flag *flag; /* NULL: no such flag */
    size_t at;            /* offset of the flag's value in the table's struct */
    bool no;              /* found as --no-name */
} att_named_flag;

/* Whether a name is the same except for dashes and underscores. */
bool att_flag_is_called(const char *a, const char *b);
att_named_flag att_flags_by_name(const att_flags *flags, const char *name);
att_named_flag att_flags_by_letter(const att_flags *flags, char letter);
/* Whether the flag's value is true or false. */
bool att_flag_is_truth(const att_flag *flag);
/* Parses a truth value as YAML 1.2 writes it (its core schema), or 0 or 1. Returns false for other texts. */
bool att_flag_to_truth(const char *text, bool *value);
/* Whether the value is a list of numbers, possibly of one number. */
bool att_flag_is_list(const att_flag *flag);
/* Reads the count of an ATT_FLAG_INTS. values: its first number. */
int att_flag_ints_count(const att_flag *flag, const void *values);

/* Stores a value. where: the flag in messages, "--lr" or "recipe.yaml, line 3: lr". Returns ERR_ARGUMENT if a text is
 * invalid or there are too many texts. */
att_status att_flags_store(const att_flags *flags, const att_named_flag *named, const char *where,
                           const char *const *texts, int count, void *values);
/* Writes what a value must be, "a number from 0 to 1", and returns `text`. */
char *att_flag_describe(const att_flag *flag, char text[ATT_FLAG_VALUE_BYTES]);
/* Stores the default of a row. values: the struct of the row's group. */
void att_flag_store_start(const att_flag *flag, void *values);
/* Whether a value was given (att_flag.open). at: the value. */
bool att_flag_is_given(const att_flag *flag, const void *at);
/* Formats a value, as att_flag_format() does, even if it was not given. */
int att_flag_texts(const att_flag *flag, const void *at, char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES],
                   const char *texts[ATT_MOST_REALS]);
/* Whether a flag has the same value in two structs of the table. */
ATT_FOR_LAB bool att_flag_same(const att_flag_place *place, const void *a, const void *b);
/* As att_flags_check(), but leaves texts that are NULL or "" as they are. */
att_status att_flags_check_values(const att_flags *flags, const void *values);
/* Calls the groups' merge functions. */
ATT_FOR_LAB att_status att_flags_merge(const att_flags *flags, void *values);

enum { ATT_FLAG_TEXT_BYTES = 256 };
/* Splits the text of a flag that takes several numbers at spaces, and whole numbers (ATT_FLAG_INTS) at commas, too: "16
 * 24" and "16,24" have two parts. A comma in a real may be meant as a decimal point, and is refused. Texts of other
 * flags, and texts too long for `copy`, are not split. Returns the number of parts. */
int att_flag_split(const att_flag *flag, const char *text, char copy[ATT_FLAG_TEXT_BYTES],
                   const char *parts[ATT_MOST_REALS + 1]);

/* Writes the values of all rows, except those that are `once`, to `path`, with underscores in keys. Errors:
 * ERR_ARGUMENT for a value that att_flags_check() would refuse; those of att_yaml_write(). */
ATT_FOR_LAB att_status att_flags_write(const att_flags *flags, const void *values, const char *path);
/* Applies the rules of the flags to values that a program stored in the struct directly: ranges, number of values, and
 * choices that are not advisory. Then replaces texts that are NULL by their defaults, and "" too if the row is not
 * `empty`. ERR_ARGUMENT names the first wrong value by its flag and its member; *values is then unchanged. */
ATT_FOR_LAB att_status att_flags_check(const att_flags *flags, void *values);
/* Returns whether every flag that is not `once` has the same value in both structs. */
ATT_FOR_LAB bool att_flags_same(const att_flags *flags, const void *a, const void *b);

/* Whether the values of the row are texts. */
bool att_flag_is_text(const att_flag *flag);
/* Makes a row for an option of a family or a task. offset: of the att_option_values in the group's struct. */
ATT_FOR_LAB att_flag att_flag_of_option(const att_option *option, size_t offset);

#endif
