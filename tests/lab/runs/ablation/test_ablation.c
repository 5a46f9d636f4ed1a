/* Ablations against the slow way: an explorer, one image at a time. */
#include <sys/stat.h>
#include <unistd.h>

#include <attscope/lab/ablation.h>

#include "data/picture.h"
#include "study/explore/networks.h"

enum { IMAGES = 5, LABELS = 3, PHOTO = 40 };

static char folder[64];

/* assert_float_equal() rounds to float. */
static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.17g differs from %.17g by more than %g", a, b, tolerance);
}

/* Writes IMAGES photographs into LABELS class folders, unless they exist. */
static const char *photographs(void)
{
    static uint8_t pixels[PHOTO * PHOTO * 3];
    char path[128];
    if (*folder)
        return folder;
    strcpy(folder, "/tmp/attscope-ablate-XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < IMAGES; i++) {
        void *bytes;
        size_t size;
        snprintf(path, sizeof path, "%s/%d", folder, i % LABELS);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%d/%d.png", folder, i % LABELS, i);
        for (uint32_t p = 0; p < sizeof pixels; p++)
            pixels[p] = (uint8_t)(128 + 250 * formula(path + strlen(folder), p / 3 / 8));
        picture_encode(PHOTO, PHOTO, 8, SPNG_COLOR_TYPE_TRUECOLOR, NULL, pixels, sizeof pixels, &bytes, &size);
        FILE *file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        free(bytes);
    }
    return folder;
}

static att_dataset *open_photographs(att_network *network, bool unlabelled)
{
    const char *path = photographs();
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    if (unlabelled)
        must(att_dataset_open_images(context, &path, 1, &options, &dataset));
    else
        must(att_network_open_dataset(network, &path, 1, &options, &dataset));
    assert_int_equal(att_dataset_count(dataset), IMAGES);
    return dataset;
}

/* The loss and the rank of an image's class by the explorer. label: -1: the most probable. */
static double slow_loss(att_network *network, att_explorer *explorer, const att_dataset *dataset, int64_t index,
                        int *label, bool *right)
{
    static float pixels[SIDE * SIDE * 3];
    static const att_field field = {.name = "image", .dtype = ATT_F32, .shape = {3, {SIDE, SIDE, 3}}};
    const void *const data[] = {pixels};
    const att_batch inputs = {.count = 1, .field_count = 1, .fields = &field, .data = data};
    const att_transform_options transform = att_network_transform(network);
    att_image image;
    att_batch answers;
    must(att_dataset_read(dataset, context, index, 3, &image));
    must(att_transform_image(context, &transform, &image, 0, 0, 0, pixels));
    att_image_free(context, &image);
    must(att_explorer_run(explorer, &inputs, &answers));
    const float *logits = att_batch_field(&answers, "logits");
    double sum = 0;
    int best = 0;
    for (int c = 0; c < CLASSES; c++)
        best = logits[c] > logits[best] ? c : best;
    *label = *label < 0 ? best : *label;
    for (int c = 0; c < CLASSES; c++)
        sum += exp((double)logits[c] - (double)logits[*label]);
    *right = best == *label;
    return log(sum);
}

/* Compares a change with the explorer, which the caller has changed; change -1: unchanged. Returns the mean loss. */
static double expect_like(att_network *network, att_explorer *explorer, const att_dataset *dataset,
                          const att_ablation *ablation, int change)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < IMAGES; i++) {
        const att_ablation_image image = att_ablation_image_at(ablation, i);
        int label = att_dataset_label(dataset, image.index);
        bool right;
        if (label < 0)
            label = image.label;
        const double loss = slow_loss(network, explorer, dataset, image.index, &label, &right);
        assert_int_equal(image.label, label);
        assert_int_equal(att_ablation_right(ablation, change)[i], right);
        most = larger(most, fabs(loss - att_ablation_losses(ablation, change)[i]));
        sum += att_ablation_losses(ablation, change)[i] / IMAGES;
    }
    if (!(most < 5e-5)) /* measured: at most 2.2e-5, with groups of samples of other sizes and sharpened maps */
        fail_msg("change %d: losses differ by %g", change, most);
    return sum;
}

typedef struct bench {
    att_network *network;
    att_explorer *explorer;
    att_dataset *dataset;
    att_ablation *ablation;
} bench;

