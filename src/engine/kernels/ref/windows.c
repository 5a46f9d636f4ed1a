#include "engine/ops/windows.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Index in the map of element `e` of the windows, counted over all samples. */
static int64_t map_element(const att_call *call, const int64_t *map, int64_t e)
{
    int64_t pixels = map[0] * map[1], row = e / map[2];
    int64_t pixel = att_windows_pixel(call->problem->attrs, map[0], map[1], row % pixels);
    return (row / pixels * pixels + pixel) * map[2] + e % map[2];
}

static att_status run_windows(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, map_element(call, call->problem->in[0].shape.dims, e)));
    return ATT_OK;
}

const att_kernel att_ref_windows = {.op = "windows", .name = "ref", .run = run_windows};

static att_status run_back(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, map_element(call, call->problem->out[0].shape.dims, e), ref_in(call, 0, e));
    return ATT_OK;
}

const att_kernel att_ref_windows_back = {.op = "windows_back", .name = "ref", .run = run_back};
