/* measure/list.h - all built-in instruments, one line each, in the order in which figures are shown. */
#ifndef ATT_MEASURE_LIST_H
#define ATT_MEASURE_LIST_H

#include "core/catalog.h"
#include "measure/instrument.h"

#define ATT_INSTRUMENT_LIST(X) \
    X(accuracy)                \
    X(entropy)                 \
    X(distance)                \
    X(jacobian)                \
    X(head_shape)              \
    X(score_terms)             \
    X(nsi)                     \
    X(tns)                     \
    X(gate)                    \
    X(stiffness_index)         \
    X(skip_block)              \
    X(block_pruning)           \
    X(residual)                \
    X(collapse)                \
    X(skip_weight)             \
    X(paths)                   \
    X(path_samples)            \
    X(head_chains)

#define ATT_INSTRUMENT_DECLARE(name) extern const att_instrument att_instrument_##name;
ATT_INSTRUMENT_LIST(ATT_INSTRUMENT_DECLARE)
#undef ATT_INSTRUMENT_DECLARE

extern const att_catalog att_instruments;

#endif
