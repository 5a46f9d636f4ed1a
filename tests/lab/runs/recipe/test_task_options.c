/* Options of the network's task and of other tasks. */
#include <attscope/attscope.h>

#include "lab/runs/recipe/recipe.h"
#include "networks/tasks/task.h"
#include "test.h"

static const att_option declared[] = {{.key = "tolerance", .kind = ATT_OPTION_REAL, .high = 1}};
static const att_metric metrics[] = {{.name = "mae", .label = "mean error", .unit = ""}};
static const att_task_info counting = {
    .name = "counting", .metrics = metrics, .metric_count = 1, .options = declared, .option_count = 1};

/* Returns a recipe with these values of smoothing and tolerance. */
static att_recipe recipe_of(double smoothing, double tolerance)
{
    att_recipe recipe = {.task = att_options_none()};
    att_options_set(&recipe.task, "smoothing", smoothing);
    att_options_set(&recipe.task, "tolerance", tolerance);
    return recipe;
}

TEST(an_option_of_another_task_is_refused_unless_it_has_its_default)
{
    att_option_values defaults = att_options_none();
    const att_task_info classification = att_task_at(NULL, 0);
    att_task_defaults(NULL, classification.name, &defaults);
    double smoothing = att_options_number(&defaults, "smoothing", -1);
    const att_recipe given = recipe_of(smoothing + 0.2, 0.5), untouched = recipe_of(smoothing, 0.5);
    att_context *context;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    assert_int_equal(att_recipe_check_task(context, &given, &counting), ATT_ERR_ARGUMENT);
    assert_int_equal(att_recipe_check_task(context, &given, &classification), ATT_OK);
    assert_int_equal(att_recipe_check_task(context, &untouched, &counting), ATT_OK);
    att_context_destroy(&context);
}

TEST(a_recipe_keeps_the_options_of_its_task)
{
    att_recipe recipe = recipe_of(0.1, 0.5);
    att_recipe_take_task(&recipe, &counting);
    assert_null(att_options_find(&recipe.task, "smoothing"));
    assert_true(att_options_number(&recipe.task, "tolerance", 0) == 0.5);
    assert_string_equal(recipe.train.eval_metric, "mae");
    recipe.train.eval_metric = "loss"; /* as requested */
    att_recipe_take_task(&recipe, &counting);
    assert_string_equal(recipe.train.eval_metric, "loss");
}

TEST(rand_augment_replaces_color_jitter)
{
    att_context *context;
    att_recipe recipe;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    assert_int_equal(att_recipe_default(context, &recipe), ATT_OK);
    recipe.images.color_jitter = 0.25;
    att_recipe_choose_images(context, &recipe);
    for (int i = 0; i < 2; i++) {
        att_transform_options transform = att_transform_options_defaults(8, 8, 3);
        recipe.images.aa = i == 0 ? NULL : "rand-m9";
        assert_int_equal(att_recipe_transform(context, &recipe.images, &transform), ATT_OK);
        for (int c = 0; c < 3; c++)
            assert_true(transform.color_jitter[c] == (i == 0 ? 0.25 : 0));
    }
    att_context_destroy(&context);
}

TEST(tasks_on_boxes_resize_whole_images)
{
    att_context *context;
    att_recipe recipe, given;
    att_transform_options transform = att_transform_options_defaults(800, 1333, 3);
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    assert_int_equal(att_recipe_default(context, &recipe), ATT_OK);
    given = recipe;
    att_recipe_choose_images(context, &given);
    assert_string_equal(given.images.crop_mode, "rrc");
    assert_true(given.images.color_jitter == 0.4);

    att_options_set_text(&recipe.network.options, "task", "detect");
    given = recipe;
    att_recipe_choose_images(context, &given);
    assert_int_equal(att_recipe_transform(context, &given.images, &transform), ATT_OK);
    assert_int_equal(transform.crop, ATT_CROP_WITHIN);
    assert_true(transform.height == 0 && transform.width == 0 && transform.flip == 0.5);
    assert_true(transform.longer == 1333 && transform.shorter == 800 && transform.color_jitter[0] == 0);

    given = recipe;
    given.images.crop_mode = "keep";
    given.images.color_jitter = 0.1;
    att_recipe_choose_images(context, &given);
    assert_string_equal(given.images.crop_mode, "keep");
    assert_true(given.images.color_jitter == 0.1);
    att_context_destroy(&context);
}