static bench ablate(int network, const att_ablation_options *options, bool unlabelled)
{
    bench b = {.network = open_network(network)};
    b.explorer = explore(b.network);
    b.dataset = open_photographs(b.network, unlabelled);
    must(att_ablate(b.network, b.dataset, options, &b.ablation));
    assert_int_equal(att_ablation_describe(b.ablation).images, IMAGES);
    expect_like(b.network, b.explorer, b.dataset, b.ablation, -1);
    return b;
}

static void bench_free(bench *b)
{
    att_ablation_destroy(&b->ablation);
    att_dataset_close(&b->dataset);
    close_both(&b->explorer, &b->network);
}

static att_ablation_options with_batches(int batch_size)
{
    att_ablation_options options = att_ablation_options_defaults();
    options.batch_size = batch_size;
    options.workers = 0;
    return options;
}

/* Every change of a head, branch or token alone. */
static void expect_each(bench *b, att_head_change head)
{
    double unchanged = 0;
    for (int64_t i = 0; i < IMAGES; i++)
        unchanged += att_ablation_losses(b->ablation, -1)[i] / IMAGES;
    for (int c = 0; c < att_ablation_count(b->ablation); c++) {
        const att_ablation_change change = att_ablation_at(b->ablation, c);
        att_explorer_reset(b->explorer);
        if (change.kind == ATT_ABLATED_HEADS)
            must(att_explorer_change_head(b->explorer, change.part, change.head, head));
        else if (change.kind == ATT_ABLATED_BRANCHES)
            must(att_explorer_remove_branch(b->explorer, change.part, true));
        else
            must(att_explorer_remove_token(b->explorer, change.part, true));
        const double loss = expect_like(b->network, b->explorer, b->dataset, b->ablation, c);
        assert_near(loss - unchanged, change.loss.mean, 1e-12);
        assert_int_equal(att_ablation_ranked(b->ablation, change.rank), c);
    }
}

TEST(each_head_equals_the_explorer)
{
    static const int heads[NETWORKS] = {4, 4, 4, 12, 12, 6, 6, 6, 0};
    const att_ablation_options options = with_batches(3);
    for (int n = VIT; n < RESNET; n++) {
        bench b = ablate(n, &options, false);
        assert_int_equal(att_ablation_count(b.ablation), heads[n]);
        expect_each(&b, ATT_HEAD_REMOVED);
        bench_free(&b);
    }
}

TEST(heads_can_be_uniform)
{
    static const int some[] = {VIT, RELATIVE, SWIN, ISOTROPIC};
    att_ablation_options options = with_batches(256);
    options.uniform = true;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        bench b = ablate(some[i], &options, false);
        expect_each(&b, ATT_HEAD_UNIFORM);
        bench_free(&b);
    }
}

TEST(branches_and_tokens)
{
    att_ablation_options options = with_batches(2);
    options.branches = "all";
    options.tokens = "class;registers;5";
    bench b = ablate(REGISTERS, &options, false);
    assert_int_equal(att_ablation_count(b.ablation), 4 + 1 + 3 + 1);
    assert_string_equal(att_ablation_at(b.ablation, 0).name, "blocks.0.add1");
    assert_string_equal(att_ablation_at(b.ablation, 5).name, "token 1");
    assert_int_equal(att_ablation_at(b.ablation, 8).part, 5);
    expect_each(&b, ATT_HEAD_REMOVED);
    bench_free(&b);
    options.tokens = NULL;
    options.branches = "convolution";
    b = ablate(RESNET, &options, false);
    assert_int_equal(att_ablation_count(b.ablation), 8);
    expect_each(&b, ATT_HEAD_REMOVED);
    bench_free(&b);
}

