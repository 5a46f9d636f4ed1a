#include "ops/drop.h"
#include "core/random.h"
#include "kernels/ref/call.h"
#include "kernels/ref/list.h"

/* Factor from draw `index` of a sample: 0 if dropped, else 1 / (1 - rate). */
static double factor(const att_call *call, int64_t sample, int64_t index)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    uint64_t key = att_random_key(call->run->seed, (uint64_t)call->run->step, attrs->stream);
    att_philox block = att_philox_block(key, (uint64_t)(call->position + sample), (uint64_t)index / 4);
    double uniform = block.word[index % 4] * 0x1p-32;
    return uniform >= attrs->rate ? 1 / (1 - attrs->rate) : 0;
}

/* whole: the sample's draw 0 decides for all elements. */
static att_status run(const att_call *call, bool whole)
{
    int64_t count = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double kept = factor(call, e / count, whole ? 0 : e % count);
        ref_out(call, 0, e, kept == 0 ? 0 : kept * ref_in(call, 0, e));
    }
    return ATT_OK;
}

static att_status run_dropout(const att_call *call)
{
    return run(call, false);
}

static att_status run_drop_path(const att_call *call)
{
    return run(call, true);
}

const att_kernel att_ref_dropout = {.op = "dropout", .name = "ref", .run = run_dropout};
const att_kernel att_ref_drop_path = {.op = "drop_path", .name = "ref", .run = run_drop_path};
