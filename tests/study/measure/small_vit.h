/* measure/small_vit.h - for tests of instruments: a ViT with three blocks for images of 16 x 16 pixels. */
#ifndef TESTS_MEASURE_SMALL_VIT_H
#define TESTS_MEASURE_SMALL_VIT_H

#include "networks/models/loss.h"
#include "study/measure/run.h"

enum { SIZE = 16, CLASSES = 7 };

static inline att_model *make_model(const char *broadcast, double init_values, double drop_path, bool loss)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIZE);
    att_options_set(&options, "patch_size", 4);
    att_options_set(&options, "in_chans", 3);
    att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 48);
    att_options_set(&options, "num_heads", 3);
    att_options_set(&options, "depth", 3);
    att_options_set(&options, "init_values", init_values);
    att_options_set(&options, "drop_path_rate", drop_path);
    att_options_set_text(&options, "modules", broadcast);
    att_model *model;
    must(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    if (loss)
        loss_add(model, 0);
    return model;
}

#endif
