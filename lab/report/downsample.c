#include "lab/report/downsample.h"

#include "base/core/error.h"
#include "base/core/memory.h"

static void halve(att_downsampled *rows)
{
    int kept = 0;
    for (int i = 0; i < rows->count; i++) {
        if (i % 2 == 0)
            rows->records[kept++] = rows->records[i];
        else
            rows->release(rows->context, rows->records[i]);
    }
    rows->count = kept;
    rows->stride *= 2;
}

att_status att_downsampled_add(att_downsampled *rows, void *record)
{
    if (rows->records == NULL) {
        rows->records = att_allocate_array(rows->context, (size_t)rows->capacity + 1, sizeof(*rows->records));
        rows->stride = 1;
    }
    if (rows->records == NULL) {
        rows->release(rows->context, record);
        return att_fail_memory(rows->context, ((size_t)rows->capacity + 1) * sizeof(*rows->records), "a run's records");
    }
    if (rows->last_extra)
        rows->release(rows->context, rows->records[--rows->count]);
    if (rows->count == rows->capacity)
        halve(rows);
    rows->last_extra = rows->seen++ % rows->stride != 0;
    rows->records[rows->count++] = record;
    return ATT_OK;
}

void att_downsampled_free(att_downsampled *rows)
{
    for (int i = 0; i < rows->count; i++)
        rows->release(rows->context, rows->records[i]);
    att_free(rows->context, rows->records);
    rows->records = NULL;
    rows->count = 0;
    rows->seen = 0;
    rows->last_extra = false;
}
