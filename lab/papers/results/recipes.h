/* results/recipes.h - the texts of recipes, files of recipes/, which cmake/results.cmake compiles into the library. */
#ifndef ATT_RESULTS_RECIPES_H
#define ATT_RESULTS_RECIPES_H

extern const char att_results_recipe_cifar10_quick[], att_results_recipe_attention_cnn_quick[],
    att_results_recipe_fashion_vit_quick[], att_results_recipe_upernet_camvid[], att_results_recipe_context[];

#endif
