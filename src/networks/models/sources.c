/* Reads configurations from side files and metadata. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/yaml.h"
#include "networks/models/config.h"
#include "networks/models/family.h"
#include "networks/models/timm.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

static const char BLANKS[] = " \t\r\n";

enum { MOST_NUMBERS = sizeof((att_fact *)0)->numbers / sizeof(double) };

static bool as_number(const char *text, double *number)
{
    static const char *const truths[] = {"false", "true"};
    for (int i = 0; i < 2; i++)
        if (strcmp(text, truths[i]) == 0) {
            *number = i;
            return true;
        }
    return att_text_to_f64(text, number);
}

/* --- JSON -------------------------------------------------------------------------------------------------------- */

static bool json_number(const json_t *value, double *number)
{
    if (json_is_boolean(value))
        *number = json_is_true(value);
    else if (json_is_number(value))
        *number = json_number_value(value);
    else
        return false;
    return true;
}

att_fact att_fact_of_json(const json_t *value)
{
    att_fact fact = {.kind = ATT_FACT_OTHER};
    if (json_is_string(value)) {
        fact.kind = ATT_FACT_TEXT;
        fact.text = json_string_value(value);
    } else if (json_number(value, &fact.numbers[0])) {
        fact.kind = ATT_FACT_NUMBERS;
        fact.count = 1;
        fact.is_truth = json_is_boolean(value);
    } else if (json_is_array(value) && json_array_size(value) <= MOST_NUMBERS) {
        fact.kind = ATT_FACT_NUMBERS;
        fact.count = (int)json_array_size(value);
        for (int i = 0; i < fact.count; i++)
            if (!json_number(json_array_get(value, (size_t)i), &fact.numbers[i]))
                fact.kind = ATT_FACT_OTHER;
    }
    return fact;
}

/* Scripts write an empty text for an option that was not given. For the pooling, an empty text means "no pooling". */
static bool may_be_empty(const char *key)
{
    return strcmp(key, "global_pool") == 0 || strcmp(key, "gp") == 0;
}

static bool is_empty_value(const char *key, const json_t *value)
{
    return !value || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0 && !may_be_empty(key)) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* Sets the value of member `key` if it is present and not empty. */
static att_status note_member(att_context *context, const char *what, const json_t *object, const char *key,
                              att_config *config)
{
    const json_t *value = json_object_get(object, key);
    if (is_empty_value(key, value))
        return ATT_OK;
    att_fact fact = att_fact_of_json(value);
    return att_config_note(context, what, key, &fact, config);
}

