#include "report/thin.h"

#include "core/error.h"
#include "core/memory.h"

static void halve(att_thin *thin)
{
    int kept = 0;
    for (int i = 0; i < thin->count; i++) {
        if (i % 2 == 0)
            thin->records[kept++] = thin->records[i];
        else
            thin->release(thin->context, thin->records[i]);
    }
    thin->count = kept;
    thin->stride *= 2;
}

att_status att_thin_add(att_thin *thin, void *record)
{
    if (thin->records == NULL) {
        thin->records = att_allocate_array(thin->context, (size_t)thin->most + 1, sizeof(*thin->records));
        thin->stride = 1;
    }
    if (thin->records == NULL) {
        thin->release(thin->context, record);
        return att_fail_memory(thin->context, ((size_t)thin->most + 1) * sizeof(*thin->records), "a run's records");
    }
    if (thin->last_extra)
        thin->release(thin->context, thin->records[--thin->count]);
    if (thin->count == thin->most)
        halve(thin);
    thin->last_extra = thin->seen++ % thin->stride != 0;
    thin->records[thin->count++] = record;
    return ATT_OK;
}

void att_thin_free(att_thin *thin)
{
    for (int i = 0; i < thin->count; i++)
        thin->release(thin->context, thin->records[i]);
    att_free(thin->context, thin->records);
    thin->records = NULL;
    thin->count = 0;
    thin->seen = 0;
    thin->last_extra = false;
}
