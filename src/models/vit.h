/* models/vit.h - what the files of the ViT family share. */
#ifndef ATT_MODELS_VIT_H
#define ATT_MODELS_VIT_H

#include "models/family.h"

/* Channels inside the MLP: embed_dim mlp_ratio, rounded down. */
int64_t att_vit_hidden(const att_model_options *options);
/* att_family.recognise */
att_status att_vit_recognise(att_context *context, const att_tensors *file, att_model_options *found);
/* att_family.regrids: the position embedding. */
bool att_vit_regrids(const att_model_options *options, const char *name, att_shape file, att_shape own,
                     att_regrid *grid);
/* att_family.is_added */
bool att_vit_is_added(const char *name);

#endif
