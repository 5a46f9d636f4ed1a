/* If the n-th allocation fails, instruments return ERR_MEMORY, leave no memory allocated, and give the same figures
 * afterwards. */
#include <attscope/attscope.h>

#include "failing.h"
#include "study/measure/measure.h"

enum { SIDE = 8, IMAGES = 3, CLASSES = 4 };

/* Runs all instruments on three images and frees everything. *figures: number of means; *sum: their sum. */
static att_status measure_once(att_context *context, int *figures, double *sum)
{
    static float images[IMAGES][SIDE * SIDE];
    static const int32_t labels[IMAGES] = {0, 1, 2};
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "patch_size", SIDE / 2);
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 16);
    att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 2);
    for (int i = 0; i < IMAGES * SIDE * SIDE; i++)
        images[i / (SIDE * SIDE)][i % (SIDE * SIDE)] = (float)(i * 7 % 13) / 13;
    att_model *model = NULL;
    att_measure *measure = NULL;
    att_plan *plan = NULL;
    att_weights *weights = NULL;
    att_session *session = NULL;
    att_plan_options planned = att_plan_options_defaults();
    att_status status = att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_measure_create(att_model_graph(model), "all", "*", &measure);
    if (status == ATT_OK)
        status = att_plan_compile(att_model_graph(model), &planned, &plan);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_weights_initialise(weights, 1);
    if (status == ATT_OK)
        status = att_session_create(plan, weights, IMAGES, &session);
    if (status == ATT_OK)
        status = att_session_bind(session, "image", images);
    if (status == ATT_OK)
        status = att_session_run(session, IMAGES);
    if (status == ATT_OK)
        status = att_measure_observe(measure, session, IMAGES, labels);
    *figures = 0;
    *sum = 0;
    for (int i = 0; status == ATT_OK && i < att_measure_count(measure); i++) {
        (*figures)++;
        *sum += att_measure_all(measure)[i].mean;
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return status;
}

TEST(lack_of_memory_is_survived)
{
    att_context *context = NULL;
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    int figures, again;
    double sum, same;
    assert_int_equal(measure_once(context, &figures, &sum), ATT_OK);
    assert_true(figures > 0 && isfinite(sum));
    lack of = lack_of_memory(context, &memory);
    while (lack_again(&of))
        of.status = measure_once(context, &again, &same);
    printf("%ld allocations\n", of.allowed);
    assert_true(of.allowed > 50);
    assert_int_equal(again, figures);
    assert_true(same == sum);
    att_context_destroy(&context);
}
