/* attscope/lab/flags.h - flags declared in tables: one row gives the name, the kind, the range, the help and the place
 * of a value in a struct.
 *
 * The same rows serve the command line, YAML files and programs that set values by name. Underscores and dashes are the
 * same in names. Texts are not copied: what a value points to must outlive the struct.
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
    ATT_FLAG_SIZE,    /* int64_t: bytes, also as 800M or 4G, in units of 1024; open: 0 is not shown */
    ATT_FLAG_SEED,    /* uint64_t */
    ATT_FLAG_REAL,    /* double */
    ATT_FLAG_PAIR,    /* double[2]; open: 0, 0 is not shown */
    ATT_FLAG_REALS,   /* att_reals, up to `most` numbers */
    ATT_FLAG_INTS,    /* int[most], and an int at `count_offset` that counts them */
    ATT_FLAG_TEXT,    /* const char *, NULL: not given; "" stands for the default */
    ATT_FLAG_TEXTS,   /* att_texts, one more each time the flag is given */
    ATT_FLAG_DECLARED /* att_option_values: `declared` says the kind; switches have --no-name, too */
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
    const char *value;                /* what help calls it: "N", "FILE" */
    const char *help;                 /* NULL: not for people, help leaves it out */
    const char *(*choice)(int index); /* texts: the values there are, NULL past the last; NULL: any */
    const char *(*choice_in)(const att_context *context, int index); /* texts: as in att_option */
    const char *member; /* of the struct, for messages; NULL: they name the flag only */
    size_t offset, size;
    size_t count_offset; /* ATT_FLAG_INTS: of the count in the struct */
    double low, high;    /* closed range of numbers; both 0: any */
    att_flag_kind kind;
    const att_option *declared; /* ATT_FLAG_DECLARED */
    int most;                   /* ATT_FLAG_REALS, ATT_FLAG_INTS: most numbers; 0: three */
    char letter;                /* -b; 0: none */
    bool open;                  /* numbers: the default says "not given" and is not shown */
    bool empty;                 /* texts: "" is a value of its own */
    bool detailed;              /* texts: one of the choices may be followed by a colon and more */
    bool advisory;              /* texts: the choices are for help and completion; what uses a value judges it */
    bool old;                   /* taken, but neither shown nor written: what it says goes over into another flag */
    bool once; /* belongs to one call, not to a run: left out of files that are written, refused in files */
} att_flag;

/* Places a row's value in a struct. */
#define ATT_FLAG_AT(type, field) .member = #field, .offset = offsetof(type, field), .size = sizeof((type *)0)->field

typedef struct att_flag_use att_flag_use;

/* Flags that belong together, and the struct that holds their values. */
typedef struct att_flag_group {
    const char *title;
    const att_flag *rows;
    int row_count;
    /* Instead of these two, for rows that are made of what families and tasks declare: writes at most `most` rows and
     * returns how many there are. NULL: none are made. */
    int (*make_rows)(att_context *context, att_flag *rows, int most);
    void (*defaults)(att_context *context, void *values); /* NULL: zeros */
    /* Called once all flags of one source, the command line or a file, are stored. Moves the values of flags that stand
     * for others, such as --input-size for --img-size, into those. NULL: nothing to move. */
    att_status (*merge)(att_context *context, void *values);
    att_status (*complete)(att_context *context, void *values); /* what att_flags_complete() does; NULL: nothing */
    const char *owner;         /* how messages call the group's struct: "train"; NULL: not at all */
    const att_flag_use *parts; /* instead of all of the above: a group made of others, whose structs lie in its own */
    int part_count;
} att_flag_group;

/* A group of a table, and where in the table's struct the group's struct lies. */
struct att_flag_use {
    const att_flag_group *group;
    size_t offset;
};

typedef struct att_flags_options {
    const att_flag_use *uses; /* only read during the call; the groups must outlive the table */
    int use_count;
    size_t size;         /* of the struct that holds all values */
    const char *command; /* of attscope, whose help messages name; NULL: none */
    /* Writes to `text` what to do instead with a name that is no flag. False: it does not know. NULL: it never does. */
    bool (*explain_unknown)(att_context *context, const char *name, char *text, size_t size);
} att_flags_options;

typedef struct att_flags att_flags;

