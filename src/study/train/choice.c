#include "study/train/choice.h"

#include <string.h>

#include "base/core/names.h"
#include "base/core/text.h"

typedef struct choice_list {
    att_choice (*at)(int);
} choice_list;

static const char *name_at(const void *user, int index)
{
    return ((const choice_list *)user)->at(index).name;
}

att_status att_choice_find(att_context *context, const char *what, const char *name, att_choice (*at)(int), int count,
                           int *index)
{
    if (!name)
        return att_fail(context, ATT_ERR_ARGUMENT, "no %s was given", what);
    for (int i = 0; i < count; i++) {
        if (strcmp(at(i).name, name) == 0) {
            *index = i;
            return ATT_OK;
        }
    }
    const char *nearest = att_text_nearest(name, name_at, &(choice_list){at}, count);
    if (nearest)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no %s \"%s\"; did you mean \"%s\"?", what, name, nearest);
    att_text names = {.context = context};
    for (int i = 0; i < count; i++)
        att_text_append(&names, "%s%s", i ? ", " : "", at(i).name);
    att_status status = names.failed ? att_fail_memory(context, names.length, "the list of names")
                                     : att_fail(context, ATT_ERR_NOT_FOUND, "there is no %s \"%s\"; available: %s",
                                                what, name, names.data);
    att_text_free(&names);
    return status;
}
