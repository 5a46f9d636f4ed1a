/* Skipped blocks: figures against networks whose branches are zero because the weights of their last layers are. */
#include <attscope/attscope.h>

#include "context.h"
#include "networks/models/fixture.h"

SHARED_CONTEXT(threads, 0)

enum { IMAGES = 100, FIRST = 20, SIDE = 8, PIXELS = SIDE * SIDE * 3, CLASSES = 5, MOST_BLOCKS = 12 };

typedef struct net {
    att_context *context;
    att_model *model;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
} net;

static float images[IMAGES * PIXELS];
static int32_t labels[IMAGES], answers[IMAGES];

/* The last layer of the branch of each residual addition. */
typedef struct network {
    const char *name;
    const char *const *nodes, *const *last_layers;
    int blocks, first_of_stage[3], stages;
} network;

static const char *const vit_nodes[] = {"blocks.0.add1", "blocks.0.add2", "blocks.1.add1",
                                        "blocks.1.add2", "blocks.2.add1", "blocks.2.add2"};
static const char *const vit_layers[] = {"blocks.0.attn.proj", "blocks.0.mlp.fc2",   "blocks.1.attn.proj",
                                         "blocks.1.mlp.fc2",   "blocks.2.attn.proj", "blocks.2.mlp.fc2"};
static const char *const resnet_nodes[] = {"layer1.0.add", "layer1.1.add", "layer2.0.add",
                                           "layer2.1.add", "layer3.0.add", "layer3.1.add"};
static const char *const resnet_layers[] = {"layer1.0.bn2", "layer1.1.bn2", "layer2.0.bn2",
                                            "layer2.1.bn2", "layer3.0.bn2", "layer3.1.bn2"};
static const network networks[] = {{"vit_tiny_patch16_224", vit_nodes, vit_layers, 6, {0}, 1},
                                   {"resnet20", resnet_nodes, resnet_layers, 6, {0, 2, 4}, 3}};

static att_option_values options_of(const network *of)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "num_classes", CLASSES);
    if (strcmp(of->name, "resnet20") == 0) {
        att_options_set(&options, "depth", 14);
        att_options_set(&options, "width", 4);
        return options;
    }
    att_options_set(&options, "patch_size", 4);
    att_options_set(&options, "embed_dim", 24);
    att_options_set(&options, "num_heads", 3);
    att_options_set(&options, "depth", 3);
    return options;
}

/* Sets the parameters of a layer to zero. */
static void clear_layer(const net *n, const char *layer)
{
    static const float zeros[1 << 16];
    int cleared = 0;
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info parameter = att_weights_at(n->weights, i);
        size_t length = strlen(layer);
        const char *rest = parameter.name + length;
        if (strncmp(parameter.name, layer, length) != 0 || (strcmp(rest, ".weight") != 0 && strcmp(rest, ".bias") != 0))
            continue;
        CHECK(n->context, att_weights_set(n->weights, -1, i, zeros, att_shape_count(parameter.shape)));
        cleared++;
    }
    assert_int_equal(cleared, 2);
}

