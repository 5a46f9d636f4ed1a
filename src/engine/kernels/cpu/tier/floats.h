/* kernels/cpu/tier/floats.h - loads and stores vectors of elements that are f32 or bf16, chosen by `is_bf16` as in
 * kernels/cpu/floats.h.
 *
 * A kernel is one inlined function of such flags. It is called with constant flags for the combinations that occur in
 * networks, which compiles fast code, and with variable flags for all others.
 */
#ifndef ATT_KERNELS_CPU_TIER_FLOATS_H
#define ATT_KERNELS_CPU_TIER_FLOATS_H

#include "engine/kernels/cpu/floats.h"

/* Elements [i, i + VW). */
ATT_INLINE vf v_get(const void *x, int64_t i, bool is_bf16)
{
    return is_bf16 ? v_load_bf16((const bf16 *)x + i) : v_load((const float *)x + i);
}

ATT_INLINE void v_put(void *y, int64_t i, vf value, bool is_bf16)
{
    if (is_bf16)
        v_store_bf16((bf16 *)y + i, value);
    else
        v_store((float *)y + i, value);
}

/* Elements [i, i + 2 VW). */
ATT_INLINE void v_put_pair(void *y, int64_t i, vf a, vf b, bool is_bf16)
{
    if (is_bf16) {
        v_store_bf16_pair((bf16 *)y + i, a, b);
        return;
    }
    v_store((float *)y + i, a);
    v_store((float *)y + i + VW, b);
}

/* Elements [i, i + count), count 1..VW; 0 in the other lanes. */
ATT_INLINE vf v_get_part(const void *x, int64_t i, int64_t count, bool is_bf16)
{
    return is_bf16 ? v_load_bf16_part((const bf16 *)x + i, count) : v_load_part((const float *)x + i, count);
}

ATT_INLINE void v_put_part(void *y, int64_t i, vf value, int64_t count, bool is_bf16)
{
    if (!is_bf16) {
        v_store_part((float *)y + i, value, count);
        return;
    }
    bf16 lane[VW];
    v_store_bf16(lane, value);
    memcpy((bf16 *)y + i, lane, (size_t)count * sizeof *lane);
}

/* Elements [i, i + VW); 0 in place of those from `end` on. */
ATT_INLINE vf v_get_until(const void *x, int64_t i, int64_t end, bool is_bf16)
{
    return end - i >= VW ? v_get(x, i, is_bf16) : v_get_part(x, i, end - i, is_bf16);
}

ATT_INLINE void v_put_until(void *y, int64_t i, int64_t end, vf value, bool is_bf16)
{
    if (end - i >= VW)
        v_put(y, i, value, is_bf16);
    else
        v_put_part(y, i, value, end - i, is_bf16);
}

/* Runs a function of flags with the types of values: constant flags if all of them are f32, or all bf16. */
ATT_INLINE att_status run_for_type(const att_call *call, void (*run)(const att_call *call, bool is_bf16),
                                   const att_desc *value)
{
    if (att_is_bf16(value))
        run(call, true);
    else
        run(call, false);
    return ATT_OK;
}

ATT_INLINE att_status run_for_types(const att_call *call,
                                    void (*run)(const att_call *call, bool a_is_bf16, bool b_is_bf16),
                                    const att_desc *a, const att_desc *b)
{
    if (att_is_bf16(a) && att_is_bf16(b))
        run(call, true, true);
    else if (!att_is_bf16(a) && !att_is_bf16(b))
        run(call, false, false);
    else
        run(call, att_is_bf16(a), att_is_bf16(b));
    return ATT_OK;
}

#endif
