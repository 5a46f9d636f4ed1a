/* attscope/lab/flags.h - flags declared in tables: a row gives the name, kind, range and help of a value, and the
 * struct member that holds it.
 *
 * The same rows serve the command line, YAML files and programs that set values by name. In names, underscores equal
 * dashes. Texts are not copied: they must outlive the struct.
 *
 *     static const att_flag rows[] = {{"epochs", .kind = ATT_FLAG_INT, .value = "N", .help = "passes over the data",
 *                                      ATT_FLAG_AT(settings, epochs), .low = 0, .high = 1e6}};
 *     static const att_flag_group group = {"Recipe", .rows = rows, .row_count = 1};
 *     const att_flags_options options = {.uses = &(att_flag_use){&group, 0}, .use_count = 1,
 *                                        .size = sizeof(settings)};
 *     att_flags_create(context, &options, &flags);
 *     att_flags_default(flags, &values);
 *     att_flags_parse(flags, argc, argv, &values, operands, &operand_count, NULL);
 */
#ifndef ATTSCOPE_LAB_FLAGS_H
#define ATTSCOPE_LAB_FLAGS_H

#include <attscope/context.h>
#include <attscope/lab/yaml.h>
#include <attscope/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_flag_kind {
    ATT_FLAG_SWITCH,  /* bool; --name, --no-name */
    ATT_FLAG_INT,     /* int */
    ATT_FLAG_LONG,    /* int64_t */
    ATT_FLAG_SIZE,    /* int64_t: bytes, also written as 800M or 4G; units are powers of 1024 */
    ATT_FLAG_SEED,    /* uint64_t */
    ATT_FLAG_REAL,    /* double */
    ATT_FLAG_PAIR,    /* double[2] */
    ATT_FLAG_REALS,   /* att_reals, up to `most` numbers */
    ATT_FLAG_INTS,    /* int[most], and an int at `count_offset` that counts them */
    ATT_FLAG_TEXT,    /* const char *; NULL: not given; the value "" of a flag selects the default */
    ATT_FLAG_TEXTS,   /* att_texts; each occurrence of the flag adds a text */
    ATT_FLAG_DECLARED /* att_option_values; `declared` gives the kind; switches have --name and --no-name */
} att_flag_kind;

enum { ATT_MOST_REALS = 8 };
typedef struct att_reals {
    double values[ATT_MOST_REALS];
    int count;
} att_reals;

enum { ATT_MOST_TEXTS = 32 };
typedef struct att_texts {
    const char *values[ATT_MOST_TEXTS];
    int count;
} att_texts;

typedef struct att_flag {
    const char *name; /* "batch-size" */
    const char *alias;
    const char *value;                /* placeholder in help: "N", "FILE" */
    const char *start;                /* the default, as the flag takes it: "0.9 0.999"; NULL: 0, false, none */
    const char *help;                 /* NULL: internal flag, which help does not list */
    const char *const *choices;       /* texts: the allowed values, NULL-terminated; NULL: see `choice` */
    const char *(*choice)(int index); /* texts: the allowed values, NULL past the last; NULL: any text */
    const char *(*choice_in)(const att_context *context, int index); /* texts: see att_option.choice_in */
    const char *member; /* of the struct, for messages; NULL: they name the flag only */
    size_t offset, size;
    size_t count_offset; /* ATT_FLAG_INTS: offset of the count in the struct */
    double low, high;    /* closed range of numbers; both 0: no limits */
    att_flag_kind kind;
    const att_option *declared; /* ATT_FLAG_DECLARED */
    int most;                   /* ATT_FLAG_REALS, ATT_FLAG_INTS: most numbers; 0: three */
    char letter;                /* -b; 0: none */
    bool open;     /* numbers: 0 (pairs: 0, 0) means "not given", even if 0 is outside the range, and is not shown;
                      of a real number that is not open, NaN means so and leaves 0 to the range */
    bool empty;    /* texts: "" is a value, not the default */
    bool detailed; /* texts: details may follow a choice, as in "se:ratio=8" */
    bool advisory; /* texts: the choices are for help and completion only; other texts are accepted */
    bool once;     /* belongs to a single call, not to a run: not written to files, refused in files */
} att_flag;

/* Places a row's value in a struct. */
#define ATT_FLAG_AT(type, field) .member = #field, .offset = offsetof(type, field), .size = sizeof((type *)0)->field

typedef struct att_flag_use att_flag_use;

/* Flags that belong together, and the struct that holds their values. */
typedef struct att_flag_group {
    const char *title;
    const att_flag *rows;
    int row_count;
    /* Replaces `rows` and `row_count` in groups whose rows come from the options of families and tasks: writes at most
     * `most` rows and returns the number of rows that exist. NULL: not used. */
    int (*make_rows)(att_context *context, att_flag *rows, int most);
    void (*defaults)(att_context *context, void *values); /* stores defaults that no row gives; NULL: none */
    /* Called after all flags of one source (the command line or a file) are stored. Moves the values of short forms,
     * such as --input-size, into the flags that they stand for, such as --img-size. NULL: no short forms. */
    att_status (*merge)(att_context *context, void *values);
    att_status (*complete)(att_context *context, void *values); /* called by att_flags_complete(); NULL: no effect */
    const char *owner; /* name of the group's struct in messages: "train"; NULL: messages do not name it */
    int usual; /* > 0: --help shows so many of the first rows, and --help-OWNER all of them; 0: --help shows all */
    /* Replaces all members above in a group that consists of other groups, whose structs are part of its own. */
    const att_flag_use *parts;
    int part_count;
} att_flag_group;

