/* attscope/options.h - declarations of options in tables, and the values given to them.
 *
 * A family of networks declares each option once: key, kind, range, help. Flags, help, shell completion, args.yaml,
 * config.json and the metadata of checkpoints are all derived from that declaration. An option has the same key
 * everywhere; a flag has dashes instead of underscores ("embed_dim", --embed-dim).
 *
 *     att_option_values options = att_options_none();
 *     att_options_set(&options, "depth", 4);
 *     att_options_set_sides(&options, "img_size", 96, 128);
 *     att_options_set_text(&options, "modules", "cb_s@after_attn:0-5");
 *     att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model);
 */
#ifndef ATTSCOPE_OPTIONS_H
#define ATTSCOPE_OPTIONS_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_option_kind {
    ATT_OPTION_WHOLE, /* an integer */
    ATT_OPTION_SIDES, /* height and width, integers; a single number stands for both */
    ATT_OPTION_REAL,
    ATT_OPTION_SWITCH, /* true (1) or false (0) */
    ATT_OPTION_TEXT
} att_option_kind;

/* The declaration of an option. */
typedef struct att_option {
    const char *key;
    const char *alias; /* another key with the same meaning; NULL: none */
    const char *flag;  /* name of its flag ("drop"); NULL: the key with dashes */
    const char *value; /* placeholder for a value in help: "N"; NULL: a switch, which has none */
    const char *help;  /* one line */
    double low, high;  /* range of numbers, bounds included */
    /* For texts: returns the possible values by index, NULL past the last. NULL: any text is allowed. */
    const char *(*choice)(int index);
    /* For texts whose values can be registered with a context, such as modules: returns the values that exist in a
     * context; these are allowed. choice() then returns only the built-in ones, for help and completion. NULL: choice()
     * returns all. */
    const char *(*choice_in)(const att_context *context, int index);
    /* The key of another option. If that option is given, this one is computed from it, and the value of the named
     * variant or of a file is ignored. NULL: no such option. */
    const char *implied_by;
    /* An option of other families with the same meaning, for messages. NULL: none. */
    const char *instead_of;
    /* A file's network may differ from every named network in this option. If no named network has the file's tensors,
     * messages name the nearest one and say that it differs in this option. The text is the option's name in these
     * messages: "the stem". NULL: the option is not compared in this way. */
    const char *differs_as;
    /* The tensors of a file do not show the value, so the caller must give it. The text is the option's name in
     * messages: "the number of heads". NULL: the tensors show the value, or the named network's value is used. */
    const char *not_in_tensors;
    att_option_kind kind;
    bool detailed;     /* for texts: a choice may be followed by a colon and options (att_detail): "se:ratio=8" */
    bool not_compared; /* not compared when a network is matched with the named ones: networks of one name may differ in
                          it */
    bool compare_presence; /* for numbers: networks are compared only by whether the value is above 0 */
    bool training;         /* affects training, not what the network computes: not recorded in a network's identity */
    bool internal;         /* known only from the tensors of a file: neither a flag nor recorded */
    bool of_maps;          /* describes a head that reads maps of features; other heads do not have it */
    size_t offset, size;   /* of the member that holds the value in the struct of the option's owner; 0: none */
} att_option;

/* Places an option in a struct, by designated initialisers (C, or C++20). The member is int for WHOLE and SWITCH,
 * int[2] for SIDES, double for REAL, char[] for TEXT. Without a value, numbers are -1 and texts "". */
#define ATT_OPTION_AT(type, member) .offset = offsetof(type, member), .size = sizeof((type *)0)->member

/* An option of a module or an instrument, written after its name: "se:ratio=8", "name:key=value,key=value". Its value
 * is the number, or the index of the choice. */
typedef struct att_detail {
    const char *name;        /* 1 to 23 letters, digits and underscores, the first a letter */
    const char *meaning;     /* one line */
    double start, low, high; /* default and range, bounds included; for choices these are indices, and low is 0 */
    /* Names of the choices, NULL-terminated, without the characters ":,=@+" and blanks. NULL: the option is a number.
     */
    const char *const *choices;
    bool whole; /* the number must be an integer */
} att_detail;

/* A buffer that is large enough for the struct of any owner of options. */
typedef union att_settings_buffer {
    char bytes[1024];
    double aligned;
} att_settings_buffer;

enum { ATT_OPTION_KEY = 24, ATT_OPTION_TEXT_BYTES = 256, ATT_MOST_OPTIONS = 64 };

/* The value of an option: numbers or a text. */
typedef struct att_option_value {
    char key[ATT_OPTION_KEY];
    int count; /* count of numbers, 1 or 2; 0: the value is a text */
    double numbers[2];
    char text[ATT_OPTION_TEXT_BYTES];
} att_option_value;

/* Values by key. A missing key means that no value was given. */
typedef struct att_option_values {
    int count;
    bool overflowed; /* set if a value was dropped: a key or text that is too long or NULL, or too many keys. Functions
                        that read the values then refuse them, as they refuse a key that `items` has twice */
    att_option_value items[ATT_MOST_OPTIONS];
} att_option_values;

ATT_API att_option_values att_options_none(void);

/* Set or remove the value of a key. An earlier value is replaced. */
ATT_API void att_options_set(att_option_values *values, const char *key, double number);
ATT_API void att_options_set_sides(att_option_values *values, const char *key, int height, int width);
ATT_API void att_options_set_text(att_option_values *values, const char *key, const char *text);
ATT_API void att_options_unset(att_option_values *values, const char *key);

/* Returns the value of a key, which points into `values`; NULL if none was given. */
ATT_API const att_option_value *att_options_find(const att_option_values *values, const char *key);
/* Returns the number of a key (of two sides the height); `otherwise` if none was given or the value is a text. */
ATT_API double att_options_number(const att_option_values *values, const char *key, double otherwise);
/* Returns the text of a key; "" if none was given or the value is a number. */
ATT_API const char *att_options_text(const att_option_values *values, const char *key);

/* Formats the value of an option as texts, as in flags and files: numbers in their shortest form, equal sides
 * as one number. Returns the number of texts, 0 if no value was given. */
enum { ATT_OPTION_NUMBERS = 2 };
ATT_API int att_option_format(const att_option *option, const att_option_values *values,
                              char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
