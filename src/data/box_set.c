#include "data/box_set.h"

#include <math.h>

#include "base/core/error.h"

void att_box_set_free(att_box_set *set)
{
    att_context *context = set->arena.context;
    att_free(context, set->photographs);
    att_free(context, set->boxes);
    att_arena_free(&set->arena);
    *set = (att_box_set){.arena = {.context = context}};
}

/* Reads the size of a photograph from its headers; 0 x 0 if they cannot be read. */
static att_status look(att_box_set *set, att_boxed_photograph *photograph)
{
    att_image_look seen = {0};
    const att_image_need need = {.look = &seen};
    att_image image = {0};
    att_status status = att_image_read_needed(set->arena.context, photograph->path, 3, set->limits, &need, &image);
    if (status == ATT_OK) {
        photograph->width = image.pixels ? image.width : seen.width;
        photograph->height = image.pixels ? image.height : seen.height;
    }
    att_image_free(set->arena.context, &image);
    return status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED ? ATT_OK : status;
}

att_status att_box_set_photograph(att_box_set *set, const char *path, int64_t id, int width, int height)
{
    att_context *context = set->arena.context;
    att_boxed_photograph added = {.path = path, .id = id, .first = set->box_count};
    ATT_TRY(att_check_stop(context, set->place.root));
    added.sized = width > 0 && height > 0;
    if (added.sized) {
        added.width = width;
        added.height = height;
    } else {
        ATT_TRY(look(set, &added));
    }
    if (!att_list_grow(context, &set->photographs, set->count, &set->room, sizeof added))
        return att_fail_memory(context, sizeof added, "the list of images");
    set->photographs[set->count++] = added;
    return ATT_OK;
}

static void remark(att_box_set *set, int kind, const char *file, const att_true_box *box)
{
    att_box_remark *of = &set->remarks[kind];
    if (of->count++ == 0) {
        of->file = file;
        of->id = box->id;
    }
}

att_status att_box_set_add(att_box_set *set, const char *file, const att_true_box *box)
{
    att_context *context = set->arena.context;
    att_boxed_photograph *photograph = &set->photographs[set->count - 1];
    const double right = box->x + box->width - photograph->width, low = box->y + box->height - photograph->height;
    if (photograph->width == 0)
        return ATT_OK;
    if (!(box->width > 0 && box->height > 0)) {
        remark(set, ATT_BOX_EMPTY, file, box);
        return ATT_OK;
    }
    if (right >= box->width || low >= box->height || -box->x >= box->width || -box->y >= box->height) {
        remark(set, ATT_BOX_OUTSIDE, file, box);
        return ATT_OK;
    }
    if (fmax(fmax(right, low), fmax(-box->x, -box->y)) > 1)
        remark(set, ATT_BOX_REACHES_OUT, file, box);
    if (!att_list_grow(context, &set->boxes, set->box_count, &set->box_room, sizeof *box))
        return att_fail_memory(context, sizeof *box, "the boxes of a data set");
    set->boxes[set->box_count++] = *box;
    photograph->count++;
    return ATT_OK;
}

void att_box_set_warn(const att_box_set *set, const char *unit)
{
    static const char *const texts[ATT_BOX_REMARKS][2] = {
        [ATT_BOX_EMPTY] = {"box without an extent is left out", "boxes without an extent are left out"},
        [ATT_BOX_OUTSIDE] = {"box outside of its photograph is left out",
                             "boxes outside of their photographs are left out"},
        [ATT_BOX_REACHES_OUT] = {"box reaches out of its photograph; a training run cuts it off at the border",
                                 "boxes reach out of their photographs; a training run cuts them off at the border"}};
    for (int kind = 0; kind < ATT_BOX_REMARKS; kind++) {
        const att_box_remark *of = &set->remarks[kind];
        if (of->count > 0)
            att_log(set->arena.context, ATT_LOG_WARNING, "%s: %lld %s; the first is %s %lld of %s", set->place.root,
                    (long long)of->count, texts[kind][of->count > 1], unit, (long long)of->id, of->file);
    }
}
