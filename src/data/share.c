#include "data/share.h"

static int first_row(const att_comm *comm, int batch_size, int rank)
{
    return (int)((int64_t)batch_size * rank / att_comm_size(comm));
}

att_share att_share_of(const att_comm *comm, int batch_size, bool mixes)
{
    int rank = att_comm_rank(comm);
    att_share share = {
        .size = batch_size, .first = first_row(comm, batch_size, rank), .end = first_row(comm, batch_size, rank + 1)};
    /* Partners form a range of the same length, so at most one end of it lies outside of the own range. */
    int partners = batch_size - share.end, partners_end = batch_size - share.first;
    if (mixes && partners < share.first) {
        share.more_first = partners;
        share.more_end = partners_end < share.first ? partners_end : share.first;
    } else if (mixes && partners_end > share.end) {
        share.more_first = partners > share.end ? partners : share.end;
        share.more_end = partners_end;
    }
    return share;
}

int att_share_count(const att_share *share)
{
    return share->end - share->first + share->more_end - share->more_first;
}

int att_share_row(const att_share *share, int made)
{
    int own = share->end - share->first;
    return made < own ? share->first + made : share->more_first + made - own;
}

int att_share_find(const att_share *share, int row)
{
    if (row >= share->first && row < share->end)
        return row - share->first;
    if (row >= share->more_first && row < share->more_end)
        return share->end - share->first + row - share->more_first;
    return -1;
}
