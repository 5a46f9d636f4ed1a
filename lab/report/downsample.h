/* report/downsample.h - keeps a bounded sample of a long sequence of records: every stride-th record, and the last. */
#ifndef ATT_REPORT_DOWNSAMPLE_H
#define ATT_REPORT_DOWNSAMPLE_H

#include <attscope/context.h>

/* Zero-initialise, then set the first three members. */
typedef struct att_downsampled {
    att_context *context;
    int capacity; /* largest number of records kept, not counting the last record; even */
    void (*release)(att_context *context, void *record);
    void **records; /* the added records number 0, stride, 2 stride, ..., and the last record */
    int count;
    int64_t stride, seen;
    bool last_extra; /* the number of the last record is not a multiple of `stride` */
} att_downsampled;

/* Adds a record. Takes ownership of `record`, also on failure. Errors: ERR_MEMORY. */
att_status att_downsampled_add(att_downsampled *rows, void *record);
/* Releases all records. */
void att_downsampled_free(att_downsampled *rows);

#endif