/* measure: NULL for none; otherwise its instruments are added. */
static net net_open(const network *of, const char *with, att_measure **measure)
{
    net n = {.context = context};
    att_option_values options = options_of(of);
    att_plan_options plan = att_plan_options_defaults();
    must(att_model_create(context, of->name, &options, ATT_F32, &n.model));
    must(att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    must(att_weights_initialise(n.weights, 3));
    if (measure)
        must(att_measure_create(att_model_graph(n.model), with, "*", measure));
    must(att_plan_compile(att_model_graph(n.model), &plan, &n.plan));
    must(att_session_create(n.plan, n.weights, IMAGES, &n.session));
    return n;
}

/* Runs images [first, first + count) and writes the largest logits to `answers`. */
static void net_run(const net *n, int first, int count)
{
    float logits[IMAGES * CLASSES];
    CHECK(n->context, att_session_bind(n->session, "image", images + first * PIXELS));
    CHECK(n->context, att_session_run(n->session, count));
    CHECK(n->context, att_session_output(n->session, "logits", 0, count, logits));
    for (int i = 0; i < count; i++) {
        answers[first + i] = 0;
        for (int c = 1; c < CLASSES; c++)
            if (logits[i * CLASSES + c] > logits[i * CLASSES + answers[first + i]])
                answers[first + i] = c;
    }
}

static void net_close(net *n)
{
    att_session_destroy(&n->session);
    att_plan_destroy(&n->plan);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

/* Draws images; two thirds of them get the class that the network gives. */
static void draw(const network *of)
{
    for (int i = 0; i < IMAGES * PIXELS; i++)
        images[i] = (float)(4 * formula("image", (uint32_t)i));
    net n = net_open(of, NULL, NULL);
    net_run(&n, 0, IMAGES);
    for (int i = 0; i < IMAGES; i++)
        labels[i] = i % 3 ? answers[i] : i % CLASSES;
    net_close(&n);
}

static int right_answers(int first)
{
    int right = 0;
    for (int i = first; i < IMAGES; i++)
        right += answers[i] == labels[i];
    return right;
}

static att_measurement figure_of(const att_measure *measure, const char *instrument, const char *node,
                                 const char *statistic)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (!strcmp(m.instrument, instrument) && !strcmp(m.node, node) && !strcmp(m.statistic, statistic))
            return m;
    }
    fail_msg("no figure %s of %s", statistic, node);
    return (att_measurement){0};
}

/* Observes all images in two runs. */
static net observe(const network *of, const char *with, att_measure **measure)
{
    net n = net_open(of, with, measure);
    const int cut = 30;
    net_run(&n, 0, cut);
    must(att_measure_observe(*measure, n.session, cut, labels));
    net_run(&n, cut, IMAGES - cut);
    must(att_measure_observe(*measure, n.session, IMAGES - cut, labels + cut));
    return n;
}

static bool begins_stage(const network *of, int block)
{
    for (int i = 0; i < of->stages; i++)
        if (of->first_of_stage[i] == block)
            return true;
    return false;
}

/* An end of the interval of Agresti and Min: half an image is added to each of the four cells. side: -1 or 1 */
static double interval(const bool *before, int side)
{
    double lost = 0.5, won = 0.5;
    for (int i = 0; i < IMAGES; i++) {
        const bool right = answers[i] == labels[i];
        lost += before[i] && !right;
        won += !before[i] && right;
    }
    const double n = IMAGES + 2, mean = (lost - won) / n;
    return 100 * (mean + side * 1.959964 * sqrt(((lost + won) / n - mean * mean) / n));
}

/* Bonett and Wright (2000): half the width of the interval of atanh(r) is 1.959964 sqrt(variance). */
static void check_correlation(const att_measure *measure, const char *name, double variance)
{
    char low[32], high[32];
    snprintf(low, sizeof low, "%s low", name);
    snprintf(high, sizeof high, "%s high", name);
    const double value = figure_of(measure, "skip_block", "", name).mean;
    const double ends[] = {figure_of(measure, "skip_block", "", low).mean,
                           figure_of(measure, "skip_block", "", high).mean};
    if (fabs(value) == 1) {
        assert_true(isnan(ends[0]) && isnan(ends[1]));
        return;
    }
    for (int i = 0; i < 2; i++)
        assert_true(fabs(atanh(ends[i]) - atanh(value) - (2 * i - 1) * 1.959964 * sqrt(variance)) < 1e-6);
}

