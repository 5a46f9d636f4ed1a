/* recipe/recipe.h - what parts of a recipe share, and what a training makes of it. */
#ifndef ATT_RECIPE_RECIPE_H
#define ATT_RECIPE_RECIPE_H

#include <attscope/lab/recipe.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* The declaration of a network's option in the first family that has it; NULL: none has. */
const att_option *att_declared_find(const char *key);
/* Appends a row where it fits, and counts it. */
void att_put_row(const att_flag *row, att_flag *rows, int most, int *count);

/* --- what a recipe means ------------------------------------------------------------------------------------------ */

/* Checks every value as flags are checked, replaces texts that are NULL by their defaults, moves the values of flags
 * that stand for others into those, and refuses settings that contradict each other. */
att_status att_recipe_resolve(att_context *context, att_recipe *recipe);
/* Refuses keys that no task declares. */
att_status att_recipe_check_keys(att_context *context, const att_option_values *task);
/* Of one split; NULL: the only one there is. */
att_dataset_options att_recipe_dataset_options(const att_recipe_data *data, const char *split);
/* Lays the augmentation over *transform, which is evaluation's. */
att_status att_recipe_transform(att_context *context, const att_recipe_images *images,
                                att_transform_options *transform);
/* Refuses an option that only another task has, unless it has its default value. */
att_status att_recipe_check_task(att_context *context, const att_recipe *recipe, const att_task_info *task);
/* Makes the recipe say what the task does where it leaves that open, and drops options of other tasks. */
void att_recipe_take_task(att_recipe *recipe, const att_task_info *task);

#endif
