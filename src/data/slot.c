#include "data/slot.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"

att_status att_slot_make(att_context *context, int batch_size, size_t image_floats, int classes, att_slot *slot)
{
    size_t count = (size_t)batch_size, floats = count * image_floats;
    *slot = (att_slot){.context = context,
                       .batch_size = batch_size,
                       .image_floats = image_floats,
                       .images = att_allocate_array(context, floats, sizeof *slot->images),
                       .labels = att_allocate_array(context, count, sizeof *slot->labels),
                       .indices = att_allocate_array(context, count, sizeof *slot->indices),
                       .failures = att_allocate_array(context, count, sizeof *slot->failures)};
    if (classes > 0)
        slot->targets = att_allocate_array(context, att_size_product(count, (size_t)classes), sizeof *slot->targets);
    if ((classes > 0 && !slot->targets) || !slot->images || !slot->labels || !slot->indices || !slot->failures)
        return att_fail_memory(context, floats * sizeof *slot->images, "a batch of images");
    return ATT_OK;
}

static void forget_failures(att_slot *slot)
{
    for (int i = 0; slot->failures && i < slot->batch_size; i++) {
        att_free(slot->context, slot->failures[i].reason);
        slot->failures[i] = (att_slot_failure){0};
    }
}

void att_slot_ready(att_slot *slot, int missing)
{
    forget_failures(slot);
    slot->missing = missing;
}

void att_slot_free(att_slot *slot)
{
    if (!slot->context)
        return;
    forget_failures(slot);
    att_free(slot->context, slot->images);
    att_free(slot->context, slot->labels);
    att_free(slot->context, slot->targets);
    att_free(slot->context, slot->indices);
    att_free(slot->context, slot->failures);
}

const char *att_slot_reason(const att_slot_failure *failure)
{
    return failure->reason ? failure->reason : "an image could not be read";
}

int att_slot_failed(const att_slot *slot, int size)
{
    int failed = 0;
    for (int i = 0; i < size; i++)
        failed += slot->failures[i].status != ATT_OK;
    return failed;
}

static void move_image(att_slot *slot, int from, int to)
{
    if (from == to)
        return;
    size_t floats = slot->image_floats;
    memcpy(slot->images + (size_t)to * floats, slot->images + (size_t)from * floats, floats * sizeof *slot->images);
    slot->labels[to] = slot->labels[from];
    slot->indices[to] = slot->indices[from];
}

int att_slot_close_gaps(att_slot *slot, int size)
{
    int kept = 0;
    for (int i = 0; i < size; i++)
        if (slot->failures[i].status == ATT_OK || slot->failures[i].replaced)
            move_image(slot, i, kept++);
    return kept;
}
