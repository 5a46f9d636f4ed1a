/* models/config.h - the part of a network's configuration that one source gives: a flag, a side file, metadata,
 * tensors. */
#ifndef ATT_MODELS_CONFIG_H
#define ATT_MODELS_CONFIG_H

#include <attscope/models.h>

#include "base/core/options.h"
#include "base/core/text.h"
#include "base/io/json.h"

typedef struct att_config {
    char name[128]; /* the network's name with its tag, as the source spells it; "": not given */
    att_option_values options;
    double mean[3], std[3];
    bool has_mean, has_std;
    double crop_pct;                      /* 0: not given */
    char crop_mode[8], interpolation[16]; /* "": not given */
    int test_height, test_width;          /* evaluation size of timm's validate.py; 0: not given */
    double test_crop_pct;
} att_config;
/* A configuration without any value. */
att_config att_config_none(void);
/* Copies values that `to` lacks from `from`. */
void att_config_fill(att_config *to, const att_config *from);
/* Sets the members of *preprocess that the config gives, except the sides and in_chans, which are options. */
void att_config_apply(const att_config *config, att_preprocess *preprocess);
/* Copies options that `to` lacks from `from`, except those implied by an option of `to` (att_option.implied_by). */
void att_options_fill(att_option_values *to, const att_option_values *from);
/* Removes options that only training reads. */
void att_options_drop_training(att_option_values *options);
/* Sets sides and in_chans of *preprocess to the options img_size and in_chans, if given. */
void att_options_size(const att_option_values *options, att_preprocess *preprocess);
/* If images have one channel, replaces mean and std of three channels by their averages, as timm does. */
void att_preprocess_average(att_preprocess *preprocess);

/* A value from a file. */
typedef struct att_fact {
    enum { ATT_FACT_TEXT, ATT_FACT_NUMBERS, ATT_FACT_OTHER } kind;
    const char *text;
    double numbers[4]; /* booleans are 0 and 1 */
    int count;         /* how many numbers, at most 4; a longer list is ATT_FACT_OTHER */
    bool is_truth;     /* written as true or false */
} att_fact;
/* A value that is no text, number, truth or short list of numbers is ATT_FACT_OTHER; so is NULL. */
att_fact att_fact_of_json(const json_t *value);
/* Sets the value of `key` unless the config has one. what: name of the source, for messages. Errors: ERR_FORMAT if the
 * value has the wrong type or is out of range; ERR_NOT_FOUND, without a message, for an unknown key. */
att_status att_config_note(att_context *context, const char *what, const char *key, const att_fact *fact,
                           att_config *config);

/* Read a source, called `what` in messages. file: the weights; their tensors determine the family if the source does
 * not name the network. */
att_status att_config_read_json(att_context *context, const char *path, const att_tensors *file, att_config *config);
att_status att_config_read_args(att_context *context, const char *path, const att_tensors *file, att_config *config);
att_status att_config_parse(att_context *context, const char *what, const char *text, att_config *config);
/* Reads metadata other than attscope's: the network's name, timm's config or arguments, options of a training script. A
 * name unknown to timm is ignored if the metadata has another name; two different names of timm's networks are
 * ERR_UNSUPPORTED. A value of a known key that cannot be parsed is ERR_FORMAT. */
att_status att_config_read_metadata(att_context *context, const char *what, const att_tensors *file,
                                    att_config *config);
/* As att_model_resolve(), for names in files written by other programs. Also ERR_UNSUPPORTED for a network that
 * attscope lacks, ignoring case and surrounding blanks, and for an unknown tag of a known network. */
att_status att_config_resolve(att_context *context, const char *text, att_network_name *name);
/* Reads settings of a pretrained tag or a named network, "key=value key=value"; values of channels are joined by
 * commas. Sets those that the config lacks. table: options of the network's family. Errors: ERR_INTERNAL. */
att_status att_config_read_settings(att_context *context, const att_option_table *table, const char *settings,
                                    size_t length, att_config *config);

/* Returns whether `own` has all options of `found` (from the tensors) with the same values. Options in which any
 * variant may differ (att_option.not_compared) are not compared. */
bool att_options_agree(const att_option_values *found, const att_option_values *own);
/* Appends the options of `options` that differ from `own`, in the table's order: "img_size 28, depth 4". Returns
 * whether there were any. */
bool att_options_differences(att_text *text, const att_option_table *table, const att_option_values *options,
                             const att_option_values *own);
/* Writes a value: a text, a number, two unequal sides as a list. */
void att_option_write_json(att_json_writer *writer, const att_option *option, const att_option_value *value);
/* Writes the options that checkpoints record as members of the open JSON object, in the table's order. */
void att_options_write_json(att_json_writer *writer, const att_option_table *table, const att_option_values *options);

#endif
