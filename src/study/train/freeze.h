/* train/freeze.h - parameters that a training run leaves as they are, chosen by patterns of their names. */
#ifndef ATT_TRAIN_FREEZE_H
#define ATT_TRAIN_FREEZE_H

#include <attscope/models.h>
#include <attscope/update.h>

#include "base/core/export.h"

/* Sets the flag `frozen` of the parameters and buffers that match one of the patterns, which commas separate. rates:
 * one for each parameter of the model, in the order of att_weights_at(). Errors: ERR_ARGUMENT if a pattern matches
 * nothing, with the nearest name; if every parameter is frozen then; ERR_MEMORY. */
ATT_FOR_LAB att_status att_freeze_apply(att_context *context, const att_model *model, const char *patterns,
                                        att_parameter_rates *rates);
/* Returns how many parameters are frozen, without buffers. buffers: sets the flag of every buffer of a frozen part
 * (att_graph_freeze()), whose batch norm does not change it. */
ATT_FOR_LAB int att_freeze_count(const att_model *model, bool buffers, bool *frozen);

#endif
