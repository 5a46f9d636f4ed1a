#include "core/names.h"

#include <string.h>

int att_known_classes_count(void)
{
    return att_known_classes_number;
}

const att_known_classes *att_known_classes_at(int index)
{
    return &att_known_classes_all[index];
}

const att_known_classes *att_known_classes_find(const char *name)
{
    for (int i = 0; i < att_known_classes_number; i++)
        if (strcmp(att_known_classes_all[i].name, name) == 0)
            return &att_known_classes_all[i];
    return NULL;
}

const char *att_synset_label(const char *synset)
{
    for (int i = 0; i < att_known_classes_number; i++) {
        const att_known_classes *known = &att_known_classes_all[i];
        for (int c = 0; known->synsets && c < known->count; c++)
            if (strcmp(known->synsets[c], synset) == 0)
                return known->labels[c];
    }
    return NULL;
}
