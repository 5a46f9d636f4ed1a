/* models/identify.h - shared by the files that identify a file's network.
 *
 * Several sources say which network a file holds: the caller, side files, metadata, tensors and the named variant. Each
 * fills only what the sources before it left open.
 */
#ifndef ATT_MODELS_IDENTIFY_H
#define ATT_MODELS_IDENTIFY_H

#include "base/core/text.h"
#include "base/io/tensors.h"
#include "networks/models/config.h"
#include "networks/models/family.h"

/* Names of the sources, for messages. They are compared as pointers. */
extern const char att_from_caller[], att_from_arguments[], att_from_config[], att_from_metadata[],
    att_from_architecture[], att_from_description[], att_from_attributes[], att_from_file_name[], att_from_processor[],
    att_from_type[], att_from_tensor_names[];

/* Which source gave an option first. */
typedef struct att_provider {
    char key[ATT_OPTION_KEY];
    const char *from;
} att_provider;

typedef struct att_identification {
    att_context *context;
    const att_tensors *file;
    const char *path;
    att_config config;                        /* config.name has no tag */
    att_option_values from_file;              /* options of all sources except the caller */
    att_provider providers[ATT_MOST_OPTIONS]; /* of config.options */
    int provider_count;
    const char *name_from, *tag_from, *preprocess_from; /* sources of name, tag and preprocessing; NULL: not given */
    att_network_name named;                             /* the name, as name_from gives it */
    att_variant variant;                                /* variant of that name */
    att_text notes;            /* for the user: "; config.json, which names deit_tiny, was left out" */
    bool is_described;         /* attscope's metadata, which gives every option, is of the network that is named */
    bool caller_gives_classes; /* including "no classes" */
    char unknown[128];         /* the file's name of its network if attscope knows no such name; "" */
    const char *unknown_from;
} att_identification;

/* --- the sources (identify_sources.c) ----------------------------------------------------------------------------- */

/* Reads and merges what the caller, side files and metadata give. name, flags: from the caller; NULL: not given. */
att_status att_identify_read_sources(att_identification *s, const char *name, const att_option_values *flags);
/* The source that gave an option first; NULL: none. */
const char *att_identify_provider(const att_identification *s, const char *key);

/* --- the tensors (identify_nearest.c) ----------------------------------------------------------------------------- */

/* Sets the options that the tensors show. If they fit no network of attscope, the message explains what they are. */
att_status att_identify_recognise(const att_identification *s, att_option_values *found);
/* Fails for a file whose network no source names. The message names the networks that its tensors fit. */
att_status att_identify_fail_unnamed(const att_identification *s);
/* Refuses a name if the tensors fit another network but not this one. Images of any size are accepted, and so is a name
 * if the tensors fit no network: a later check reports that for the named family. */
att_status att_identify_check_name(const att_identification *s, att_variant variant);

/* --- the identity ------------------------------------------------------------------------------------------------- */

/* Decides between options that give the same tensors (att_family.disambiguate). own: the variant's values. */
void att_identify_disambiguate(const att_identification *s, const att_family *family, const att_option_values *own,
                               att_option_values *found);
/* Sets origin and brief of the identity: which source gave what. own: the variant's options. found: those from the
 * tensors. */
att_status att_identify_describe(const att_identification *s, const att_option_values *own,
                                 const att_option_values *found, att_identity *identity);

#endif
