/* The pointing game by hand, and the choice of a class. */
#include "study/relevance/networks.h"

/* A map of 2 x 4 cells over an input of 80 x 40 pixels, which shows a photograph twice as large without 10 of its
 * pixels on the left and 20 above. */
static double values[8];
static const att_relevance_map map = {2, 4, values, 0, 0};
static const att_geometry place = {
    .map = {{0.5, 0, -5}, {0, 0.5, -10}}, .from_width = 200, .from_height = 120, .width = 80, .height = 40};

/* The centre of cell (1, 2) is (50, 30) in the input, and (110, 80) in the photograph. */
static att_pointing point(const att_true_box *boxes, int count, double margin)
{
    for (int i = 0; i < 8; i++)
        values[i] = i == 6 ? 2 : i == 7 ? 2 : i == 0 ? NAN : 1;
    return att_relevance_point(&map, &place, boxes, count, 3, margin);
}

TEST(the_largest_value_hits_a_box)
{
    static const struct {
        att_true_box box;
        att_pointing expected;
    } cases[] = {
        {{.x = 100, .y = 70, .width = 20, .height = 20, .label = 3}, ATT_POINTING_HIT},
        {{.x = 100, .y = 70, .width = 20, .height = 20, .label = 2}, ATT_POINTING_NEITHER}, /* another class */
        {{.x = 125, .y = 70, .width = 20, .height = 20, .label = 3}, ATT_POINTING_HIT},     /* at the margin */
        {{.x = 125.5, .y = 70, .width = 20, .height = 20, .label = 3}, ATT_POINTING_MISS},
        {{.x = 60, .y = 70, .width = 35, .height = 20, .label = 3}, ATT_POINTING_HIT},
        {{.x = 60, .y = 70, .width = 34, .height = 20, .label = 3}, ATT_POINTING_MISS},
        {{.x = 100, .y = 96, .width = 20, .height = 10, .label = 3}, ATT_POINTING_MISS},
        {{.x = 100, .y = 40, .width = 20, .height = 24, .label = 3}, ATT_POINTING_MISS},
        {{.x = 0, .y = 70, .width = 9, .height = 20, .label = 3}, ATT_POINTING_NEITHER}, /* cropped away */
        {{.x = 0, .y = 70, .width = 11, .height = 20, .label = 3}, ATT_POINTING_MISS},
        {{.x = 171, .y = 70, .width = 20, .height = 20, .label = 3}, ATT_POINTING_NEITHER},
        {{.x = 100, .y = 70, .width = 20, .height = 20, .label = 3, .crowd = true}, ATT_POINTING_NEITHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (point(&cases[i].box, 1, ATT_POINTING_MARGIN) != cases[i].expected)
            fail_msg("case %zu is not %d", i, cases[i].expected);
    assert_int_equal(point(&cases[2].box, 1, 0), ATT_POINTING_MISS); /* no margin */
    assert_int_equal(point(NULL, 0, 0), ATT_POINTING_NEITHER);
}

TEST(one_of_several_boxes_is_enough_and_crowds_do_not_count)
{
    const att_true_box boxes[] = {
        {.x = 20, .y = 30, .width = 10, .height = 10, .label = 3},
        {.x = 100, .y = 70, .width = 20, .height = 20, .label = 3, .crowd = true},
        {.x = 105, .y = 75, .width = 10, .height = 10, .label = 3},
    };
    assert_int_equal(point(boxes, 3, 0), ATT_POINTING_HIT);
    assert_int_equal(point(boxes, 2, 0), ATT_POINTING_NEITHER);
    assert_int_equal(point(boxes, 1, 0), ATT_POINTING_MISS);
}

TEST(the_most_probable_of_some_classes_is_chosen)
{
    opened o = open_relevance(VIT);
    const att_batch inputs = image_input(networks[VIT].side);
    att_batch answers;
    float logits[CLASSES];
    int target = -1;
    must(att_explorer_run(o.explorer, &inputs, &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), sizeof logits);
    for (int a = 0; a < CLASSES; a++)
        for (int b = 0; b < CLASSES; b++) {
            const int some[] = {a, b};
            must(att_relevance_choose(o.relevance, &inputs, some, 2, &target));
            assert_int_equal(target, logits[b] > logits[a] ? b : a);
        }
    const int wrong[] = {0, CLASSES};
    assert_fails(context, att_relevance_choose(o.relevance, &inputs, wrong, 2, &target), ATT_ERR_ARGUMENT,
                 "class 10 does not exist");
    assert_fails(context, att_relevance_choose(o.relevance, &inputs, wrong, 0, &target), ATT_ERR_ARGUMENT,
                 "no classes to choose from");
    close_relevance(&o);
}
