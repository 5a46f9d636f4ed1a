/* When a long command prints its progress, with an artificial clock. */
#include "progress.h"
#include "test.h"

static bool due(cli_progress *progress, const char *stage, int64_t batch, double seconds)
{
    const att_progress p = {
        .stage = stage, .epochs = strcmp(stage, "train") == 0 ? 3 : 0, .batch = batch, .batches = 100};
    return cli_progress_is_due(progress, &p, seconds);
}

/* Two batches make an update, and a line comes every fifty batches. The command began at second 100. */
static cli_progress training(void)
{
    return (cli_progress){.first = 2, .every = 50, .last_shown = 100};
}

TEST(a_training_in_a_pipe_is_never_silent_for_ten_seconds)
{
    cli_progress progress = training();
    assert_false(due(&progress, "train", 1, 101));
    assert_true(due(&progress, "train", 2, 102)); /* the first update */
    assert_false(due(&progress, "train", 3, 111.9));
    assert_true(due(&progress, "train", 4, 112));
    assert_false(due(&progress, "train", 6, 113));
    assert_true(due(&progress, "train", 50, 114));
    assert_false(due(&progress, "train", 51, 115));
    assert_true(due(&progress, "train", 52, 124)); /* every line starts the ten seconds again */
    assert_false(due(&progress, "train", 99, 125));
    assert_true(due(&progress, "train", 100, 126));
}

/* Also before the first update, and if an epoch has too few batches for an update. */
TEST(slow_and_short_trainings_show_their_first_line)
{
    cli_progress progress = training();
    assert_true(due(&progress, "train", 1, 110));
    progress = training();
    progress.first = progress.every = 1000;
    assert_false(due(&progress, "train", 99, 101));
    assert_true(due(&progress, "train", 100, 102));
}

TEST(other_stages_in_a_pipe_show_each_tenth)
{
    cli_progress progress = {.first = 1, .every = 1, .last_shown = 100};
    assert_false(due(&progress, "evaluate", 9, 101));
    assert_true(due(&progress, "evaluate", 10, 102));
    assert_false(due(&progress, "evaluate", 19, 103));
    assert_true(due(&progress, "evaluate", 19, 112));
    assert_true(due(&progress, "evaluate", 20, 113));
    assert_true(due(&progress, "evaluate", 100, 114));
}

/* The evaluation after each epoch of a training run prints a line only after ten seconds without output. */
TEST(an_evaluation_within_a_training_shows_no_tenths)
{
    cli_progress progress = {.first = 1, .every = 1, .last_shown = 100};
    att_progress p = {.stage = "evaluate", .epochs = 3, .batches = 100};
    for (p.batch = 1; p.batch <= 100; p.batch++)
        assert_false(cli_progress_is_due(&progress, &p, 109.9));
    assert_true(cli_progress_is_due(&progress, &p, 110));
}

TEST(a_stage_without_batches_shows_no_tenths)
{
    cli_progress progress = {.first = 1, .every = 1, .last_shown = 100};
    const att_progress p = {.stage = "evaluate"};
    assert_false(cli_progress_is_due(&progress, &p, 101));
}

/* The bar on a terminal is drawn at most ten times a second. */
TEST(a_terminal_shows_ten_bars_a_second_at_most)
{
    cli_progress progress = {.terminal = true, .last_shown = 100};
    assert_true(due(&progress, "train", 1, 100));
    assert_false(due(&progress, "train", 50, 100.0625));
    assert_true(due(&progress, "train", 51, 100.125));
    assert_true(due(&progress, "train", 100, 100.125));
}
