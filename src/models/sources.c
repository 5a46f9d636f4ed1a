/* Reading what side files and metadata claim. */
#include <string.h>

#include <attscope/yaml.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "io/file.h"
#include "io/json.h"
#include "models/claims.h"

enum { CONFIG_BYTES = 1 << 20 };

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

static att_fact json_fact(const json_t *value)
{
    att_fact fact = {.kind = ATT_FACT_OTHER};
    if (json_is_string(value)) {
        fact.kind = ATT_FACT_TEXT;
        fact.text = json_string_value(value);
    } else if (json_number(value, &fact.numbers[0])) {
        fact.kind = ATT_FACT_NUMBERS;
        fact.count = 1;
    } else if (json_is_array(value) && json_array_size(value) <= 3) {
        fact.kind = ATT_FACT_NUMBERS;
        fact.count = (int)json_array_size(value);
        for (int i = 0; i < fact.count; i++)
            if (!json_number(json_array_get(value, (size_t)i), &fact.numbers[i]))
                fact.kind = ATT_FACT_OTHER;
    }
    return fact;
}

/* Notes member `key` where it is there and says something. */
static att_status note_member(att_context *context, const char *what, const json_t *object, const char *key,
                              att_claims *claims)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0))
        return ATT_OK;
    att_fact fact = json_fact(value);
    return att_claims_note(context, what, key, &fact, claims);
}

static att_status note_members(att_context *context, const char *what, const json_t *object, const char *const *keys,
                               att_claims *claims)
{
    for (; *keys; keys++)
        ATT_TRY(note_member(context, what, object, *keys, claims));
    return ATT_OK;
}

/* Arguments of timm's constructor that leave an inference as it is. */
static bool is_harmless(const char *key, const json_t *value)
{
    static const char *const training[] = {"drop_rate",
                                           "pos_drop_rate",
                                           "patch_drop_rate",
                                           "proj_drop_rate",
                                           "attn_drop_rate",
                                           "drop_path_rate",
                                           "weight_init",
                                           "fix_init",
                                           "dynamic_img_size",
                                           "dynamic_img_pad",
                                           NULL};
    for (const char *const *known = training; *known; known++)
        if (strcmp(key, *known) == 0)
            return true;
    double number;
    return json_is_null(value) || (json_number(value, &number) && number == 0);
}

static att_status note_model_args(att_context *context, const char *what, const json_t *arguments, att_claims *claims)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)arguments, key, value)
    {
        att_status status = note_member(context, what, arguments, key, claims);
        if (status == ATT_ERR_NOT_FOUND && is_harmless(key, value))
            continue;
        if (status == ATT_ERR_NOT_FOUND)
            return att_fail(context, ATT_ERR_UNSUPPORTED,
                            "%s: the network was made with \"%.64s\", which no model here has", what, key);
        ATT_TRY(status);
    }
    return ATT_OK;
}

static att_status note_config(att_context *context, const char *what, const json_t *root, att_claims *claims)
{
    static const char *const own[] = {"architecture", "num_classes", "global_pool", NULL};
    static const char *const pretrained[] = {"num_classes", "input_size", "mean",          "std",
                                             "crop_pct",    "crop_mode",  "interpolation", NULL};
    if (!json_is_object(root))
        return att_fail(context, ATT_ERR_FORMAT, "%s: an object was expected", what);
    const json_t *arguments = json_object_get(root, "model_args");
    if (json_is_object(arguments))
        ATT_TRY(note_model_args(context, what, arguments, claims));
    ATT_TRY(note_members(context, what, root, own, claims));
    /* Before timm 0.9 what is now in pretrained_cfg lay beside the architecture. */
    const json_t *config = json_object_get(root, "pretrained_cfg");
    if (!json_is_object(config))
        config = root;
    /* A network without a head has num_classes 0, beside the classes that its training had. */
    bool says_classes = json_is_number(json_object_get(root, "num_classes"));
    return note_members(context, what, config, pretrained + says_classes, claims);
}

att_status att_claims_read_config(att_context *context, const char *path, att_claims *claims)
{
    char *bytes;
    size_t size;
    ATT_TRY(att_file_read(context, path, CONFIG_BYTES, &bytes, &size));
    json_t *root = NULL;
    att_status status = att_json_parse(context, path, bytes, size, &root);
    if (status == ATT_OK)
        status = note_config(context, path, root, claims);
    json_decref(root);
    att_free(context, bytes);
    return status;
}

att_status att_claims_parse(att_context *context, const char *what, const char *text, att_claims *claims)
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
            status = note_member(context, what, root, key, claims);
        if (status == ATT_ERR_NOT_FOUND) /* a member that a later version writes */
            status = ATT_OK;
    }
    json_decref(root);
    return status;
}

/* --- YAML -------------------------------------------------------------------------------------------------------- */

static bool yaml_number(const char *text, double *number)
{
    static const char *const truths[] = {"false", "true"};
    for (int i = 0; i < 2; i++)
        if (strcmp(text, truths[i]) == 0) {
            *number = i;
            return true;
        }
    return att_text_to_f64(text, number);
}

static att_fact yaml_fact(const att_yaml_entry *entry)
{
    att_fact fact = {.kind = ATT_FACT_OTHER};
    if (entry->value_count < 1 || entry->value_count > 3)
        return fact;
    fact.kind = ATT_FACT_NUMBERS;
    fact.count = entry->value_count;
    for (int i = 0; i < fact.count; i++)
        if (!yaml_number(entry->values[i], &fact.numbers[i]))
            fact.kind = ATT_FACT_OTHER;
    if (fact.kind == ATT_FACT_OTHER && fact.count == 1) {
        fact.kind = ATT_FACT_TEXT;
        fact.text = entry->values[0];
    }
    return fact;
}

/* Dashes back to the underscores of our names; "" where a key is too long to be one of ours. */
static void own_key(const char *key, char *own, size_t size)
{
    size_t length = strlen(key) < size ? strlen(key) : 0;
    for (size_t i = 0; i < length; i++)
        own[i] = key[i] == '-' ? '_' : key[i];
    own[length] = '\0';
}

/* args.yaml holds every option of a training; those that say nothing of the network are passed over. */
att_status att_claims_read_args(att_context *context, const char *path, att_claims *claims)
{
    att_yaml *yaml;
    ATT_TRY(att_yaml_read(context, path, &yaml));
    att_status status = ATT_OK;
    for (int i = 0; status == ATT_OK && i < att_yaml_count(yaml); i++) {
        att_yaml_entry entry = att_yaml_at(yaml, i);
        if (entry.kind == ATT_YAML_NULL || (entry.value_count == 1 && entry.values[0][0] == '\0'))
            continue;
        att_fact fact = yaml_fact(&entry);
        char key[64];
        own_key(entry.key, key, sizeof key);
        status = att_claims_note(context, path, key, &fact, claims);
        if (status == ATT_ERR_NOT_FOUND)
            status = ATT_OK;
    }
    att_yaml_destroy(&yaml);
    return status;
}