static att_status note_members(att_context *context, const char *what, const json_t *object, const char *const *keys,
                               att_config *config)
{
    for (; *keys; keys++)
        ATT_TRY(note_member(context, what, object, *keys, config));
    return ATT_OK;
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Keys under which programs store the name. */
static const char *const name_keys[] = {ATT_TENSORS_ARCHITECTURE, "architecture", "model_name", "model", "timm_model"};

/* Whether the part before the tag is the name of a network. */
static bool has_unknown_tag(att_context *context, const char *text)
{
    char network[128];
    att_network_name name;
    size_t length = strcspn(text, ".");
    if (!text[length] || length >= sizeof network)
        return false;
    snprintf(network, sizeof network, "%.*s", (int)length, text);
    return att_model_resolve(context, network, &name) != ATT_ERR_NOT_FOUND;
}

/* Writes the name as timm does: lower case, no surrounding blanks. */
static void as_timm_writes(const char *text, char plain[128])
{
    size_t length = 0;
    text += strspn(text, BLANKS);
    for (; *text && length < 127; text++)
        plain[length++] = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    while (length > 0 && strchr(BLANKS, plain[length - 1]))
        length--;
    plain[length] = '\0';
}

att_status att_config_resolve(att_context *context, const char *text, att_network_name *name)
{
    char plain[128];
    att_network_name other;
    as_timm_writes(text, plain);
    att_status status = att_model_resolve(context, text, name);
    if (status != ATT_ERR_NOT_FOUND)
        return status;
    if (att_model_resolve(context, plain, &other) == ATT_ERR_UNSUPPORTED)
        return ATT_ERR_UNSUPPORTED;
    bool is_known = has_unknown_tag(context, text);
    status = att_model_resolve(context, text, name); /* sets the message */
    return is_known && status == ATT_ERR_NOT_FOUND ? ATT_ERR_UNSUPPORTED : status;
}

/* Sets the name of the network. If there is a name already, a name unknown to timm gives way to the other; names of two
 * different networks are refused. */
static att_status note_name(att_context *context, const char *what, const char *text, att_config *config)
{
    att_network_name known, other;
    att_fact fact = {.kind = ATT_FACT_TEXT, .text = text};
    att_status status = ATT_OK, before = ATT_ERR_NOT_FOUND;
    if (config->name[0]) {
        before = att_config_resolve(context, config->name, &known);
        status = att_config_resolve(context, text, &other);
    }
    if (status == ATT_ERR_MEMORY || before == ATT_ERR_MEMORY)
        return ATT_ERR_MEMORY;
    if (status == ATT_ERR_NOT_FOUND || strcmp(text, config->name) == 0 ||
        (status == ATT_OK && before == ATT_OK && strcmp(known.network, other.network) == 0))
        return ATT_OK;
    if (before != ATT_ERR_NOT_FOUND)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: names two networks, \"%.64s\" and \"%.64s\"", what,
                        config->name, text);
    config->name[0] = '\0';
    return att_config_note(context, what, "architecture", &fact, config);
}

static att_status note_name_member(att_context *context, const char *what, const json_t *object, const char *key,
                                   att_config *config)
{
    const json_t *value = json_object_get(object, key);
    if (is_empty_value(key, value))
        return ATT_OK;
    if (!json_is_string(value))
        return att_fail(context, ATT_ERR_FORMAT, "%s: \"%s\" must be a text", what, key);
    return note_name(context, what, json_string_value(value), config);
}

/* --- arguments of timm's constructors ----------------------------------------------------------------------------- */

/* Keys under which programs store the arguments of timm's constructors. */
static const char *const argument_keys[] = {"model_args", "model_kwargs", "kwargs"};

/* Arguments accepted from timm's scripts and for every family (see att_family.accepted_arguments). */
static const att_accepted_argument accepted_arguments[] = {
    {"pretrained", ATT_ANY_VALUE}, {"bn_eps", "1e-5"}, {"bn_tf", "false"}, {NULL, NULL}};

static bool is_value(const att_fact *fact, const char *text)
{
    double number;
    if (fact->kind == ATT_FACT_TEXT)
        return strcmp(fact->text, text) == 0;
    return fact->kind == ATT_FACT_NUMBERS && fact->count == 1 && as_number(text, &number) && fact->numbers[0] == number;
}

/* Whether the list has the argument; *accepted becomes true if the value is acceptable. */
static bool has_argument(const att_accepted_argument *list, const char *key, const att_fact *fact, bool *accepted)
{
    bool found = false;
    for (; list && list->key; list++) {
        if (strcmp(list->key, key) != 0)
            continue;
        found = true;
        *accepted |= strcmp(list->value, ATT_ANY_VALUE) == 0 || is_value(fact, list->value);
    }
    return found;
}

/* Whether timm's network with this argument computes the same as attscope's. family: NULL if unknown; the value must
 * then be acceptable in every family that has the argument. */
static bool is_accepted(const att_family *family, const char *key, const att_fact *fact)
{
    bool known = false, all_accepted = true, accepted = false;
    if (has_argument(accepted_arguments, key, fact, &accepted))
        return accepted;
    for (int i = 0; i < att_family_count(); i++, accepted = false) {
        const att_family *other = att_family_at(i);
        if ((family && family != other) || !has_argument(other->accepted_arguments, key, fact, &accepted))
            continue;
        known = true;
        all_accepted &= accepted;
    }
    return known ? all_accepted : is_value(fact, "0");
}

