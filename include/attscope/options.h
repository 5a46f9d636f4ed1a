/* attscope/options.h - options declared in tables, and the values that somebody gave them.
 *
 * A family of networks declares its options once: key, kind, range, default text, help. Flags, help, shell completion,
 * args.yaml, config.json and the metadata of checkpoints are all made from that declaration. A key is the same
 * everywhere; as a flag it has dashes for underscores ("embed_dim", --embed-dim).
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
    ATT_OPTION_WHOLE,  /* a whole number */
    ATT_OPTION_SIDES,  /* height and width, whole numbers; one number is both */
    ATT_OPTION_REAL,   /* a number */
    ATT_OPTION_SWITCH, /* true (1) or false (0) */
    ATT_OPTION_TEXT
} att_option_kind;

/* One line of a table. */
typedef struct att_option {
    const char *key;
    const char *alias; /* another key with the same meaning; NULL: none */
    const char *flag;  /* what its flag is called where that is not the key with dashes: "drop"; NULL: it is */
    const char *value; /* what help calls a value: "N"; NULL: of switches */
    const char *help;  /* one line */
    double low, high;  /* closed range of numbers */
    /* Of texts: the values there are, NULL past the last. NULL: any text. */
    const char *(*choice)(int index);
    /* Of texts whose values may be registered with a context, such as modules: the values that there are in a context,
     * by which a value is judged. choice() lists the built-in ones of them, for help and completion. NULL: choice()
     * lists all. */
    const char *(*choice_in)(const att_context *context, int index);
    /* The key of another option. If that option is given, this one is computed from it, and the value of the named
     * variant or of a file is ignored. NULL: no such option. */
    const char *implied_by;
    /* A file's network may differ from every named network in this option. If no named network has the file's tensors,
     * messages name the nearest network and say that it differs in this option. The text is the option's name in these
     * messages: "the stem". NULL: the option is not compared in this way. */
    const char *beside;
    /* The tensors of a file do not show the value, so somebody must give it. The text is the option's name in messages:
     * "the number of heads". NULL: the tensors show the value, or the named network's own value is used. */
    const char *unseen;
    att_option_kind kind;
    bool detailed;       /* of texts: a choice may be followed by a colon and more: "se:ratio=8" */
    bool free;           /* two networks that differ only in this option may have the same name */
    bool presence;       /* of numbers: networks are compared only by whether the value is above 0 */
    bool training;       /* decides how a network trains, not what it computes: not recorded in a network's identity */
    bool internal;       /* known from the tensors of a file only: neither a flag nor recorded */
    size_t offset, size; /* of the member that holds it in the struct of whoever declares it; 0 for others */
} att_option;

/* Places an option in a struct (designated initialisers: C, or C++20): a row's member is int for WHOLE and SWITCH,
 * int[2] for SIDES, double for REAL, char[] for TEXT. Where no value was given, numbers are -1 and texts "". */
#define ATT_OPTION_AT(type, member) .offset = offsetof(type, member), .size = sizeof((type *)0)->member

/* Room for any such struct. */
typedef union att_settings_room {
    char bytes[1024];
    double aligned;
} att_settings_room;

enum { ATT_OPTION_KEY = 24, ATT_OPTION_TEXT_BYTES = 256, ATT_MOST_OPTIONS = 48 };

/* One value: numbers or a text. */
typedef struct att_option_value {
    char key[ATT_OPTION_KEY];
    int count; /* of the numbers, 1 or 2; 0: a text */
    double numbers[2];
    char text[ATT_OPTION_TEXT_BYTES];
} att_option_value;

/* Values by key. A key that is missing was not given. */
typedef struct att_option_values {
    int count;
    bool overflowed; /* something did not fit: a key or text that is too long, or too many keys. Who reads the values
                        refuses them then */
    att_option_value items[ATT_MOST_OPTIONS];
} att_option_values;

ATT_API att_option_values att_options_none(void);

/* Each replaces what was there. */
ATT_API void att_options_set(att_option_values *values, const char *key, double number);
ATT_API void att_options_set_sides(att_option_values *values, const char *key, int height, int width);
ATT_API void att_options_set_text(att_option_values *values, const char *key, const char *text);
ATT_API void att_options_unset(att_option_values *values, const char *key);

/* NULL: not given. Points into `values`. */
ATT_API const att_option_value *att_options_find(const att_option_values *values, const char *key);
/* The number, the height of two sides; `otherwise` where it was not given or is a text. */
ATT_API double att_options_number(const att_option_values *values, const char *key, double otherwise);
/* "" where it was not given or is a number. */
ATT_API const char *att_options_text(const att_option_values *values, const char *key);

/* Sets an option from texts as flags and files have them: a number, two for sides, "true", "false", "1" or "0" for
 * switches. False, and nothing is changed, where they are not of the option's kind, are out of range, or are too many.
 */
ATT_API bool att_option_store(const att_option *option, const char *const *texts, int count, att_option_values *values);
/* The value as such texts, in numbers' shortest form; returns how many, 0 where it was not given. Equal sides are one
 * number. */
enum { ATT_OPTION_NUMBERS = 2 };
ATT_API int att_option_format(const att_option *option, const att_option_values *values,
                              char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES]);
/* Writes what a value must be, "a whole number from 1 to 65536", and returns `text`. */
ATT_API char *att_option_describe(const att_option *option, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