/* A group of a table, and the offset of the group's struct in the table's struct. */
struct att_flag_use {
    const att_flag_group *group;
    size_t offset;
};

typedef struct att_flags_options {
    const att_flag_use *uses; /* copied; the groups must outlive the table */
    int use_count;
    size_t size;         /* of the struct that holds all values */
    const char *command; /* messages refer users to the help of this attscope command; NULL: to none */
    /* For an unknown name: writes to `text` what to do instead and returns true, or returns false. NULL: not used. */
    bool (*explain_unknown)(att_context *context, const char *name, char *text, size_t size);
} att_flags_options;

typedef struct att_flags att_flags;

/* Creates a table of flags. On success the caller owns *flags and frees it with att_flags_destroy(). Errors:
 * ERR_MEMORY; ERR_ARGUMENT for NULL and for two flags of one name. */
ATT_API ATT_MUST_CHECK att_status att_flags_create(att_context *context, const att_flags_options *options,
                                                   att_flags **flags);
ATT_API void att_flags_destroy(att_flags **flags);

/* The names of flags of timm's scripts that were given but have no effect in attscope, each name once. Initialise the
 * struct with zeros. */
enum { ATT_MOST_IGNORED = 32 };
typedef struct att_ignored_flags {
    const char *names[ATT_MOST_IGNORED];
    int count;
} att_ignored_flags;

/* Logs one line that names them; logs nothing if the list is empty. */
ATT_API void att_ignored_flags_log(att_context *context, const att_ignored_flags *ignored);

/* Returns the bytes of the table's struct, for programs in languages that cannot use sizeof. */
ATT_API size_t att_flags_size(const att_flags *flags);
/* Stores every default. values: the table's struct. */
ATT_API void att_flags_default(const att_flags *flags, void *values);
/* Returns a struct with the defaults, which lives as long as the table. */
ATT_API const void *att_flags_defaults(const att_flags *flags);

/* Stores the values of the flags in argv; a later flag overrides an earlier one. Writes the words that are neither
 * flags nor values to operands[0..*operand_count-1], which has room for argc pointers. Texts point into argv. ignored
 * may be NULL. ERR_ARGUMENT for unknown flags; if there are none, for the first missing or wrong value. If several
 * flags are unknown, the log receives the reason for each. */
ATT_API att_status att_flags_parse(const att_flags *flags, int argc, char **argv, void *values, const char **operands,
                                   int *operand_count, att_ignored_flags *ignored);
/* Stores the values of a file. Texts point into `yaml`. path: for messages. ignored and errors: as above. */
ATT_API att_status att_flags_read(const att_flags *flags, const char *path, const att_yaml *yaml, void *values,
                                  att_ignored_flags *ignored);
/* Stores the value `text` of the flag `name`, which has no leading dashes: "lr", "0.1". Several numbers are separated
 * by spaces: "224 160", those of ATT_FLAG_INTS also by commas. Texts point into `text`. Ignores timm's flags that have
 * no effect in attscope. Errors: as above. */
ATT_API att_status att_flags_set(const att_flags *flags, const char *name, const char *text, void *values);
/* Call it after all sources are stored: combines flags that describe one value, such as --adaptor with --modules.
 * ERR_ARGUMENT if they contradict each other. */
ATT_API att_status att_flags_complete(const att_flags *flags, void *values);

/* --- for help and completion -------------------------------------------------------------------------------------- */

/* A row, and the offset of its struct in the table's struct. */
typedef struct att_flag_place {
    const att_flag *flag; /* NULL: not found */
    size_t offset;
    const att_flag_group *group;
} att_flag_place;

/* The rows; index: 0..count-1. All zero for another index. */
ATT_API int att_flags_count(const att_flags *flags);
ATT_API att_flag_place att_flags_at(const att_flags *flags, int index);
/* Finds a row by its name or alias. */
ATT_API att_flag_place att_flags_find(const att_flags *flags, const char *name);

/* Formats a value as texts, one for each number; at most as many as the row takes. The elements of texts[] point into
 * `numbers`, or at the value itself if the value is a text. Returns the number of texts; 0: no value was given. */
enum { ATT_FLAG_VALUE_BYTES = ATT_OPTION_TEXT_BYTES };
ATT_API int att_flag_format(const att_flag_place *place, const void *values,
                            char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES], const char *texts[ATT_MOST_REALS]);
/* A choice of the row; NULL past the last, and if any text is allowed. */
ATT_API const char *att_flag_choice(const att_flag *flag, int index);
/* The most numbers that the flag takes; 0 for switches and texts. */
ATT_API int att_flag_numbers(const att_flag *flag);
/* Whether the row is a declared switch (ATT_FLAG_DECLARED): not given by default, and turned off by --no-name. */
ATT_API bool att_flag_is_declared_switch(const att_flag *flag);

#ifdef __cplusplus
}
#endif
#endif
