/* data/share.h - which samples of a batch this process makes, and what it learns of those of others. */
#ifndef ATT_DATA_SHARE_H
#define ATT_DATA_SHARE_H

#include <attscope/comm.h>
#include <attscope/data.h>

/* Rows of a batch: [first, end) are this process's. [more_first, more_end) are those that it also makes because they
 * are mixed with its own ones: sample i is mixed with sample size - 1 - i. */
typedef struct att_share {
    int size; /* of the batch of all processes */
    int first, end, more_first, more_end;
} att_share;

att_share att_share_of(const att_comm *comm, int batch_size, bool mixes);
/* Samples that this process makes. */
int att_share_count(const att_share *share);
/* Row of the batch of sample number `made`, 0..count - 1; this process's own rows come first. */
int att_share_row(const att_share *share, int made);
/* The other way round; -1 for a row that this process does not make. */
int att_share_find(const att_share *share, int row);

#endif
