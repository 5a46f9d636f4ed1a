/* report/downsample.h - a bounded choice of a long row of records: every stride-th, and the last. */
#ifndef ATT_REPORT_DOWNSAMPLE_H
#define ATT_REPORT_DOWNSAMPLE_H

#include <attscope/context.h>

/* Zero-initialise, then set the first three. */
typedef struct att_downsampled {
    att_context *context;
    int most; /* records kept, the last not counted; even */
    void (*release)(att_context *context, void *record);
    void **records; /* number 0, stride, 2 stride ... of those that came, then the last where it is none of these */
    int count;
    int64_t stride, seen;
    bool last_extra; /* the last of `records` is there only because it is the last */
} att_downsampled;

/* Takes `record` over, whatever comes back. ERR_MEMORY. */
att_status att_downsampled_add(att_downsampled *rows, void *record);
/* Empties it. */
void att_downsampled_free(att_downsampled *rows);

#endif