/* On success *flags is the caller's, freed by att_flags_destroy(). Error: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_flags_create(att_context *context, const att_flags_options *options,
                                                   att_flags **flags);
ATT_API void att_flags_destroy(att_flags **flags);

/* Flags of timm's scripts that were given and change nothing here, each once. Zero-initialise. */
enum { ATT_MOST_IGNORED = 32 };
typedef struct att_ignored_flags {
    const char *names[ATT_MOST_IGNORED];
    int count;
} att_ignored_flags;

/* One line of the log names them; none where there are none. */
ATT_API void att_ignored_flags_log(att_context *context, const att_ignored_flags *ignored);

/* Stores every default. `values`: the table's struct. */
ATT_API void att_flags_default(const att_flags *flags, void *values);
/* Such a struct with the defaults; lives as long as the table. */
ATT_API const void *att_flags_defaults(const att_flags *flags);

/* Stores what argv says, later flags winning, and moves what is no flag to operands[0..*operand_count-1] (room for
 * argc). Texts point into argv. ignored may be NULL. Errors: ERR_ARGUMENT for unknown flags, or else for the first
 * missing or wrong value. Of several unknown flags, the log has the reason of each. */
ATT_API att_status att_flags_parse(const att_flags *flags, int argc, char **argv, void *values, const char **operands,
                                   int *operand_count, att_ignored_flags *ignored);
/* Stores what a file says; texts point into `yaml`. path: for messages. The rest as above. */
ATT_API att_status att_flags_read(const att_flags *flags, const char *path, const att_yaml *yaml, void *values,
                                  att_ignored_flags *ignored);
/* Stores one value, "0.1", of several numbers with spaces between them: "224 160". Texts point into `text`. Flags of
 * timm's that change nothing here are passed over. ERR_ARGUMENT as above. */
ATT_API att_status att_flags_set(const att_flags *flags, const char *name, const char *text, void *values);
/* Once everything is stored: makes of values that are said together what is read and recorded. ERR_ARGUMENT where they
 * do not go together. */
ATT_API att_status att_flags_complete(const att_flags *flags, void *values);

/* Writes every value to `path`, keys with underscores. Errors as of att_yaml_write(). */
ATT_API att_status att_flags_write(const att_flags *flags, const void *values, const char *path);
/* Checks values that a program stored in the struct itself, by the rules of flags: ranges, counts of numbers, choices
 * that are not advisory. Then replaces texts that are NULL, and "" where the row is not `empty`, by their defaults.
 * ERR_ARGUMENT names the first wrong value by its flag and member; *values is then unchanged. */
ATT_API att_status att_flags_check(const att_flags *flags, void *values);
/* Whether every flag that is not `once` has the same value in both structs. */
ATT_API bool att_flags_same(const att_flags *flags, const void *a, const void *b);

/* --- for help and completion -------------------------------------------------------------------------------------- */

/* A row, and where its struct lies in the table's. */
typedef struct att_flag_place {
    const att_flag *flag; /* NULL: there is none */
    size_t offset;
    const char *title; /* of the group */
} att_flag_place;

ATT_API int att_flags_count(const att_flags *flags);
ATT_API att_flag_place att_flags_at(const att_flags *flags, int index);
/* The row of that name or alias. */
ATT_API att_flag_place att_flags_find(const att_flags *flags, const char *name);

/* A value's parts as texts, which live in `numbers` or where the value points to; returns how many, 0 where none was
 * given. */
enum { ATT_FLAG_VALUE_BYTES = ATT_OPTION_TEXT_BYTES };
ATT_API int att_flag_format(const att_flag_place *place, const void *values,
                            char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES], const char *texts[ATT_MOST_REALS]);
/* How many choices the row has. */
ATT_API int att_flag_choice_count(const att_flag *flag);
/* Numbers that one flag may take: 0 of switches and texts. */
ATT_API int att_flag_numbers(const att_flag *flag);
/* Whether it is a switch that some struct declares: it has a --no-name and is not given at first. */
ATT_API bool att_flag_is_declared_switch(const att_flag *flag);
ATT_API bool att_flag_is_text(const att_flag *flag);
/* A row for an option that a family or a task declares; offset: of the att_option_values in the group's struct. */
ATT_API att_flag att_flag_of_option(const att_option *option, size_t offset);

#ifdef __cplusplus
}
#endif
#endif
