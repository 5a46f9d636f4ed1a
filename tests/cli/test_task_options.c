/* Options of the network's task and of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train_flags.h"

static const att_option declared[] = {{.key = "tolerance", .kind = ATT_OPTION_REAL, .high = 1}};
static const att_metric metrics[] = {{.name = "mae", .label = "mean error", .unit = ""}};
static const att_task_info counting = {
    .name = "counting", .metrics = metrics, .metric_count = 1, .options = declared, .option_count = 1};

/* What flags leave where they say the smoothing and the tolerance. */
static train_settings settings_of(double smoothing, double tolerance)
{
    train_settings settings = {.task = att_options_none()};
    att_options_set(&settings.task, "smoothing", smoothing);
    att_options_set(&settings.task, "tolerance", tolerance);
    return settings;
}

static void an_option_of_another_task_is_refused_unless_it_has_its_default(void **state)
{
    (void)state;
    att_option_values defaults = att_options_none();
    const att_task_info classification = att_task_at(NULL, 0);
    att_task_defaults(NULL, classification.name, &defaults);
    double smoothing = att_options_number(&defaults, "smoothing", -1);
    const train_settings given = settings_of(smoothing + 0.2, 0.5), untouched = settings_of(smoothing, 0.5);
    assert_int_equal(cli_train_task_check(&given, &counting), CLI_USAGE);
    assert_int_equal(cli_train_task_check(&given, &classification), CLI_OK);
    assert_int_equal(cli_train_task_check(&untouched, &counting), CLI_OK);
}

static void settings_keep_the_options_of_their_task(void **state)
{
    (void)state;
    train_settings settings = settings_of(0.1, 0.5);
    cli_train_task_settle(&settings, &counting);
    assert_null(att_options_find(&settings.task, "smoothing"));
    assert_true(att_options_number(&settings.task, "tolerance", 0) == 0.5);
    assert_string_equal(settings.recipe.eval_metric, "mae");
    settings.recipe.eval_metric = "loss"; /* as asked for */
    cli_train_task_settle(&settings, &counting);
    assert_string_equal(settings.recipe.eval_metric, "loss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_of_another_task_is_refused_unless_it_has_its_default),
        cmocka_unit_test(settings_keep_the_options_of_their_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
