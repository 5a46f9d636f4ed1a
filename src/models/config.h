/* models/config.h - a network's configuration, as far as one source (a flag, a side file, metadata, tensors) says it.
 */
#ifndef ATT_MODELS_CONFIG_H
#define ATT_MODELS_CONFIG_H

#include <attscope/models.h>

#include "core/options.h"
#include "core/text.h"
#include "io/json.h"

typedef struct att_config {
    char name[128]; /* of the network, with its tag, as the source has it; "": not said */
    att_option_values options;
    double mean[3], std[3];
    bool has_mean, has_std;
    double crop_pct;                      /* 0: not said */
    char crop_mode[8], interpolation[16]; /* "": not said */
    int test_height, test_width;          /* with which timm's validate.py evaluates; 0: not said */
    double test_crop_pct;
} att_config;
/* Nothing said. */
att_config att_config_none(void);
/* Takes over from `from` what `to` leaves open. */
void att_config_fill(att_config *to, const att_config *from);
/* Puts what the config says of images into *preprocess; sides and in_chans are options and stay. */
void att_config_lay_over(const att_config *config, att_preprocess *preprocess);
/* Takes over from `from` what `to` leaves open, but for what is implied by options that `to` has
 * (att_option.implied_by).
 */
void att_options_fill(att_option_values *to, const att_option_values *from);
/* Leaves out what only training reads. */
void att_options_forget_training(att_option_values *options);
/* Puts img_size and in_chans into *preprocess, where they are said. */
void att_options_size(const att_option_values *options, att_preprocess *preprocess);

/* A value as files give it. */
typedef struct att_fact {
    enum { ATT_FACT_TEXT, ATT_FACT_NUMBERS, ATT_FACT_OTHER } kind;
    const char *text;
    double numbers[4]; /* truth values are 0 and 1 */
    int count;         /* of the numbers; more than 4 are no fact of this kind */
    bool is_truth;     /* written as true or false */
} att_fact;
/* Notes what `key` says, unless the config says it already. Returns ERR_NOT_FOUND, without a message, for keys that
 * mean nothing here; ERR_FORMAT where the value is not of its key's kind or out of range. what: the source's name. */
att_status att_config_note(att_context *context, const char *what, const char *key, const att_fact *fact,
                           att_config *config);

/* The sources, each named `what` in messages. file: the weights, whose tensors show the family of a network that the
 * source does not name. */
att_status att_config_read_json(att_context *context, const char *path, const att_tensors *file, att_config *config);
att_status att_config_read_args(att_context *context, const char *path, const att_tensors *file, att_config *config);
att_status att_config_parse(att_context *context, const char *what, const char *text, att_config *config);
/* Metadata other than attscope's: the network's name, timm's config or arguments, a training script's options. Of two
 * names one that timm has counts; two of timm's must be the same (ERR_UNSUPPORTED). What stands under a key that these
 * have and cannot be read is refused (ERR_FORMAT). */
att_status att_config_read_metadata(att_context *context, const char *what, const att_tensors *file,
                                    att_config *config);
/* As att_model_resolve(), for names that others wrote. ERR_UNSUPPORTED too for a network that attscope lacks, in
 * whatever case and with blanks around, and for an unknown tag of a known network. */
att_status att_config_resolve(att_context *context, const char *text, att_network_name *name);
/* A pretrained tag's "key=value key=value", values of channels joined by commas. */
att_status att_config_read_tag(att_context *context, const char *values, size_t length, att_config *config);

/* Whether everything that `found`, what tensors say, says of a network is so in `own`; what any variant may have
 * otherwise (att_option.free) aside. */
bool att_options_agree(const att_option_values *found, const att_option_values *own);
/* Appends "img_size 28, depth 4", what `options` has otherwise than `own`, in the table's order; returns whether there
 * was anything. */
bool att_options_differences(att_text *text, const att_option_table *table, const att_option_values *options,
                             const att_option_values *own);
/* Writes the options that are recorded as members of the object that is open in `writer`, in the table's order. */
void att_options_write_json(att_json_writer *writer, const att_option_table *table, const att_option_values *options);

#endif
