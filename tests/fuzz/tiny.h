/* tiny.h - a very small training, which makes a real checkpoint. */
#ifndef TESTS_FUZZ_TINY_H
#define TESTS_FUZZ_TINY_H

#include "fuzz.h"

enum { TINY_SIDE = 4, TINY_IMAGES = 4 };

typedef struct tiny {
    att_model *model;
    att_weights *weights;
    att_dataset *dataset;
    att_transform_options transform;
    att_train_data data;
    att_train_options options;
} tiny;

static inline void tiny_data(void)
{
    uint8_t images[16 + TINY_IMAGES * TINY_SIDE * TINY_SIDE] = {0, 0, 8, 3,         0, 0, 0, TINY_IMAGES,
                                                                0, 0, 0, TINY_SIDE, 0, 0, 0, TINY_SIDE};
    uint8_t labels[8 + TINY_IMAGES] = {0, 0, 8, 1, 0, 0, 0, TINY_IMAGES, 0, 1, 0, 1};
    for (size_t i = 16; i < sizeof images; i++)
        images[i] = (uint8_t)(i * 37);
    fuzz_file("train-images-idx3-ubyte", images, sizeof images);
    fuzz_file("train-labels-idx1-ubyte", labels, sizeof labels);
}

/* Trains one epoch. The checkpoint is "<fuzz_folder()>/last.safetensors". */
static inline tiny *tiny_train(void)
{
    static tiny t;
    static char output[300];
    tiny_data();
    att_option_values model = att_options_none();
    att_options_set(&model, "img_size", TINY_SIDE);
    att_options_set(&model, "patch_size", TINY_SIDE);
    att_options_set(&model, "in_chans", 1);
    att_options_set(&model, "num_classes", 2);
    att_options_set(&model, "embed_dim", 2);
    att_options_set(&model, "depth", 1);
    att_options_set(&model, "num_heads", 1);
    att_options_set(&model, "mlp_ratio", 1);
    att_context *context = fuzz_context();
    fuzz_require(att_model_create(context, "vit_tiny_patch16_224", &model, ATT_F32, &t.model) == ATT_OK &&
                     att_weights_create(att_model_graph(t.model), "cpu", &t.weights) == ATT_OK &&
                     att_weights_initialise(t.weights, 1) == ATT_OK &&
                     att_dataset_open(context, fuzz_folder(), NULL, &t.dataset) == ATT_OK,
                 "a tiny training");
    t.transform = att_transform_options_defaults(TINY_SIDE, TINY_SIDE, 1);
    t.data = (att_train_data){.train = t.dataset, .train_transform = &t.transform};
    t.options = att_train_options_defaults();
    t.options.epochs = 1;
    t.options.batch_size = 2;
    t.options.warmup_epochs = 0;
    t.options.workers = 0;
    t.options.optimizer = "adamw";
    t.options.lr = 1e-3;
    snprintf(output, sizeof output, "%s", fuzz_folder());
    t.options.output = output;
    fuzz_require(att_train(t.model, t.weights, &t.data, &t.options, NULL) == ATT_OK, att_context_message(context));
    return &t;
}

#endif
