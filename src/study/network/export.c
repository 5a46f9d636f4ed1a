/* Folders of a network that timm and the transformers library open. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/tensors.h"
#include "networks/models/timm_config.h"
#include "study/network/network.h"
#include "study/train/checkpoint.h"

/* --- class names -------------------------------------------------------------------------------------------------- */

/* More bytes of names are left out: a config.json of more than 1 MiB is not read. */
enum { MOST_NAMES = 1 << 18 };

/* Returns the name of a class and moves *lines behind it. name: room. */
static const char *next_line(const char **lines, char *name)
{
    size_t length = strcspn(*lines, "\n");
    memcpy(name, *lines, length);
    name[length] = '\0';
    *lines += length + ((*lines)[length] == '\n');
    return name;
}

/* Returns what class_names.c shows of a class besides its name; NULL: nothing. */
static const char *description_of(const char *name, const char *shown)
{
    const size_t length = strlen(name);
    if (strcmp(shown, name) == 0)
        return NULL;
    return strncmp(shown, name, length) == 0 && shown[length] == ' ' ? shown + length + 1 : shown;
}

/* Writes the names by which the training called the classes, and their descriptions. name: room. */
static void write_trained(const att_network *network, const char *lines, char *name, att_json_writer *writer)
{
    const char *at = lines;
    bool described = false;
    att_json_put_array(writer, "label_names");
    for (int c = 0; c < network->class_count; c++) {
        described |= description_of(next_line(&at, name), network->class_names[c]) != NULL;
        att_json_string(writer, name);
    }
    att_json_end_array(writer);
    if (!described)
        return;
    at = lines;
    att_json_put_object(writer, "label_descriptions");
    for (int c = 0; c < network->class_count; c++) {
        const char *description = description_of(next_line(&at, name), network->class_names[c]);
        if (description)
            att_json_put_string(writer, name, description);
    }
    att_json_end_object(writer);
}

static void write_shown(const att_network *network, att_json_writer *writer)
{
    att_json_put_array(writer, "label_names");
    for (int c = 0; c < network->class_count; c++)
        att_json_string(writer, network->class_names[c]);
    att_json_end_array(writer);
}

static bool has_names(const att_network *network)
{
    size_t bytes = 0;
    for (int c = 0; c < network->class_count; c++)
        bytes += strlen(network->class_names[c]);
    return network->class_count > 0 && network->class_count == att_model_classes(network->model) && bytes <= MOST_NAMES;
}

static int count_lines(const char *lines)
{
    int count = 0;
    for (; *lines; lines++)
        count += *lines == '\n';
    return count;
}

/* The other programs know the names of an order of ImageNet's classes by their number. */
static att_status write_names(const att_network *network, att_json_writer *writer)
{
    const char *lines = att_network_trained_names(network);
    const att_known_classes *known = att_network_known_order(network);
    if (!has_names(network) || (!lines && known && known->has_synsets))
        return ATT_OK;
    if (!lines || count_lines(lines) != network->class_count) {
        write_shown(network, writer);
        return ATT_OK;
    }
    char *name;
    ATT_TRY(att_new(network->context, &name, strlen(lines) + 1, "the names of classes"));
    write_trained(network, lines, name, writer);
    att_free(network->context, name);
    return ATT_OK;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

att_status att_network_write_config(const att_network *network, const att_model *model, att_json_writer *writer)
{
    att_json_begin_object(writer);
    ATT_TRY(att_timm_config_write(model ? model : network->model, &network->identity, writer));
    ATT_TRY(write_names(network, writer));
    att_json_end_object(writer);
    return ATT_OK;
}

static att_status export_files(const att_network *network, const char *folder, att_json_writer *writer)
{
    att_context *context = network->context;
    char weights[ATT_NETWORK_PATH], config[ATT_NETWORK_PATH];
    const char *text;
    size_t length;
    ATT_TRY(att_path_join(context, folder, "model.safetensors", weights, sizeof weights));
    ATT_TRY(att_path_join(context, folder, "config.json", config, sizeof config));
    ATT_TRY(att_network_write_config(network, NULL, writer));
    ATT_TRY(att_json_writer_finish(writer, &text, &length));
    ATT_TRY(att_file_make_folders(context, folder));
    const att_safetensors_beside beside = {config, text, length};
    return att_checkpoint_export_named(network->model, network->weights, att_network_trained_names(network),
                                       network->known_classes, network->file && network->file->projects, &beside,
                                       weights);
}

att_status att_network_export(const att_network *network, const char *folder)
{
    att_json_writer *writer;
    ATT_TRY(att_require(network->context, folder, "the folder of a network"));
    ATT_TRY(att_json_writer_create(network->context, true, &writer));
    att_status status = export_files(network, folder, writer);
    att_json_writer_destroy(&writer);
    return status;
}