static att_status refuse_argument(att_context *context, const char *what, const char *key, const att_fact *fact)
{
    char value[48] = "";
    if (fact->kind == ATT_FACT_TEXT)
        snprintf(value, sizeof value, " \"%.32s\"", fact->text);
    else if (fact->kind == ATT_FACT_NUMBERS && fact->is_truth)
        snprintf(value, sizeof value, fact->numbers[0] ? " true" : " false");
    else if (fact->kind == ATT_FACT_NUMBERS && fact->count == 1)
        snprintf(value, sizeof value, " %g", fact->numbers[0]);
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the network was made with %.64s%s, which attscope does not support", what, key, value);
}

/* Refuses an argument with which timm's network computes something else. family: NULL if unknown. */
static att_status check_argument(att_context *context, const char *what, const att_family *family, const char *key,
                                 const att_fact *fact)
{
    return is_accepted(family, key, fact) ? ATT_OK : refuse_argument(context, what, key, fact);
}

/* Returns the family of the network that the config names or, without a known name, of the file's tensors; NULL if
 * unknown. */
static const att_family *family_of(att_context *context, const att_tensors *file, const att_config *config)
{
    att_variant variant;
    if (config->name[0] && att_variant_find(context, config->name, &variant) == ATT_OK)
        return variant.family;
    return att_family_detect(file);
}

static bool has_unknown_name(att_context *context, const att_config *config)
{
    att_variant variant;
    return config->name[0] && att_variant_find(context, config->name, &variant) != ATT_OK;
}

/* Sets the option of a constructor's argument. family: NULL if unknown. */
static att_status note_argument(att_context *context, const char *what, const att_family *family, const char *key,
                                const att_fact *fact, att_config *config)
{
    bool accepted = false, is_own = family && att_option_find(family->options, key);
    if (family && family->take_argument && family->take_argument(key, fact, &config->options))
        return ATT_OK;
    /* Options of other families; and options of a network with an unknown name, which are left out with the name. */
    if (family && (!is_own || has_unknown_name(context, config)) &&
        has_argument(family->accepted_arguments, key, fact, &accepted))
        return check_argument(context, what, family, key, fact);
    att_status status = att_config_note(context, what, key, fact, config);
    return status == ATT_ERR_NOT_FOUND ? check_argument(context, what, family, key, fact) : status;
}

static bool is_listed(const char *key)
{
    const att_fact nothing = {.kind = ATT_FACT_OTHER};
    bool accepted, listed = has_argument(accepted_arguments, key, &nothing, &accepted);
    for (int i = 0; i < att_family_count() && !listed; i++)
        listed = has_argument(att_family_at(i)->accepted_arguments, key, &nothing, &accepted);
    return listed;
}

/* Whether the tensors show the module. */
static bool has_module(att_context *context, const att_family *family, const att_tensors *file, const att_fact *name)
{
    att_option_values found = att_options_none();
    if (name->kind != ATT_FACT_TEXT || !family || att_family_recognise(context, family, file, &found) != ATT_OK)
        return false;
    const char *modules = att_options_text(&found, "modules");
    return strcspn(modules, ":@") == strlen(name->text) && strncmp(modules, name->text, strlen(name->text)) == 0;
}

/* Takes an argument that is a mapping. All that is known is block_args.attn_layer, which names a module. */
static att_status note_mapping(att_context *context, const char *what, const att_family *family,
                               const att_tensors *file, const char *key, const json_t *members)
{
    const char *member;
    json_t *value;
    char name[128];
    json_object_foreach((json_t *)members, member, value)
    {
        att_fact fact = att_fact_of_json(value);
        snprintf(name, sizeof name, "%s.%s", key, member);
        if (!is_listed(name) || !is_accepted(family, name, &fact) || !has_module(context, family, file, &fact))
            return refuse_argument(context, what, name, &fact);
    }
    return ATT_OK;
}

