/* Class names in the config.json of a repository of the Hugging Face hub. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "study/network/network.h"

/* timm's save_for_hf() writes "label_names", a list or an object by number, also into "pretrained_cfg" in older
 * versions; the transformers library writes "id2label", an object by number. */
static const json_t *find_names(const json_t *root)
{
    const json_t *const places[] = {json_object_get(root, "label_names"),
                                    json_object_get(json_object_get(root, "pretrained_cfg"), "label_names"),
                                    json_object_get(root, "id2label")};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (json_is_array(places[i]) || json_is_object(places[i]))
            return places[i];
    return NULL;
}

static size_t count_of(const json_t *names)
{
    return json_is_array(names) ? json_array_size(names) : json_object_size(names);
}

static const json_t *value_at(const json_t *names, int number)
{
    char key[16];
    if (json_is_array(names))
        return json_array_get(names, (size_t)number);
    snprintf(key, sizeof key, "%d", number);
    return json_object_get(names, key);
}

static const char *name_at(const json_t *names, int number)
{
    return json_string_value(value_at(names, number));
}

/* A name must be a line of its own. */
static bool is_name(const char *text)
{
    if (!text || !*text)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '\x7f')
            return false;
    return true;
}

/* The transformers library writes "LABEL_0", "LABEL_1", ... for classes without names. */
static bool is_placeholder(const char *name, int number)
{
    char placeholder[24];
    snprintf(placeholder, sizeof placeholder, "LABEL_%d", number);
    return strcmp(name, placeholder) == 0;
}

static bool are_as_many(const att_network *network, const char *path, const json_t *names)
{
    const int classes = att_model_classes(network->model);
    if (count_of(names) == (size_t)classes)
        return true;
    att_log(network->context, ATT_LOG_WARNING,
            "%s: names %zu classes, but the network's classifier has %d; these names are not used", path,
            count_of(names), classes);
    return false;
}

static bool are_names(const att_network *network, const char *path, const json_t *names)
{
    bool named = false;
    for (int c = 0; c < att_model_classes(network->model); c++) {
        const char *name = name_at(names, c);
        if (!is_name(name)) {
            att_log(network->context, ATT_LOG_WARNING,
                    "%s: class %d %s; the classes must have the numbers 0 to %d and a line of text each, so these "
                    "names are not used",
                    path, c, value_at(names, c) ? "has a name that is no line of text" : "has no name",
                    att_model_classes(network->model) - 1);
            return false;
        }
        named = named || !is_placeholder(name, c);
    }
    return named;
}

/* Whether two names begin with the same word or words before a comma or colon, in any case: "Tench, Tinca tinca" and
 * "tench". */
static bool begin_alike(const char *a, const char *b)
{
    const size_t length = strcspn(a, ",:");
    return length == strcspn(b, ",:") && strncasecmp(a, b, length) == 0;
}

/* Whether most names are those of the classes with the same numbers. ImageNet's classes have several synonyms, and two
 * of the usual names are those of two classes each. */
static bool are_of(const json_t *names, const att_known_classes *known)
{
    int same = 0;
    for (int c = 0; c < known->count; c++) {
        const char *name = name_at(names, c), *synset = att_known_classes_synset(known, c);
        same += begin_alike(name, att_known_classes_label(known, c)) || (synset && strcmp(name, synset) == 0);
    }
    return same >= known->count - known->count / 4;
}

/* Returns the data set whose classes are built in that has these names; NULL: there is none. */
static const att_known_classes *find_known(const json_t *names, int classes)
{
    for (int i = 0; i < att_known_classes_count(); i++) {
        const att_known_classes *known = att_known_classes_at(i);
        if (known->count == classes && are_of(names, known))
            return known;
    }
    return NULL;
}

/* att_model_identify() leaves a config.json out that names another network. */
static bool is_of_network(const att_network *network, const json_t *root)
{
    const char *name = json_string_value(json_object_get(root, "architecture"));
    att_network_name found, own;
    return !name || (att_model_resolve(network->context, name, &found) == ATT_OK &&
                     att_model_resolve(network->context, network->identity.name, &own) == ATT_OK &&
                     strcmp(found.network, own.network) == 0);
}

/* The description of a class, where there is one, says more than its name. */
static const char *shown_name(const json_t *root, const char *name)
{
    const char *described = json_string_value(json_object_get(json_object_get(root, "label_descriptions"), name));
    return is_name(described) ? described : name;
}

/* Sets the lines of network->config_names and *shown. */
static att_status take_names(att_network *network, const json_t *root, const json_t *names, char **shown)
{
    att_text own = {.context = network->context}, described = {.context = network->context};
    for (int c = 0; c < att_model_classes(network->model); c++) {
        const char *name = name_at(names, c);
        att_text_append(&own, "%s\n", name);
        att_text_append(&described, "%s\n", shown_name(root, name));
    }
    if (own.failed || described.failed) {
        att_text_free(&own);
        att_text_free(&described);
        return att_fail_memory(network->context, own.length, "the names of classes");
    }
    network->config_names = own.data;
    *shown = described.data;
    return ATT_OK;
}

static att_status read_config(att_network *network, const char *path, char **shown)
{
    char *bytes;
    size_t size;
    json_t *root = NULL;
    ATT_TRY(att_file_read(network->context, path, ATT_JSON_SETTINGS_BYTES, &bytes, &size));
    att_status status = att_json_parse_unique(network->context, path, bytes, size, &root);
    att_free(network->context, bytes);
    const json_t *names = find_names(root);
    if (status == ATT_ERR_FORMAT) { /* a key that is there twice: other readers take the last value */
        att_log(network->context, ATT_LOG_WARNING, "%s; names of classes in this file are not used",
                att_context_message(network->context));
        return ATT_OK;
    }
    if (status == ATT_OK && names && is_of_network(network, root) && are_as_many(network, path, names) &&
        are_names(network, path, names)) {
        network->config_known = find_known(names, att_model_classes(network->model));
        status = network->config_known ? ATT_OK : take_names(network, root, names, shown);
    }
    json_decref(root);
    return status;
}

att_status att_network_read_config_names(att_network *network, char **shown)
{
    char folder[ATT_NETWORK_PATH], path[ATT_NETWORK_PATH];
    if (!*network->path || att_checkpoint_classes(network->file) ||
        att_tensors_metadata(network->file, ATT_CLASSES_KEY))
        return ATT_OK;
    ATT_TRY(att_path_folder(network->context, network->path, folder, sizeof folder));
    ATT_TRY(att_path_join(network->context, folder, "config.json", path, sizeof path));
    return att_file_exists(path) ? read_config(network, path, shown) : ATT_OK;
}
