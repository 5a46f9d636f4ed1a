#include "data/slot.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"

static att_status make_fields(att_slot *slot)
{
    ATT_TRY(att_new(slot->context, &slot->fields, (size_t)slot->field_count, "a batch"));
    for (int f = 0; f < slot->field_count; f++) {
        size_t bytes = att_size_product((size_t)slot->batch_size, slot->row_bytes[f]);
        slot->fields[f] = att_allocate(slot->context, bytes);
        if (!slot->fields[f])
            return att_fail_memory(slot->context, bytes, "a batch of images");
    }
    return ATT_OK;
}

att_status att_slot_make(att_context *context, int batch_size, const size_t *row_bytes, int field_count, att_slot *slot)
{
    size_t count = (size_t)batch_size;
    *slot = (att_slot){.context = context,
                       .batch_size = batch_size,
                       .field_count = field_count,
                       .row_bytes = row_bytes,
                       .indices = att_allocate_array(context, count, sizeof *slot->indices),
                       .failures = att_allocate_array(context, count, sizeof *slot->failures)};
    if (!slot->indices || !slot->failures)
        return att_fail_memory(context, count * sizeof *slot->failures, "a batch of images");
    return make_fields(slot);
}

void *att_slot_row(const att_slot *slot, int field, int sample)
{
    return (char *)slot->fields[field] + (size_t)sample * slot->row_bytes[field];
}

static void clear_failures(att_slot *slot)
{
    for (int i = 0; slot->failures && i < slot->batch_size; i++) {
        att_free(slot->context, slot->failures[i].reason);
        slot->failures[i] = (att_slot_failure){0};
    }
}

void att_slot_reset(att_slot *slot, int missing)
{
    clear_failures(slot);
    slot->missing = missing;
}

void att_slot_free(att_slot *slot)
{
    if (!slot->context)
        return;
    clear_failures(slot);
    for (int f = 0; slot->fields && f < slot->field_count; f++)
        att_free(slot->context, slot->fields[f]);
    att_free(slot->context, slot->fields);
    att_free(slot->context, slot->indices);
    att_free(slot->context, slot->failures);
}

const char *att_slot_reason(const att_slot_failure *failure)
{
    if (failure->reason)
        return failure->reason;
    return failure->status == ATT_ERR_MEMORY ? "out of memory while an image was read"
                                             : "an image could not be read, and there was no memory for the reason";
}

int att_slot_failed(const att_slot *slot, int size)
{
    int failed = 0;
    for (int i = 0; i < size; i++)
        failed += slot->failures[i].status != ATT_OK;
    return failed;
}

static void move_sample(att_slot *slot, int from, int to)
{
    if (from == to)
        return;
    for (int f = 0; f < slot->field_count; f++)
        memcpy(att_slot_row(slot, f, to), att_slot_row(slot, f, from), slot->row_bytes[f]);
    slot->indices[to] = slot->indices[from];
}

int att_slot_compact(att_slot *slot, int size)
{
    int kept = 0;
    for (int i = 0; i < size; i++)
        if (slot->failures[i].status == ATT_OK || slot->failures[i].replaced)
            move_sample(slot, i, kept++);
    return kept;
}