TEST(groups_are_removed_together)
{
    att_ablation_options options = with_batches(256);
    options.heads = "blocks.1:0-1;blocks.0:1+blocks.1:0;blocks.1.attn:0";
    options.branches = "mlp;blocks.0.add1+blocks.1.add2";
    options.tokens = "1-3,7";
    bench b = ablate(VIT, &options, false);
    assert_int_equal(att_ablation_count(b.ablation), 3 + 3 + 1);
    assert_string_equal(att_ablation_at(b.ablation, 1).name, "blocks.0:1+blocks.1:0");
    assert_int_equal(att_ablation_at(b.ablation, 1).part, -1);
    assert_string_equal(att_ablation_at(b.ablation, 2).name, "blocks.1.attn:0");
    must(att_explorer_change_head(b.explorer, 1, 0, ATT_HEAD_REMOVED));
    expect_like(b.network, b.explorer, b.dataset, b.ablation, 2);
    must(att_explorer_change_head(b.explorer, 1, 1, ATT_HEAD_REMOVED));
    expect_like(b.network, b.explorer, b.dataset, b.ablation, 0);
    must(att_explorer_change_head(b.explorer, 1, 1, ATT_HEAD_KEPT));
    must(att_explorer_change_head(b.explorer, 0, 1, ATT_HEAD_REMOVED));
    expect_like(b.network, b.explorer, b.dataset, b.ablation, 1);
    att_explorer_reset(b.explorer);
    must(att_explorer_remove_branch(b.explorer, 0, true));
    must(att_explorer_remove_branch(b.explorer, 3, true));
    expect_like(b.network, b.explorer, b.dataset, b.ablation, 5);
    att_explorer_reset(b.explorer);
    for (int t = 1; t <= 7; t++)
        if (t <= 3 || t == 7)
            must(att_explorer_remove_token(b.explorer, t, true));
    expect_like(b.network, b.explorer, b.dataset, b.ablation, 6);
    bench_free(&b);
}

/* The interval of a change by its definition; 2.7764 is the quantile for 4 degrees of freedom. */
TEST(intervals_are_paired_over_images)
{
    const att_ablation_options options = with_batches(256);
    bench b = ablate(VIT, &options, false);
    for (int c = 0; c < att_ablation_count(b.ablation); c++) {
        const att_ablation_change change = att_ablation_at(b.ablation, c);
        double mean = 0, squares = 0, probability = 0;
        int right = 0;
        for (int64_t i = 0; i < IMAGES; i++) {
            mean += (att_ablation_losses(b.ablation, c)[i] - att_ablation_losses(b.ablation, -1)[i]) / IMAGES;
            probability +=
                (exp(-att_ablation_losses(b.ablation, c)[i]) - exp(-att_ablation_losses(b.ablation, -1)[i])) / IMAGES;
            right += att_ablation_right(b.ablation, c)[i] - att_ablation_right(b.ablation, -1)[i];
        }
        for (int64_t i = 0; i < IMAGES; i++) {
            const double d = att_ablation_losses(b.ablation, c)[i] - att_ablation_losses(b.ablation, -1)[i] - mean;
            squares += d * d;
        }
        const double half = 2.776445 * sqrt(squares / (IMAGES - 1) / IMAGES);
        assert_near(change.loss.low, mean - half, 1e-6 * fabs(half) + 1e-12);
        assert_near(change.loss.high, mean + half, 1e-6 * fabs(half) + 1e-12);
        assert_near(change.probability.mean, probability, 1e-12);
        assert_near(change.accuracy.mean, 100.0 * right / IMAGES, 1e-12);
        assert_int_equal(change.gained - change.lost, right);
    }
    bench_free(&b);
}

TEST(the_most_changed_images_come_first)
{
    const att_ablation_options options = with_batches(256);
    bench b = ablate(VIT, &options, false);
    int64_t images[IMAGES + 1];
    assert_int_equal(att_ablation_most_changed(b.ablation, 2, images, IMAGES + 1), IMAGES);
    double last = INFINITY;
    for (int i = 0; i < IMAGES; i++) {
        const double size =
            fabs(att_ablation_losses(b.ablation, 2)[images[i]] - att_ablation_losses(b.ablation, -1)[images[i]]);
        assert_true(size <= last);
        last = size;
    }
    int64_t two[2];
    assert_int_equal(att_ablation_most_changed(b.ablation, 2, two, 2), 2);
    assert_true(two[0] == images[0] && two[1] == images[1]);
    bench_free(&b);
}

/* tests/python/test_ablation.py compares the numbers. */
TEST(a_file_for_numpy_is_written_or_left_out)
{
    const att_ablation_options options = with_batches(256);
    bench b = ablate(VIT, &options, false);
    char path[96], start[8];
    snprintf(path, sizeof path, "%s/found.npz", folder);
    must(att_ablation_write_npz(b.ablation, path));
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(start, 1, 4, file), 4);
    fclose(file);
    assert_memory_equal(start, "PK\3\4", 4);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/nowhere/found.npz", folder);
    assert_fails(context, att_ablation_write_npz(b.ablation, path), ATT_ERR_NOT_FOUND, "nowhere");
    bench_free(&b);
}

