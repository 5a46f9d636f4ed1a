#include "base/core/error.h"
#include "engine/weights/weights.h"

void att_weights_set_source(att_weights *weights, att_weights_make_fn make, void *user)
{
    att_block *block = &weights->own;
    block->owner = weights;
    block->make = make;
    block->make_user = user;
    block->made = block->version;
}

bool att_weights_has_source(const att_weights *weights)
{
    return weights->own.make != NULL;
}

static bool can_be_made(const att_weights *weights, const att_block *block)
{
    return weights->memory == &att_host_memory && !block->kept && block->make && block->made == block->version;
}

void att_weights_keep(att_weights *weights)
{
    for (int i = 0; i < weights->block_count; i++)
        weights->blocks[i]->kept = true;
}

/* Values that were needed again are not given back a second time: sessions that take turns would make them for every
 * run. */
static att_status complete(att_block *block)
{
    const void *by = block->given_back_by;
    const uint64_t version = block->version;
    block->given_back_by = NULL;
    block->kept = true;
    att_status status = block->make(block->make_user, block->owner);
    block->version = version;
    if (status != ATT_OK)
        block->given_back_by = by;
    return status;
}

att_status att_weights_complete(const att_weights *weights)
{
    for (int i = 0; i < weights->block_count; i++)
        if (weights->blocks[i]->given_back_by)
            ATT_TRY(complete(weights->blocks[i]));
    return ATT_OK;
}

void att_weights_give_back(const att_weights *weights, const void *by)
{
    for (int i = 0; i < weights->block_count; i++)
        if (can_be_made(weights, weights->blocks[i]))
            weights->blocks[i]->given_back_by = by;
}

bool att_weights_given_back(const att_weights *weights, int index, const void *by)
{
    return weights->blocks[weights->places[index].block]->given_back_by == by;
}

bool att_weights_lack(const att_weights *weights, const void *reader)
{
    for (int i = 0; i < weights->block_count; i++)
        if (weights->blocks[i]->given_back_by && weights->blocks[i]->given_back_by != reader)
            return true;
    return false;
}
