/* models/timm_config.h - describes networks as timm's config.json does: the architecture, the arguments of its
 * constructor, the preparation of images. config.h reads such files. */
#ifndef ATT_MODELS_TIMM_CONFIG_H
#define ATT_MODELS_TIMM_CONFIG_H

#include <attscope/models.h>

#include "base/io/json.h"

/* A network, and timm's network of the same name without arguments. Both have all options. */
typedef struct att_timm_network {
    const att_option_values *options, *own;
} att_timm_network;

/* What timm can be told about the networks of a family. */
typedef struct att_timm_form {
    bool sized; /* timm's constructors have the argument img_size, and make networks for one size */
    /* An option that the named network may have without effect: timm's network with other arguments keeps its value,
     * which complete() replaces here. NULL: there is none. */
    const char *idle;
    /* The inverse of att_family.take_argument: writes an option in which the network differs from timm's as an argument
     * of timm's constructor. Where two options are one argument, the first of the table that differs writes it. Returns
     * false if timm's constructor cannot be given the value. */
    bool (*give_argument)(const att_timm_network *network, const att_option *option, att_json_writer *writer);
} att_timm_form;

/* Whether the network differs from timm's in an option that both have. */
bool att_timm_differs(const att_timm_network *network, const char *key);
/* For give_argument(): write an option as argument `key`, a text of numbers ("2,2,6,2") as a list. Return true. */
bool att_timm_give(const att_timm_network *network, const att_option *option, const char *key, att_json_writer *writer);
bool att_timm_give_list(const char *text, const char *key, att_json_writer *writer);
/* The same if `names` lists the option's key, or the option's text: gives it under its own key, else returns false. */
bool att_timm_give_of(const char *names, const att_timm_network *network, const att_option *option,
                      att_json_writer *writer);
bool att_timm_give_word(const char *words, const att_timm_network *network, const att_option *option,
                        att_json_writer *writer);

/* Writes the members architecture, num_classes, num_features, global_pool, model_args and pretrained_cfg of the open
 * object. timm's create_model() and transformers' TimmWrapper build the network from them. identity: the model's, which
 * may also have the size of images for tests. Errors: ERR_UNSUPPORTED, with the reason, if timm cannot build the
 * network or prepare its images; a part of the members may then have been written. */
att_status att_timm_config_write(const att_model *model, const att_identity *identity, att_json_writer *writer);

#endif
