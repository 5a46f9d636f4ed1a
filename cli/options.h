/* options.h - options declared in tables: one row gives the flag, the config key, the help and the place of the value.
 *
 * What is stored before parsing is the default, so that help and args.yaml read it from there. On the command line and
 * in files, underscores and dashes are the same.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdio.h>

#include <attscope/lab/yaml.h>
#include <attscope/options.h>

typedef enum cli_kind {
    CLI_FLAG,    /* bool; --name, --no-name */
    CLI_INT,     /* int */
    CLI_LONG,    /* int64_t */
    CLI_SIZE,    /* int64_t: bytes, also as 800M or 4G, in units of 1024; open: 0 is not shown */
    CLI_SEED,    /* uint64_t */
    CLI_REAL,    /* double */
    CLI_REALS,   /* cli_reals, up to `most` numbers */
    CLI_TEXT,    /* const char *, NULL: not given; "" stands for the default */
    CLI_TEXTS,   /* cli_texts, one more each time the flag is given */
    CLI_DECLARED /* att_option_values: `declared` says the kind; switches have --no-name, too */
} cli_kind;

enum { CLI_MOST_REALS = 8 };
typedef struct cli_reals {
    double values[CLI_MOST_REALS];
    int count;
} cli_reals;

enum { CLI_MOST_TEXTS = 32 };
typedef struct cli_texts {
    const char *values[CLI_MOST_TEXTS];
    int count;
} cli_texts;

typedef struct cli_option {
    const char *name; /* "batch-size" */
    const char *alias;
    const char *value;                /* what help calls it: "N", "FILE" */
    const char *help;                 /* NULL: not for people, help leaves it out */
    const char *(*choice)(int index); /* texts: the values there are, NULL past the last; NULL: any */
    size_t offset, size;
    double low, high; /* closed range of numbers; both 0: any */
    cli_kind kind;
    const att_option *declared; /* CLI_DECLARED */
    int most;                   /* CLI_REALS: how many numbers there may be; 0: three */
    char letter;                /* -b; 0: none */
    bool open;                  /* numbers: the default says "not given" and is not shown */
    bool empty;                 /* texts: "" is a value of its own */
    bool detailed;              /* texts: one of the choices may be followed by a colon and more */
    bool advisory;              /* texts: the choices are for help and completion; what uses a value judges it */
    bool old;                   /* taken, but neither shown nor written: what it says goes over into another option */
    bool once; /* belongs to one call, not to a run: left out of args.yaml and refused in config files */
} cli_option;

/* Where a row's value lies. */
#define CLI_AT(type, member) .offset = offsetof(type, member), .size = sizeof((type *)0)->member

/* Options that belong together, and the struct that holds their values. */
typedef struct cli_group {
    const char *title;
    const cli_option *options;
    int count;
    const cli_option *(*rows)(int *count); /* instead of these two, for rows that are made; NULL: none are */
    void (*defaults)(void *values);        /* NULL: zeros */
    /* Called once all options of one source, the command line or a file, are stored. Moves the values of options that
     * stand for others, such as --input-size for --img-size, into those. Prints a message and returns false for a wrong
     * value. NULL: nothing to move. */
    bool (*merge)(void *values);
    bool (*complete)(void *values); /* what cli_options_complete() does with them; NULL: nothing */
} cli_group;

/* A group of a command, and where in the command's settings its struct lies. */
typedef struct cli_use {
    const cli_group *group;
    size_t offset;
} cli_use;

/* Flags of timm's scripts that were given and change nothing here, each once. Zero-initialise. */
enum { CLI_MOST_IGNORED = 32 };
typedef struct cli_ignored {
    const char *names[CLI_MOST_IGNORED];
    int count;
} cli_ignored;

typedef struct cli_table {
    const char *command; /* for messages */
    const cli_use *uses;
    int use_count;
    void *settings, *defaults; /* of one size */
    /* Writes to `text` what to do instead with a name that is no option. False: it does not know. NULL: it never does.
     */
    bool (*explain_unknown)(const char *name, char *text, size_t size);
    cli_ignored *ignored; /* collects flags of timm's that change nothing here; NULL: nobody asks for them */
} cli_table;

/* Stores every default in both, settings and defaults, which have `size` bytes and are zeroed first. */
void cli_options_defaults(const cli_table *table, size_t size);

/* Stores what argv says, later flags winning, and moves what is no option to operands[0..*operand_count-1] (room for
 * argc). Texts point into argv. Prints one message and returns false for unknown flags, all of which it names, or else
 * for the first missing or wrong value. */
bool cli_options_parse(const cli_table *table, int argc, char **argv, const char **operands, int *operand_count);

/* Stores what a config file says; texts point into `yaml`. `path` is for the message, of the first wrong value or of
 * all unknown keys, after which it returns false. */
bool cli_options_config(const cli_table *table, const char *path, const att_yaml *yaml);

/* Whether there is an option of that name. */
bool cli_options_have(const cli_table *table, const char *name);

/* Whether both have the same value of an option, or neither has one. */
bool cli_declared_same(const att_option *option, const att_option_values *a, const att_option_values *b);

/* Once everything is stored: makes of values that are said together what commands read and files record. Prints a
 * message and returns false where they do not go together. */
bool cli_options_complete(const cli_table *table);

/* Whether every option of a run has the value that it has in `others`, such settings too. */
bool cli_options_same(const cli_table *table, const void *others);

/* Every option with its value, one group after another. */
void cli_options_help(const cli_table *table, FILE *out);

/* Prints words to the end of a line on which `indent` columns are taken, and to further lines of 80, indented alike. */
void cli_print_wrapped(FILE *out, const char *text, int indent);

/* Writes every value to `path`, keys with underscores. */
att_status cli_options_write(const cli_table *table, att_context *context, const char *path);

#endif