TEST(skipping_a_block_equals_a_branch_of_zeros)
{
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++) {
        const network *of = &networks[k];
        att_measure *measure = NULL;
        draw(of);
        net n = observe(of, "skip_block,nsi", &measure);
        int all = right_answers(0);
        bool right[IMAGES];
        for (int i = 0; i < IMAGES; i++)
            right[i] = answers[i] == labels[i];
        net_close(&n);
        assert_true(fabs(figure_of(measure, "skip_block", "", "top1").mean - 100.0 * all / IMAGES) < 1e-9);
        bool changes = false;
        for (int b = 0; b < of->blocks; b++) {
            net zero = net_open(of, NULL, NULL);
            clear_layer(&zero, of->last_layers[b]);
            net_run(&zero, 0, IMAGES);
            double lost = 100.0 * (all - right_answers(0)) / IMAGES;
            att_measurement m = figure_of(measure, "skip_block", of->nodes[b], "lost");
            assert_true(fabs(m.mean - lost) < 1e-9);
            assert_int_equal(m.count, IMAGES);
            assert_int_equal(m.excluded, begins_stage(of, b));
            double low = figure_of(measure, "skip_block", of->nodes[b], "lost low").mean;
            double high = figure_of(measure, "skip_block", of->nodes[b], "lost high").mean;
            assert_true(fabs(low - interval(right, -1)) < 1e-9 && fabs(high - interval(right, 1)) < 1e-9);
            double zeta = figure_of(measure, "nsi", of->nodes[b], "attention").mean;
            assert_true(fabs(figure_of(measure, "skip_block", of->nodes[b], "zeta").mean - zeta) < 1e-9);
            changes |= lost != 0;
            net_close(&zero);
        }
        assert_true(changes);
        const int compared = of->blocks - of->stages;
        const att_measurement rho = figure_of(measure, "skip_block", "", "spearman");
        assert_int_equal(rho.count, compared);
        if (compared > 4) {
            check_correlation(measure, "spearman", (1 + rho.mean * rho.mean / 2) / (compared - 3));
            check_correlation(measure, "kendall", 0.437 / (compared - 4));
        } else {
            assert_true(isnan(figure_of(measure, "skip_block", "", "kendall low").mean));
            assert_true(isnan(figure_of(measure, "skip_block", "", "spearman low").mean)); /* of 3 blocks */
        }
        att_measure_destroy(&measure);
    }
}

/* Which candidates are skipped first, from their figures. */
static int block_of_rank(const att_measure *measure, const network *of, int rank)
{
    for (int b = 0; b < of->blocks; b++)
        if (!begins_stage(of, b) && figure_of(measure, "block_pruning", of->nodes[b], "rank").mean == rank)
            return b;
    fail_msg("no block of rank %d", rank);
    return -1;
}

TEST(pruning_skips_the_lowest_blocks_on_the_other_images)
{
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++) {
        const network *of = &networks[k];
        att_measure *measure = NULL;
        char with[64];
        draw(of);
        snprintf(with, sizeof with, "block_pruning:by=zeta,first=%d", FIRST);
        net n = observe(of, with, &measure);
        att_measurement whole = figure_of(measure, "block_pruning", "skipped.0", "top1");
        assert_int_equal(whole.count, IMAGES - FIRST);
        assert_true(fabs(whole.mean - 100.0 * right_answers(FIRST) / (IMAGES - FIRST)) < 1e-9);
        net_close(&n);
        net zero = net_open(of, NULL, NULL);
        double last = 0;
        for (int rank = 1; rank <= of->blocks - of->stages; rank++) {
            char node[32];
            int b = block_of_rank(measure, of, rank);
            double score = figure_of(measure, "block_pruning", of->nodes[b], "score").mean;
            assert_true(score >= last);
            last = score;
            clear_layer(&zero, of->last_layers[b]);
            net_run(&zero, 0, IMAGES);
            snprintf(node, sizeof node, "skipped.%d", rank);
            double top1 = figure_of(measure, "block_pruning", node, "top1").mean;
            assert_true(fabs(top1 - 100.0 * right_answers(FIRST) / (IMAGES - FIRST)) < 1e-9);
        }
        net_close(&zero);
        att_measure_destroy(&measure);
    }
}

/* The first of 99 random orders is each block in turn, and all blocks are skipped at the end of every order. */
TEST(random_orders_are_compared)
{
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++) {
        const network *of = &networks[k];
        const int candidates = of->blocks - of->stages;
        att_measure *measure = NULL;
        char with[64], last[32];
        draw(of);
        snprintf(with, sizeof with, "block_pruning:first=%d,orders=99", FIRST);
        net n = observe(of, with, &measure);
        net_close(&n);
        double least = 100, most = 0, sum = 0;
        for (int b = 0; b < of->blocks; b++) {
            if (begins_stage(of, b))
                continue;
            net zero = net_open(of, NULL, NULL);
            clear_layer(&zero, of->last_layers[b]);
            net_run(&zero, 0, IMAGES);
            const double top1 = 100.0 * right_answers(FIRST) / (IMAGES - FIRST);
            least = fmin(least, top1);
            most = fmax(most, top1);
            sum += top1;
            net_close(&zero);
        }
        assert_true(least < most);
        assert_true(fabs(figure_of(measure, "block_pruning", "skipped.1", "random low").mean - least) < 1e-9);
        assert_true(fabs(figure_of(measure, "block_pruning", "skipped.1", "random high").mean - most) < 1e-9);
        /* 99 draws of a block: the mean is within a quarter of the range, five standard errors or more. */
        const double mean = figure_of(measure, "block_pruning", "skipped.1", "random").mean;
        assert_true(fabs(mean - sum / candidates) < (most - least) / 4);
        snprintf(last, sizeof last, "skipped.%d", candidates);
        const double whole = figure_of(measure, "block_pruning", last, "top1").mean;
        static const char *const names[] = {"random", "random low", "random high"};
        for (int i = 0; i < 3; i++)
            assert_true(fabs(figure_of(measure, "block_pruning", last, names[i]).mean - whole) < 1e-9);
        att_measure_destroy(&measure);
    }
}