static att_status note_model_args(att_context *context, const char *what, const att_tensors *file, const json_t *args,
                                  att_config *config)
{
    const char *key;
    const att_family *family = family_of(context, file, config);
    json_t *value;
    json_object_foreach((json_t *)args, key, value)
    {
        att_fact fact = att_fact_of_json(value);
        if (is_empty_value(key, value))
            continue;
        ATT_TRY(json_is_object(value) ? note_mapping(context, what, family, file, key, value)
                                      : note_argument(context, what, family, key, &fact, config));
    }
    return ATT_OK;
}

/* Sets the options of the constructor's arguments in config.json, including the arguments beside the name. */
static att_status note_config_args(att_context *context, const char *what, const att_tensors *file, const json_t *root,
                                   att_config *config)
{
    const char *key;
    const att_family *family = family_of(context, file, config);
    json_t *value;
    for (int i = 0; i < COUNT(argument_keys); i++) {
        const json_t *args = json_object_get(root, argument_keys[i]);
        if (json_is_object(args))
            ATT_TRY(note_model_args(context, what, file, args, config));
        else if (!is_empty_value(argument_keys[i], args))
            return refuse_argument(context, what, argument_keys[i], &(att_fact){.kind = ATT_FACT_OTHER});
    }
    json_object_foreach((json_t *)root, key, value)
    {
        att_fact fact = att_fact_of_json(value);
        if (is_listed(key) && !is_empty_value(key, value))
            ATT_TRY(note_argument(context, what, family, key, &fact, config));
    }
    return ATT_OK;
}

/* Appends the pretrained tag to the network's name. Tags that are not timm's are ignored. */
static void note_tag(att_context *context, const json_t *timm_config, att_config *config)
{
    const char *tag = json_string_value(json_object_get(timm_config, "tag"));
    att_network_name name;
    att_timm_tag found;
    if (!tag || !config->name[0] || att_model_resolve(context, config->name, &name) != ATT_OK ||
        strchr(config->name, '.') || !att_timm_find_tag(name.network, tag, &found))
        return;
    size_t length = strlen(config->name);
    snprintf(config->name + length, sizeof config->name - length, ".%s", tag);
}

/* Whether config.json is of the transformers library. Its wrapper of timm's networks writes timm's config. */
static bool is_of_transformers(const json_t *root)
{
    return json_is_string(json_object_get(root, "model_type")) && !json_object_get(root, "architecture");
}

/* Networks of the transformers library differ from timm's in ways that tensors do not show (eps, activations).
 * att_model_open_file() has changed the settings of those that attscope has to metadata. */
static att_status check_transformers(att_context *context, const char *what, const att_tensors *file,
                                     const json_t *root)
{
    if (att_tensors_metadata(file, ATT_IDENTITY_KEY))
        return ATT_OK;
    const char *type = json_string_value(json_object_get(root, "model_type"));
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "%s: describes a network of the transformers library (model_type \"%.64s\"), but the file has not been "
        "opened as one (att_model_open_file()). "
        "If it belongs to another file, move that file to a folder of its own",
        what, type);
}

static att_status note_config(att_context *context, const char *what, const att_tensors *file, const json_t *root,
                              att_config *config)
{
    static const char *const own[] = {"num_classes", "global_pool", NULL};
    static const char *const pretrained[] = {"num_classes",   "input_size", "mean",          "std",
                                             "crop_pct",      "crop_mode",  "interpolation", "test_input_size",
                                             "test_crop_pct", NULL};
    if (!json_is_object(root))
        return att_fail(context, ATT_ERR_FORMAT, "%s: an object was expected", what);
    if (is_of_transformers(root))
        return check_transformers(context, what, file, root);
    /* Before timm 0.9 the members of pretrained_cfg were beside the architecture. */
    const json_t *timm_config = json_object_get(root, "pretrained_cfg");
    if (!json_is_object(timm_config) && !is_empty_value("pretrained_cfg", timm_config))
        return att_fail(context, ATT_ERR_FORMAT, "%s: \"pretrained_cfg\" must be an object", what);
    if (!json_is_object(timm_config))
        timm_config = root;
    ATT_TRY(note_name_member(context, what, root, "architecture", config));
    ATT_TRY(note_name_member(context, what, timm_config, "architecture", config));
    ATT_TRY(note_config_args(context, what, file, root, config));
    ATT_TRY(note_members(context, what, root, own, config));
    note_tag(context, timm_config, config);
    /* A network without a head has num_classes 0 at the top, and the classes of its training in pretrained_cfg. */
    bool has_classes = json_is_number(json_object_get(root, "num_classes"));
    return note_members(context, what, timm_config, pretrained + has_classes, config);
}

