/* recipe/small.h - a recipe for the fixture's tiny network on the fixture's images. */
#ifndef TESTS_RECIPE_SMALL_H
#define TESTS_RECIPE_SMALL_H

#include <attscope/lab/training.h>

#include "study/train/fixture.h"

static inline att_recipe small_recipe(const fixture *f)
{
    att_recipe recipe;
    assert_int_equal(att_recipe_default(f->context, &recipe), ATT_OK);
    recipe.network.model = "vit_tiny_patch16_224";
    recipe.network.options = tiny_options();
    att_options_set(&recipe.network.options, "drop_path_rate", 0.1);
    recipe.data.data_dir = f->folder;
    recipe.images.no_aug = true;
    recipe.train.epochs = 2;
    recipe.train.batch_size = BATCH;
    recipe.train.optimizer = "adamw";
    recipe.train.lr = 1e-3;
    recipe.train.warmup_epochs = 0;
    recipe.train.workers = 1;
    recipe.train.lanes = 2;
    recipe.files.output = f->folder;
    recipe.files.experiment = "run";
    return recipe;
}

#endif
