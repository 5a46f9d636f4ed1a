/* data/agreement.h - what the loaders of several processes tell each other about a batch. */
#ifndef ATT_DATA_AGREEMENT_H
#define ATT_DATA_AGREEMENT_H

#include <attscope/data.h>

#include "data/slot.h"

typedef struct att_agreement att_agreement;

/* target_bytes: the most of a sample, by target. */
att_status att_agreement_create(att_context *context, const att_loader_options *options, const size_t *target_bytes,
                                att_agreement **agreement);
void att_agreement_destroy(att_agreement **agreement);

/* status: how this process's share of the batch ended. Fails if it did, and if that of another process did. Sets
 * *failures to those among the first `rows` samples of every process, in order of the batch; valid until the next
 * call. */
att_status att_agreement_reach(att_agreement *agreement, att_status status, const att_slot *slot, int rows,
                               const att_slot_failure **failures, int *count);

/* After att_agreement_reach(). The batch has this process's rows. Gives it the indices and targets of all processes,
 * its count and first_row; valid until the next call. */
att_status att_agreement_gather(att_agreement *agreement, const att_slot *slot, att_batch *batch);

#endif
