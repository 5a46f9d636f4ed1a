#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/names.h"
#include "core/text.h"
#include "network/network.h"

static att_status fail_names(const att_network *network)
{
    return att_fail_memory(network->context, sizeof(char *), "the names of classes");
}

/* With what a synset is called. */
static att_status add_name(att_network *network, const char *name)
{
    const char *label = att_synset_label(name);
    att_text text = {.context = network->context};
    att_text_append(&text, "%s%s%s", name, label ? " " : "", label ? label : "");
    network->class_names[network->class_count] = text.data;
    if (text.failed)
        return fail_names(network);
    network->class_count++;
    return ATT_OK;
}

/* A class a line. */
static att_status take_lines(att_network *network, const char *lines, int classes)
{
    char name[1024];
    att_status status = ATT_OK;
    for (const char *line = lines; *line && network->class_count < classes && status == ATT_OK;) {
        size_t length = strcspn(line, "\n");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), line);
        status = add_name(network, name);
        line += length + (line[length] != '\0');
    }
    return status;
}

att_status att_network_name_classes(att_network *network)
{
    int classes = att_model_classes(network->model);
    if (classes == 0 || !network->file)
        return ATT_OK;
    network->class_names = att_allocate_array(network->context, (size_t)classes, sizeof *network->class_names);
    if (!network->class_names)
        return fail_names(network);
    const att_known_classes *known = att_checkpoint_known_classes(network->file, classes);
    const char *lines = att_checkpoint_classes(network->file);
    if (!known)
        return lines ? take_lines(network, lines, classes) : ATT_OK;
    for (int c = 0; c < known->count; c++)
        ATT_TRY(add_name(network, known->labels[c]));
    return ATT_OK;
}

const char *att_network_class_name(const att_network *network, int number)
{
    return number >= 0 && number < network->class_count ? network->class_names[number] : NULL;
}
