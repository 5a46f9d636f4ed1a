/* update/update.h - memory that an update needs. */
#ifndef ATT_UPDATE_UPDATE_H
#define ATT_UPDATE_UPDATE_H

#include <attscope/update.h>

#include "engine/weights/gradient.h"

/* Bytes of the slots that creating the update would add to the weights. */
size_t att_update_bytes(const att_weights *weights, const att_update_options *options);

/* Returns the rates that the parameter's declaration implies: lr 1; weight_decay 1 if `decay` is set, else 0. */
ATT_FOR_LAB att_parameter_rates att_parameter_rates_defaults(const att_parameter_info *parameter);

/* As att_session_profile() and its companions, for the kernels of reductions and updates. */
ATT_FOR_LAB att_status att_update_profile(att_update *update, bool on);
ATT_FOR_LAB int att_update_profile_count(const att_update *update);
ATT_FOR_LAB att_profile_row att_update_profile_at(const att_update *update, int index);

#endif