TEST(images_without_classes_have_the_predicted_one)
{
    const att_ablation_options options = with_batches(4);
    bench b = ablate(VIT, &options, true);
    const att_ablation_facts facts = att_ablation_describe(b.ablation);
    assert_true(facts.unlabelled == IMAGES && facts.accuracy == 100);
    expect_each(&b, ATT_HEAD_REMOVED);
    bench_free(&b);
}

/* The candidate of a greedy step, by the explorer, which has the changes so far. */
static int slow_step(bench *b, const bool *taken, int parts)
{
    int best = -1, most = -1;
    double least = INFINITY;
    for (int p = 0; p < parts; p++) {
        int right_ones = 0;
        double sum = 0;
        if (taken[p])
            continue;
        must(att_explorer_change_head(b->explorer, p / 2, p % 2, ATT_HEAD_REMOVED));
        for (int64_t i = 0; i < IMAGES; i++) {
            int label = att_dataset_label(b->dataset, i);
            bool right;
            sum += slow_loss(b->network, b->explorer, b->dataset, i, &label, &right);
            right_ones += right;
        }
        must(att_explorer_change_head(b->explorer, p / 2, p % 2, ATT_HEAD_KEPT));
        if (right_ones > most || (right_ones == most && sum < least)) {
            best = p;
            most = right_ones;
            least = sum;
        }
    }
    return best;
}

TEST(greedy_steps_equal_those_of_the_explorer)
{
    enum { HEADS = 4 };
    att_ablation_options options = with_batches(5);
    options.greedy = true;
    bench b = ablate(VIT, &options, false);
    bool taken[HEADS] = {false};
    assert_int_equal(att_ablation_count(b.ablation), HEADS);
    for (int s = 0; s < HEADS; s++) {
        const att_ablation_change change = att_ablation_at(b.ablation, s);
        const int best = slow_step(&b, taken, HEADS);
        assert_int_equal(change.part * 2 + change.head, best);
        assert_int_equal(change.rank, s);
        taken[best] = true;
        must(att_explorer_change_head(b.explorer, best / 2, best % 2, ATT_HEAD_REMOVED));
        expect_like(b.network, b.explorer, b.dataset, b.ablation, s);
    }
    bench_free(&b);
}

/* The most probable classes of the unchanged network are right, so that it begins at 100 %. */
TEST(a_greedy_ablation_ends_at_the_bound)
{
    att_ablation_options options = with_batches(256);
    options.greedy = true;
    options.branches = "all";
    bench all = ablate(VIT, &options, true);
    double lowest = 100;
    for (int s = 0; s < att_ablation_count(all.ablation); s++) {
        const double accuracy = 100 + att_ablation_at(all.ablation, s).accuracy.mean;
        lowest = accuracy < lowest ? accuracy : lowest;
    }
    assert_true(lowest < 100);
    options.bound = 100;
    bench few = ablate(VIT, &options, true);
    assert_true(att_ablation_count(few.ablation) < att_ablation_count(all.ablation));
    for (int s = 0; s < att_ablation_count(few.ablation); s++)
        assert_true(att_ablation_at(few.ablation, s).accuracy.mean == 0);
    bench_free(&all);
    bench_free(&few);
}

/* Figures are those of `measure`; the correlation is that of their ranks. */
TEST(changes_are_correlated_with_figures)
{
    enum { HEADS = 12 };
    const att_ablation_options options = with_batches(256);
    bench b = ablate(SWIN, &options, false);
    att_measure *measure = NULL;
    att_evaluate_options evaluate = att_evaluate_options_defaults();
    must(att_network_observe(b.network, "entropy", NULL, &measure));
    evaluate.measure = measure;
    must(att_network_evaluate(b.network, b.dataset, &evaluate, NULL));
    int found = -1;
    for (int i = 0; i < att_ablation_correlation_count(b.ablation); i++)
        if (strncmp(att_ablation_correlation_at(b.ablation, i).figure, "entropy", 7) == 0)
            found = i;
    assert_true(found >= 0);
    assert_int_equal(att_ablation_correlation_at(b.ablation, found).count, HEADS);
    double squares = 0;
    for (int x = 0; x < HEADS; x++) {
        int rank_of_figure = 0, rank_of_loss = 0;
        for (int y = 0; y < HEADS; y++) {
            rank_of_figure += att_ablation_figure(b.ablation, found, y) < att_ablation_figure(b.ablation, found, x);
            rank_of_loss += att_ablation_at(b.ablation, y).loss.mean < att_ablation_at(b.ablation, x).loss.mean;
        }
        squares += (rank_of_figure - rank_of_loss) * (rank_of_figure - rank_of_loss);
    }
    assert_near(att_ablation_correlation_at(b.ablation, found).spearman.value,
                1 - 6 * squares / (HEADS * (HEADS * HEADS - 1.0)), 1e-12);
    for (int i = 0, c = 0; i < att_measure_count(measure); i++) {
        const att_measurement m = att_measure_at(measure, i);
        if (m.head >= 0 && strcmp(m.statistic, "mean") == 0)
            assert_near(att_ablation_figure(b.ablation, found, c++), m.mean, 1e-9); /* measured: 0 */
    }
    att_measure_destroy(&measure);
    bench_free(&b);
}

