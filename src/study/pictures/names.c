#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <attscope/picture.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"

struct att_picture_names {
    att_context *context;
    att_arena arena;
    const char **taken; /* sorted */
    int count, room;
};

att_status att_picture_names_create(att_context *context, att_picture_names **out)
{
    att_picture_names *names;
    ATT_TRY(att_new(context, &names, 1, "the names of pictures"));
    names->context = names->arena.context = context;
    *out = names;
    return ATT_OK;
}

void att_picture_names_destroy(att_picture_names **out)
{
    if (!out || !*out)
        return;
    att_picture_names *names = *out;
    att_arena_free(&names->arena);
    att_free(names->context, names->taken);
    att_free(names->context, names);
    *out = NULL;
}

/* The place of the name among those that are taken, or where it belongs. */
static int place_of(const att_picture_names *names, const char *name, bool *is_taken)
{
    int low = 0, high = names->count;
    *is_taken = false;
    while (low < high && !*is_taken) {
        const int middle = low + (high - low) / 2, order = strcasecmp(name, names->taken[middle]);
        *is_taken = order == 0;
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return low;
}

/* The length of the name without the ending of an image. */
static int stem_of(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t end = strlen(endings[i]);
        if (length > end && strcasecmp(name + length - end, endings[i]) == 0)
            return (int)(length - end);
    }
    return (int)length;
}

/* Writes the first form of the name that is free, and its place. */
static void find_free(const att_picture_names *names, const char *last, att_text *text, int *place)
{
    bool is_taken = true;
    for (int i = 1; is_taken && !text->failed; i++) {
        text->length = 0;
        att_text_append(text, "%.*s", stem_of(last), last);
        if (i > 1)
            att_text_append(text, "-%d", i);
        if (!text->failed)
            *place = place_of(names, text->data, &is_taken);
    }
}

att_status att_picture_names_take(att_picture_names *names, const char *photograph, const char **name)
{
    const char *slash = strrchr(photograph, '/');
    att_text text = {.context = names->context};
    int place = 0;
    find_free(names, slash ? slash + 1 : photograph, &text, &place);
    const char *kept = text.failed ? NULL : att_arena_string(&names->arena, text.data);
    att_text_free(&text);
    if (!kept || !att_list_grow(names->context, &names->taken, names->count, &names->room, sizeof *names->taken))
        return att_fail_memory(names->context, strlen(photograph), "the names of pictures");
    memmove(names->taken + place + 1, names->taken + place, (size_t)(names->count++ - place) * sizeof *names->taken);
    names->taken[place] = *name = kept;
    return ATT_OK;
}
