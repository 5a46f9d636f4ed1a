/* measure/list.h - all built-in instruments, one line each, in the order in which figures are shown. */
#ifndef ATT_MEASURE_LIST_H
#define ATT_MEASURE_LIST_H

#include "base/core/catalog.h"
#include "study/measure/instrument.h"

#define ATT_INSTRUMENT_LIST(X) \
    X(accuracy)                \
    X(entropy)                 \
    X(distance)                \
    X(density)                 \
    X(jacobian)                \
    X(jacobian_spectral)       \
    X(entropy_step)            \
    X(score_gradient)          \
    X(head_shape)              \
    X(head_types)              \
    X(score_terms)             \
    X(score_weights)           \
    X(nsi)                     \
    X(sai)                     \
    X(tns)                     \
    X(tns_blocks)              \
    X(tns_classes)             \
    X(stiff_surface)           \
    X(gate)                    \
    X(gate_stiffness)          \
    X(cbs_scale)               \
    X(stiffness_index)         \
    X(skip_block)              \
    X(block_pruning)           \
    X(residual)                \
    X(similarity)              \
    X(rank)                    \
    X(collapse)                \
    X(skip_weight)             \
    X(paths)                   \
    X(path_samples)            \
    X(head_chains)             \
    X(rollout)                 \
    X(flow)

#define ATT_INSTRUMENT_DECLARE(name) extern const att_instrument att_instrument_##name;
ATT_INSTRUMENT_LIST(ATT_INSTRUMENT_DECLARE)
#undef ATT_INSTRUMENT_DECLARE

extern const att_catalog att_instruments;

#endif
