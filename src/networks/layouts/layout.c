#include "networks/layouts/layout.h"

#include <stdio.h>
#include <string.h>

#include "networks/layouts/list.h"
#include "networks/layouts/pattern.h"
#include "networks/models/checkpoint.h"

#define DECLARE(name) extern const att_layout att_layout_##name;
ATT_LAYOUT_LIST(DECLARE)

#define POINT(name) &att_layout_##name,
static const att_layout *const layouts[] = {ATT_LAYOUT_LIST(POINT)};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

const att_layout *att_layout_at(int index)
{
    return index < LAYOUTS ? layouts[index] : NULL;
}

const att_layout *att_layout_of_type(const char *type)
{
    for (int i = 0; i < LAYOUTS; i++)
        if (layouts[i]->types && att_checkpoint_lists(layouts[i]->types, type))
            return layouts[i];
    return NULL;
}

const char *att_layout_bare(const att_layout *layout, const char *name)
{
    for (const char *at = layout->prefixes; *at;) {
        const size_t length = strcspn(at, " ");
        if (strncmp(name, at, length) == 0)
            return name + length;
        at += length + strspn(at + length, " ");
    }
    return name;
}

static int find(const att_layout *layout, const att_tensors *file, const char *name)
{
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *whole = att_tensors_at(file, i).name;
        if (strcmp(whole, name) == 0 || strcmp(att_layout_bare(layout, whole), name) == 0)
            return i;
    }
    return -1;
}

int att_layout_find(const att_layout *layout, const att_tensors *file, const char *name)
{
    int index = find(layout, file, name);
    for (int i = 0; index < 0 && i < layout->row_count; i++) {
        const att_layout_row *row = &layout->rows[i];
        att_captured found;
        char other[ATT_PATTERN_NAME];
        if (!row->also || !att_pattern_matches(row->from, name, &found))
            continue;
        att_pattern_name(row->also, &found, other);
        index = find(layout, file, other);
    }
    return index;
}

bool att_layout_fits(const att_layout *layout, const att_tensors *file)
{
    char name[ATT_PATTERN_NAME];
    for (const char *at = layout->signature; *at; at += strspn(at, " ")) {
        const bool lacks = *at == '!';
        const int length = (int)strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", length - lacks, at + lacks);
        if ((att_layout_find(layout, file, name) < 0) != lacks)
            return false;
        at += length;
    }
    return true;
}

const att_layout *att_layout_of_tensors(const att_tensors *file)
{
    for (int i = 0; i < LAYOUTS; i++)
        if (!layouts[i]->types && layouts[i]->signature && att_layout_fits(layouts[i], file))
            return layouts[i];
    return NULL;
}