att_status att_config_read_json(att_context *context, const char *path, const att_tensors *file, att_config *config)
{
    char *bytes;
    size_t size;
    ATT_TRY(att_file_read(context, path, ATT_JSON_SETTINGS_BYTES, &bytes, &size));
    json_t *root = NULL;
    att_status status = att_json_parse(context, path, bytes, size, &root);
    if (status == ATT_OK)
        status = note_config(context, path, file, root, config);
    json_decref(root);
    att_free(context, bytes);
    return status;
}

att_status att_config_parse(att_context *context, const char *what, const char *text, att_config *config)
{
    json_t *root = NULL;
    ATT_TRY(att_json_parse(context, what, text, strlen(text), &root));
    att_status status = ATT_OK;
    if (!json_is_object(root))
        status = att_fail(context, ATT_ERR_FORMAT, "%s: an object was expected", what);
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (status == ATT_OK)
            status = note_member(context, what, root, key, config);
        if (status == ATT_ERR_NOT_FOUND) /* a member of a later version */
            status = ATT_OK;
    }
    json_decref(root);
    return status;
}

/* --- YAML -------------------------------------------------------------------------------------------------------- */

static att_fact yaml_fact(const att_yaml_entry *entry)
{
    att_fact fact = {.kind = ATT_FACT_OTHER};
    if (entry->value_count < 1 || entry->value_count > MOST_NUMBERS)
        return fact;
    fact.kind = ATT_FACT_NUMBERS;
    fact.count = entry->value_count;
    for (int i = 0; i < fact.count; i++)
        if (!as_number(entry->values[i], &fact.numbers[i]))
            fact.kind = ATT_FACT_OTHER;
    fact.is_truth =
        fact.count == 1 && (strcmp(entry->values[0], "true") == 0 || strcmp(entry->values[0], "false") == 0);
    if (fact.kind == ATT_FACT_OTHER && fact.count == 1) {
        fact.kind = ATT_FACT_TEXT;
        fact.text = entry->values[0];
    }
    return fact;
}

/* Replaces dashes by underscores. A key too long for `own` is truncated; no known key is that long. */
static void own_key(const char *key, char *own, size_t size)
{
    snprintf(own, size, "%s", key);
    for (char *at = own; *at; at++)
        if (*at == '-')
            *at = '_';
}

/* If `key` begins with a key of constructor's arguments, returns what follows, "" or ".act_layer"; else NULL. */
static const char *argument_of(const char *key)
{
    for (int i = 0; i < COUNT(argument_keys); i++) {
        size_t length = strlen(argument_keys[i]);
        if (strncmp(key, argument_keys[i], length) == 0 && (key[length] == '.' || !key[length]))
            return key + length;
    }
    return NULL;
}

/* Sets an option of timm's scripts. Options that do not concern the network are ignored. */
static att_status note_option(att_context *context, const char *what, const att_tensors *file, const char *key,
                              const att_fact *fact, att_config *config)
{
    static const char *const norms[] = {"bn_eps", "bn_tf"};
    const char *argument = argument_of(key);
    if (argument && *argument)
        return note_argument(context, what, family_of(context, file, config), argument + 1, fact, config);
    if (argument) /* not a mapping */
        return refuse_argument(context, what, key, fact);
    for (int i = 0; i < COUNT(norms); i++)
        if (strcmp(key, norms[i]) == 0)
            return check_argument(context, what, NULL, key, fact);
    att_status status = att_config_note(context, what, key, fact, config);
    return status == ATT_ERR_NOT_FOUND ? ATT_OK : status;
}

