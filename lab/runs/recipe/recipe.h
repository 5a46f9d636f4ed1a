/* recipe/recipe.h - functions that the flag tables of a recipe share, and functions that check and apply a recipe. */
#ifndef ATT_RECIPE_RECIPE_H
#define ATT_RECIPE_RECIPE_H

#include <attscope/lab/recipe.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* The choices of "model"; NULL past the last. */
const char *att_choose_model(int index);
/* Increments *count. Appends the row if `rows` has fewer than `most` rows. */
void att_put_row(const att_flag *row, att_flag *rows, int most, int *count);
/* Appends rows of the options of all families, each key once, in the families' order: of those that only training
 * reads, or of the others. offset: of the att_option_values in the group's struct. */
void att_put_option_rows(bool training, size_t offset, att_flag *rows, int most, int *count);

/* --- applying a recipe -------------------------------------------------------------------------------------------- */

/* Checks every value by the rules of its flag, replaces texts that are NULL by their defaults, moves the values of
 * short forms (such as input_size and adaptor) into the options that they stand for, and refuses settings that
 * contradict each other. */
att_status att_recipe_resolve(att_context *context, att_recipe *recipe);
/* Refuses keys that no task declares. */
att_status att_recipe_check_keys(att_context *context, const att_option_values *task);
/* The options that open one split, with the annotations that the network's task reads. split NULL: the only split of
 * the data set. */
att_dataset_options att_recipe_dataset_options(const att_context *context, const att_recipe *recipe, const char *split);
/* Chooses the crop mode and the colour jitter that the recipe leaves to the network's task. */
void att_recipe_choose_images(const att_context *context, att_recipe *recipe);
/* Whether the crop mode, which is chosen, resizes whole images with their aspect ratio. */
bool att_recipe_keeps_all(const att_recipe_images *images);
/* Adds the augmentation, which is chosen, to *transform, which holds the transform of evaluation. */
att_status att_recipe_transform(att_context *context, const att_recipe_images *images,
                                att_transform_options *transform);
/* Refuses an option that only other tasks have, unless its value is the default. */
att_status att_recipe_check_task(att_context *context, const att_recipe *recipe, const att_task_info *task);
/* Fills in eval_metric if it is NULL, and removes the options of other tasks. */
void att_recipe_take_task(att_recipe *recipe, const att_task_info *task);

#endif
