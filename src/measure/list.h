/* measure/list.h - every instrument: one line each, in the order in which figures are shown. */
#ifndef ATT_MEASURE_LIST_H
#define ATT_MEASURE_LIST_H

#include "measure/instrument.h"

#define ATT_INSTRUMENT_LIST(X) \
    X(accuracy)                \
    X(entropy)                 \
    X(distance)                \
    X(jacobian)                \
    X(nsi)                     \
    X(tns)                     \
    X(gate)                    \
    X(residual)

#define ATT_INSTRUMENT_DECLARE(name) extern const att_instrument att_instrument_##name;
ATT_INSTRUMENT_LIST(ATT_INSTRUMENT_DECLARE)
#undef ATT_INSTRUMENT_DECLARE

/* NULL-terminated. */
extern const att_instrument *const att_instruments[];

/* As att_measure_create(), but with other instruments than those of the list above: NULL-terminated too. */
att_status att_measure_create_from(const att_instrument *const *instruments, att_graph *graph, const char *with,
                                   const char *nodes, att_measure **measure);

#endif