static bool is_given(const char *key, const att_yaml_entry *entry)
{
    const char *argument = argument_of(key);
    bool is_empty = entry->value_count == 1 && entry->values[0][0] == '\0';
    return entry->kind != ATT_YAML_NULL && (!is_empty || may_be_empty(argument && *argument ? argument + 1 : key));
}

static att_status note_entries(att_context *context, const char *path, const att_tensors *file, const att_yaml *yaml,
                               bool names_only, att_config *config)
{
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        att_yaml_entry entry = att_yaml_at(yaml, i);
        char key[64];
        own_key(entry.key, key, sizeof key);
        if (!is_given(key, &entry) || (names_only && strcmp(key, "model") != 0))
            continue;
        att_fact fact = yaml_fact(&entry);
        ATT_TRY(note_option(context, path, file, key, &fact, config));
    }
    return ATT_OK;
}

/* Reads the name first, because it determines the meaning of arguments. */
att_status att_config_read_args(att_context *context, const char *path, const att_tensors *file, att_config *config)
{
    att_yaml *yaml;
    ATT_TRY(att_yaml_read(context, path, &yaml));
    att_status status = note_entries(context, path, file, yaml, true, config);
    if (status == ATT_OK)
        status = note_entries(context, path, file, yaml, false, config);
    att_yaml_destroy(&yaml);
    return status;
}

/* --- metadata of other programs ----------------------------------------------------------------------------------- */

/* Parses the metadata under `key`. The caller owns *object, which is NULL if the metadata is missing or empty. */
static att_status parse_object(att_context *context, const char *what, const att_tensors *file, const char *key,
                               json_t **object)
{
    const char *text = att_tensors_metadata(file, key);
    *object = NULL;
    if (!text || !text[strspn(text, BLANKS)] || strcmp(text, "null") == 0 || strcmp(text, "None") == 0)
        return ATT_OK;
    att_status status = att_json_parse(context, what, text, strlen(text), object);
    if (status == ATT_ERR_MEMORY || json_is_object(*object))
        return status;
    json_decref(*object);
    *object = NULL;
    return att_fail(context, ATT_ERR_FORMAT, "%s: \"%s\" is not a JSON object, so its values cannot be read", what,
                    key);
}

/* Reads the options of a training script. In scripts other than timm's, options have other meanings except for the
 * network's name and its constructor's arguments. */
static att_status note_options(att_context *context, const char *what, const att_tensors *file, const json_t *options,
                               att_config *config)
{
    const char *key;
    json_t *value;
    for (int i = 0; i < COUNT(name_keys); i++)
        ATT_TRY(note_name_member(context, what, options, name_keys[i], config));
    bool is_timms = json_object_get(options, "gp") != NULL;
    json_object_foreach((json_t *)options, key, value)
    {
        att_fact fact = att_fact_of_json(value);
        if ((is_timms || argument_of(key)) && strcmp(key, "model") != 0 && !is_empty_value(key, value))
            ATT_TRY(note_option(context, what, file, key, &fact, config));
    }
    return ATT_OK;
}

/* Parses one JSON object of the metadata and passes it to `note`. */
static att_status note_object(att_context *context, const char *what, const att_tensors *file, const char *key,
                              att_status (*note)(att_context *context, const char *what, const att_tensors *file,
                                                 const json_t *object, att_config *config),
                              att_config *config)
{
    json_t *object;
    ATT_TRY(parse_object(context, what, file, key, &object));
    att_status status = object ? note(context, what, file, object, config) : ATT_OK;
    json_decref(object);
    return status;
}

