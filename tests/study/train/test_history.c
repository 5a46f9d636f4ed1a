/* Which checkpoints are kept. */
#include "study/train/history.h"

#include "study/train/fixture.h"
#include "study/train/numbers.h"

static void expect(const att_history *history, const char *numbers)
{
    char text[64] = "";
    for (int i = 0; i < history->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? " " : "",
                 (long long)history->kept[i].number);
    assert_string_equal(text, numbers);
}

FIXTURE_TEST(the_best_checkpoints_are_kept)
{
    att_history history;
    assert_int_equal(att_history_create(f->context, 3, false, &history), ATT_OK);
    const double metrics[] = {50, 60, 55, 60, 40, 70};
    const char *const kept[] = {"0", "1 0", "1 2 0", "1 3 2", "1 3 2", "5 1 3"};
    const int best[] = {0, 1, 1, 1, 1, 5}, evicted[] = {-1, -1, -1, 0, -1, 2};
    for (int epoch = 0; epoch < 6; epoch++) {
        att_history_add(&history, epoch, metrics[epoch]);
        expect(&history, kept[epoch]);
        assert_int_equal(history.best, best[epoch]);
        assert_int_equal(history.evicted, evicted[epoch]);
    }
    assert_true(att_history_keeps(&history, 3) && !att_history_keeps(&history, 0));
    att_history_free(&history);
}

FIXTURE_TEST(a_smaller_loss_is_better)
{
    att_history history;
    assert_int_equal(att_history_create(f->context, 2, true, &history), ATT_OK);
    att_history_add(&history, 0, 2);
    att_history_add(&history, 1, 1);
    att_history_add(&history, 2, 1.5);
    expect(&history, "1 2");
    assert_int_equal(history.best, 1);
    att_history_free(&history);
}

FIXTURE_TEST(without_a_metric_the_newest_checkpoints_are_kept)
{
    att_history history;
    assert_int_equal(att_history_create(f->context, 2, false, &history), ATT_OK);
    for (int epoch = 0; epoch < 3; epoch++)
        att_history_add(&history, epoch, NAN);
    expect(&history, "2 1");
    assert_int_equal(history.best, -1);
    att_history_add(&history, 3, 10);
    expect(&history, "3 2");
    att_history_add(&history, 4, NAN);
    expect(&history, "3 4");
    att_history_add(&history, 5, 5);
    att_history_add(&history, 6, NAN);
    expect(&history, "3 5");
    att_history_free(&history);
}

FIXTURE_TEST(a_history_is_read_back_from_its_text)
{
    att_history history, read;
    att_text text = {.context = f->context};
    assert_int_equal(att_history_create(f->context, 4, false, &history), ATT_OK);
    assert_int_equal(att_history_create(f->context, 4, false, &read), ATT_OK);
    att_history_add(&history, 0, 0.1);
    att_history_add(&history, 160000000000, NAN);
    att_history_write(&history, &text);
    assert_true(att_history_read(&read, text.data));
    expect(&read, "0 160000000000");
    assert_true(read.kept[0].metric == 0.1 && isnan(read.kept[1].metric));
    assert_true(att_history_read(&read, ""));
    expect(&read, "");
    const char *const wrong[] = {"x",
                                 "1",
                                 "1:",
                                 "1:3fb99999",
                                 "-1:3fb999999999999a",
                                 "1:3fb999999999999a ",
                                 "1:3fb999999999999ab",
                                 "99999999999999999999:3fb999999999999a",
                                 "1:3FB999999999999A"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(att_history_read(&read, wrong[i]));
        assert_int_equal(read.count, 0);
    }
    att_text_free(&text);
    att_history_free(&history);
    att_history_free(&read);
}

TEST(numbers_are_short_and_exact)
{
    char text[ATT_NUMBER_TEXT];
    assert_string_equal(att_format_number(0.1, text), "0.1");
    assert_string_equal(att_format_number(128, text), "128");
    assert_string_equal(att_format_number(1.0 / 3, text), "0.3333333333333333");
    const double values[] = {0, -0.0, 1.0 / 3, INFINITY, 5e-324};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double read = 1;
        assert_true(att_bits_parse(att_bits_format(values[i], text), &read));
        assert_memory_equal(&read, &values[i], sizeof read);
    }
}