TEST(what_cannot_be_removed_is_refused)
{
    static const struct {
        int network;
        const char *heads, *branches, *tokens;
        att_status status;
        const char *part;
    } wrong[] = {
        {VIT, "blocks.4", NULL, NULL, ATT_ERR_ARGUMENT, "no attention layer \"blocks.4\""},
        {VIT, "blocks.1.atn", NULL, NULL, ATT_ERR_ARGUMENT, "did you mean blocks.1.attn?"},
        {VIT, "blocks.1:2", NULL, NULL, ATT_ERR_ARGUMENT, "expected numbers and ranges from 0 to 1"},
        {VIT, "blocks.1:", NULL, NULL, ATT_ERR_ARGUMENT, "blocks.1.attn: expected numbers"},
        {VIT, "", NULL, NULL, ATT_ERR_ARGUMENT, "a part of the list is empty"},
        {VIT, "all;", NULL, NULL, ATT_ERR_ARGUMENT, "a part of the list is empty"},
        {VIT, NULL, "blocks.0.add3", NULL, ATT_ERR_ARGUMENT, "did you mean blocks.0.add1?"},
        {VIT, NULL, "pooling", NULL, ATT_ERR_ARGUMENT, "only blocks.0.add1 to blocks.1.add2"},
        {VIT, NULL, NULL, "17", ATT_ERR_ARGUMENT, "numbers and ranges from 0 to 16"},
        {VIT, NULL, NULL, "3-1", ATT_ERR_ARGUMENT, "tokens \"3-1\""},
        {VIT, NULL, NULL, "registers", ATT_ERR_ARGUMENT, "has no register tokens"},
        {VIT, NULL, NULL, "0-16", ATT_ERR_ARGUMENT, "the last one that remains"},
        {ISOTROPIC, NULL, NULL, "0", ATT_ERR_UNSUPPORTED, "tokens can be removed only if"},
        {SWIN, NULL, NULL, "all", ATT_ERR_UNSUPPORTED, "without windows"},
        {RESNET, "all", NULL, NULL, ATT_ERR_UNSUPPORTED, "has no attention layers"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_network *network = open_network(wrong[i].network);
        att_dataset *dataset = open_photographs(network, false);
        att_ablation *ablation = NULL;
        att_ablation_options options = with_batches(256);
        options.heads = wrong[i].heads;
        options.branches = wrong[i].branches;
        options.tokens = wrong[i].tokens;
        assert_fails(context, att_ablate(network, dataset, &options, &ablation), wrong[i].status, wrong[i].part);
        assert_null(ablation);
        options.bound = 101;
        assert_fails(context, att_ablate(network, dataset, &options, &ablation), ATT_ERR_ARGUMENT, "expected 0 to 100");
        att_dataset_close(&dataset);
        att_network_close(&network);
    }
}

static bool stop_at_once(void *user, const att_progress *progress)
{
    (void)user;
    assert_string_equal(progress->stage, "ablate");
    assert_int_equal(progress->total, 5 * IMAGES);
    return false;
}

TEST(progress_can_stop_it)
{
    att_network *network = open_network(VIT);
    att_dataset *dataset = open_photographs(network, false);
    att_ablation *ablation = NULL;
    att_ablation_options options = with_batches(2);
    options.progress = stop_at_once;
    assert_fails(context, att_ablate(network, dataset, &options, &ablation), ATT_ERR_STOPPED, "stopped on request");
    assert_null(ablation);
    att_dataset_close(&dataset);
    att_network_close(&network);
}

/* Runs last. */
TEST(the_photographs_are_removed)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", photographs());
    assert_int_equal(system(command), 0);
}