/* Reads the settings that the modules of a network have as attributes: options of the family, and arguments of timm's
 * constructors that it accepts with some values only. Those of other families do not matter. */
static att_status note_attributes(att_context *context, const char *what, const att_tensors *file,
                                  const json_t *attributes, att_config *config)
{
    const char *key;
    json_t *value;
    const att_family *family = family_of(context, file, config);
    json_object_foreach((json_t *)attributes, key, value)
    {
        const att_fact fact = att_fact_of_json(value);
        bool accepted;
        const bool own = family && (att_option_find(family->options, key) ||
                                    has_argument(family->accepted_arguments, key, &fact, &accepted) ||
                                    strcmp(key, "no_embed_class") == 0);
        if ((own && !is_empty_value(key, value)) || strcmp(key, "patch_stride") == 0)
            ATT_TRY(note_argument(context, what, family, key, &fact, config));
    }
    return ATT_OK;
}

att_status att_config_read_metadata(att_context *context, const char *what, const att_tensors *file, att_config *config)
{
    static const char *const option_keys[] = {ATT_TENSORS_OPTIONS, ATT_TENSORS_HYPER_PARAMETERS};
    static const char *const config_keys[] = {"config", "pretrained_cfg"};
    for (int i = 0; i < COUNT(name_keys); i++) {
        const char *name = att_tensors_metadata(file, name_keys[i]);
        if (name && *name && strlen(name) < sizeof config->name) /* a longer text is a description, not a name */
            ATT_TRY(note_name(context, what, name, config));
    }
    ATT_TRY(note_object(context, what, file, ATT_TENSORS_ATTRIBUTES, note_attributes, config));
    for (int i = 0; i < COUNT(option_keys); i++)
        ATT_TRY(note_object(context, what, file, option_keys[i], note_options, config));
    for (int i = 0; i < COUNT(argument_keys); i++)
        ATT_TRY(note_object(context, what, file, argument_keys[i], note_model_args, config));
    for (int i = 0; i < COUNT(config_keys); i++)
        ATT_TRY(note_object(context, what, file, config_keys[i], note_config, config));
    return ATT_OK;
}

/* --- settings of pretrained tags and named networks --------------------------------------------------------------- */

/* Reads "key=value,value". Modifies the text. */
static att_status note_setting(att_context *context, const att_option_table *table, char *key, att_config *config)
{
    char *value = strchr(key, '=');
    if (!value)
        return att_fail(context, ATT_ERR_INTERNAL, "the settings of a network have \"%s\"", key);
    *value++ = '\0';
    const att_option *option = att_option_find(table, key);
    if (option && att_options_find(&config->options, option->key))
        return ATT_OK;
    if (option && att_option_store(option, (const char *const[]){value}, 1, &config->options))
        return ATT_OK;
    const char *values[3] = {value};
    att_yaml_entry entry = {.key = key, .values = values, .value_count = 1};
    for (char *comma = value; (comma = strchr(comma, ',')) && entry.value_count < 3;) {
        *comma++ = '\0';
        values[entry.value_count++] = comma;
    }
    att_fact fact = yaml_fact(&entry);
    att_status status = att_config_note(context, "the settings of a network", key, &fact, config);
    return status == ATT_ERR_NOT_FOUND ? att_fail(context, ATT_ERR_INTERNAL, "networks have no setting \"%s\"", key)
                                       : status;
}

att_status att_config_read_settings(att_context *context, const att_option_table *table, const char *settings,
                                    size_t length, att_config *config)
{
    for (const char *at = settings, *end = settings + length; at < end;) {
        char word[ATT_OPTION_TEXT_BYTES];
        const char *space = memchr(at, ' ', (size_t)(end - at));
        snprintf(word, sizeof word, "%.*s", (int)((space ? space : end) - at), at);
        ATT_TRY(note_setting(context, table, word, config));
        at = space ? space + 1 : end;
    }
    return ATT_OK;
}