/* The order by score is not one of the random orders. */
TEST(one_random_order_is_not_the_ranking)
{
    const network *of = &networks[0];
    att_measure *measure = NULL;
    char with[64], node[32];
    bool differs = false;
    draw(of);
    snprintf(with, sizeof with, "block_pruning:first=%d,orders=1", FIRST);
    net n = observe(of, with, &measure);
    for (int k = 1; k <= of->blocks - of->stages; k++) {
        snprintf(node, sizeof node, "skipped.%d", k);
        const double mean = figure_of(measure, "block_pruning", node, "random").mean;
        assert_true(mean == figure_of(measure, "block_pruning", node, "random low").mean);
        assert_true(mean == figure_of(measure, "block_pruning", node, "random high").mean);
        differs |= mean != figure_of(measure, "block_pruning", node, "top1").mean;
    }
    assert_true(differs);
    net_close(&n);
    att_measure_destroy(&measure);
}

/* The scores of by=zeta and of by=tns, from the stiffness of the first images. */
TEST(scores_are_those_of_the_first_images)
{
    const network *of = &networks[0];
    att_measure *zeta = NULL, *tns = NULL, *nsi = NULL;
    char with[64];
    double expected[MOST_BLOCKS] = {0};
    draw(of);
    snprintf(with, sizeof with, "block_pruning:by=zeta,first=%d", FIRST);
    net a = observe(of, with, &zeta);
    snprintf(with, sizeof with, "block_pruning:by=tns,first=%d", FIRST);
    net b = observe(of, with, &tns), c = net_open(of, "nsi", &nsi);
    for (int i = 0; i < FIRST; i++) {
        double z[MOST_BLOCKS], largest = 0, sum = 0;
        att_measure_clear(nsi);
        net_run(&c, i, 1);
        must(att_measure_observe(nsi, c.session, 1, NULL));
        for (int t = 1; t < of->blocks; t++) {
            z[t] = figure_of(nsi, "nsi", of->nodes[t], "attention").mean;
            largest = fmax(largest, z[t]);
            sum += z[t];
        }
        const double all = largest * (largest / (sum / (of->blocks - 1)) - 1);
        for (int t = 1; t < of->blocks; t++) {
            double most = 0;
            for (int u = 1; u < of->blocks; u++)
                most = u == t ? most : fmax(most, z[u]);
            expected[t] += (all - most * (most / ((sum - z[t]) / (of->blocks - 2)) - 1)) / FIRST;
        }
    }
    for (int t = 1; t < of->blocks; t++) {
        double score = figure_of(tns, "block_pruning", of->nodes[t], "score").mean;
        assert_true(fabs(score - expected[t]) < 1e-5 * (1 + fabs(expected[t])));
    }
    att_measure_clear(nsi);
    net_run(&c, 0, FIRST);
    must(att_measure_observe(nsi, c.session, FIRST, NULL));
    for (int t = 1; t < of->blocks; t++) {
        double score = figure_of(zeta, "block_pruning", of->nodes[t], "score").mean;
        assert_true(fabs(score - figure_of(nsi, "nsi", of->nodes[t], "attention").mean) < 1e-6);
    }
    net_close(&a);
    net_close(&b);
    net_close(&c);
    att_measure_destroy(&zeta);
    att_measure_destroy(&tns);
    att_measure_destroy(&nsi);
}
