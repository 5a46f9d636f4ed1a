/* flags/inner.h - what reading flags from arguments and from files shares. */
#ifndef ATT_FLAGS_INNER_H
#define ATT_FLAGS_INNER_H

#include <attscope/lab/flags.h>

struct att_flags {
    att_context *context;
    att_flags_options options;
    att_flag_use *uses; /* groups with rows, in order */
    int use_count;
    att_flag *rows;
    size_t *offsets;               /* of each row's struct */
    const att_flag_group **groups; /* of each row */
    char (*names)[ATT_OPTION_KEY];
    int count;
    void *defaults;
};

/* A row that was asked for by name. */
typedef struct att_named_flag {
    const att_flag *flag; /* NULL: there is none */
    size_t at;            /* of its value in the table's struct */
    bool no;              /* asked for as --no-name */
} att_named_flag;

att_named_flag att_flags_by_name(const att_flags *flags, const char *name);
att_named_flag att_flags_by_letter(const att_flags *flags, char letter);
/* Whether it is true or false. */
bool att_flag_is_truth(const att_flag *flag);
/* Whether its value is a list of numbers, even where that has one number. */
bool att_flag_is_list(const att_flag *flag);
/* The count of an ATT_FLAG_INTS whose first number is at `values`. */
int att_flag_ints_count(const att_flag *flag, const void *values);

/* Stores a value. where: what messages call the flag, "--lr" or "recipe.yaml, line 3: lr". ERR_ARGUMENT where there are
 * too many texts or one of them is wrong. */
att_status att_flags_store(const att_flags *flags, const att_named_flag *named, const char *where,
                           const char *const *texts, int count, void *values);
/* What a value must be: "a number from 0 to 1". Returns `text`. */
char *att_flag_describe(const att_flag *flag, char text[ATT_FLAG_VALUE_BYTES]);
/* Lets groups move values once all of one source are stored. */
att_status att_flags_merge(const att_flags *flags, void *values);

enum { ATT_FLAG_TEXT_BYTES = 256 };
/* Splits the text of a flag of several numbers at spaces: "16 24" has two. Other texts, and those too long for `copy`,
 * stay whole. Returns the number of parts. */
int att_flag_split(const att_flag *flag, const char *text, char copy[ATT_FLAG_TEXT_BYTES],
                   const char *parts[ATT_MOST_REALS + 1]);

#endif
