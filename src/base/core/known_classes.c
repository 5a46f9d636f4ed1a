#include "base/core/names.h"

#include <string.h>

/* The texts have "n01440764", a NUL, and the label; without synsets, the label alone. */
enum { SYNSET_BYTES = sizeof "n01440764" };

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

static const char *text_of(const att_known_classes *known, int number)
{
    return (const char *)known->texts + known->places[known->of ? known->of[number] : number];
}

const char *att_known_classes_label(const att_known_classes *known, int number)
{
    return text_of(known, number) + (known->has_synsets ? SYNSET_BYTES : 0);
}

const char *att_known_classes_synset(const att_known_classes *known, int number)
{
    return known->has_synsets ? text_of(known, number) : NULL;
}

int att_known_classes_with_synset(const att_known_classes *known, const char *synset)
{
    int low = 0, high = known->has_synsets ? known->count : 0;
    while (low < high) {
        const int middle = (low + high) / 2, order = strcmp(text_of(known, middle), synset);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* The lists are in the order of their names, so ImageNet-1k comes before ImageNet-21k. */
const char *att_synset_label(const char *synset)
{
    for (int i = 0; i < att_known_classes_number && *synset == 'n'; i++) {
        const int number = att_known_classes_with_synset(&att_known_classes_all[i], synset);
        if (number >= 0)
            return att_known_classes_label(&att_known_classes_all[i], number);
    }
    return NULL;
}
