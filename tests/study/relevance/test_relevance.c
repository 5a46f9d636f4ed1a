/* Maps of relevance of small networks against PyTorch, and their changes and refusals. */
#include "study/relevance/networks.h"

/* Largest difference from the values of the line, as a part of the largest of them. every: the distance of compared
 * cells. */
static double error_of(const char *values, int height, int width, const att_relevance_map *map)
{
    double most = 0, size = 0;
    const int every = map->height / height;
    for (int i = 0; i < height * width; i++) {
        char *end;
        const double expected = strtod(values, &end);
        assert_ptr_not_equal(end, values);
        values = end;
        const double found = map->values[i / width * every * map->width + i % width * every];
        most = larger(most, isfinite(found) ? fabs(found - expected) : INFINITY);
        size = larger(size, fabs(expected));
    }
    return most / size;
}

static void compare(const char *line, const char *name, opened *o, const att_batch *inputs, int target, double logit,
                    double bound, double *most)
{
    char method[64];
    int height, width, used;
    att_relevance_map map;
    assert_int_equal(sscanf(line, "%63s %d %d%n", method, &height, &width, &used), 3);
    must(att_relevance_run(o->relevance, inputs, method, target, &map));
    assert_int_equal(map.target, target);
    if (!(fabs(map.logit - logit) < 1e-5))
        fail_msg("%s: %s: the logit is %.9g, should be %.9g", name, method, map.logit, logit);
    assert_true(map.height >= height && map.width >= width);
    const double error = error_of(line + used, height, width, &map);
    const bool of_logits = strncmp(method, "occlusion", strlen("occlusion")) == 0;
    if (!(error < (of_logits ? 1e-5 : bound))) /* the logits are rounded to F32; measured: at most 6.5e-6 */
        fail_msg("%s: %s differs by %.2g of its largest value", name, method, error);
    *most = of_logits ? *most : larger(*most, error);
}

static void compare_all(att_dtype dtype, double bound)
{
    char path[4096], name[64];
    static char line[8192];
    golden_path("relevance.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    opened o = {0};
    att_batch inputs = {0};
    int target = 0, compared = 0, number = -1;
    double logit = 0, most = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "case %63s %d %lf", name, &target, &logit) == 3) {
            close_relevance(&o);
            number++;
            assert_true(number < NETWORKS);
            assert_string_equal(networks[number].name, name);
            o = open_relevance_as(number, dtype);
            inputs = image_input(networks[number].side);
            continue;
        }
        compare(line, name, &o, &inputs, target, logit, bound, &most);
        compared++;
    }
    close_relevance(&o);
    fclose(file);
    print_message("maps differ by at most %.2g of their largest value\n", most);
    assert_int_equal(number + 1, NETWORKS);
    assert_int_equal(compared, 38);
}

TEST(maps_are_those_of_pytorch)
{
    compare_all(ATT_F32, 1e-5); /* measured: 1.1e-6 */
}

TEST(maps_in_double_precision_are_those_of_pytorch)
{
    compare_all(ATT_F64, 1e-6); /* measured: 9.1e-8 */
}

/* --- changes and choices ------------------------------------------------------------------------------------------ */

enum { PATCHES = 28 };

static void run_vit(opened *o, const char *method, double values[PATCHES])
{
    const att_batch inputs = image_input(networks[VIT].side);
    att_relevance_map map;
    must(att_relevance_run(o->relevance, &inputs, method, 3, &map));
    assert_int_equal(map.height * map.width, PATCHES);
    memcpy(values, map.values, PATCHES * sizeof *values);
}

static double change_of(const double a[PATCHES], const double b[PATCHES])
{
    double most = 0;
    for (int i = 0; i < PATCHES; i++)
        most = larger(most, fabs(a[i] - b[i]));
    return most;
}

/* A head that is removed brings no relevance: with both of a layer removed, its map is 0. A uniform head keeps some. */
TEST(changes_of_the_explorer_hold)
{
    opened o = open_relevance(VIT);
    double whole[PATCHES], changed[PATCHES], again[PATCHES];
    run_vit(&o, "attention_gradient", whole);
    must(att_explorer_change_head(o.explorer, 2, 0, ATT_HEAD_UNIFORM));
    run_vit(&o, "attention_gradient", changed);
    assert_true(change_of(whole, changed) > 1e-4);
    must(att_explorer_change_head(o.explorer, 2, 0, ATT_HEAD_REMOVED));
    must(att_explorer_change_head(o.explorer, 2, 1, ATT_HEAD_REMOVED));
    run_vit(&o, "attention_gradient", changed);
    for (int i = 0; i < PATCHES; i++)
        assert_true(changed[i] == 0);
    att_explorer_reset(o.explorer);
    run_vit(&o, "attention_gradient", again);
    assert_memory_equal(whole, again, sizeof whole);
    close_relevance(&o);
}

TEST(the_most_probable_class_is_chosen)
{
    opened o = open_relevance(RESNET);
    const att_batch inputs = image_input(networks[RESNET].side);
    att_batch answers;
    att_relevance_map map;
    int best = 0;
    must(att_explorer_run(o.explorer, &inputs, &answers));
    const float *logits = att_batch_field(&answers, "logits");
    for (int c = 1; c < CLASSES; c++)
        best = logits[c] > logits[best] ? c : best;
    const double logit = (double)logits[best];
    must(att_relevance_run(o.relevance, &inputs, "grad_cam", -1, &map));
    assert_int_equal(map.target, best);
    assert_true(map.logit == logit);
    close_relevance(&o);
}

/* Rollout from the class token is that of the explorer. */
TEST(rollout_is_that_of_explorers)
{
    opened o = open_relevance(REGISTERS);
    const att_batch inputs = image_input(networks[REGISTERS].side);
    att_relevance_map map;
    double row[4 + PATCHES];
    must(att_relevance_run(o.relevance, &inputs, "rollout", -1, &map));
    must(att_explorer_rollout(o.explorer, 2, 0, row));
    for (int i = 0; i < PATCHES; i++)
        assert_true(map.values[i] == row[4 + i]);
    close_relevance(&o);
}

/* The flow through a single layer: from the tokens that the head reads, with e_i each, to patch j along one edge. */
TEST(flow_through_one_layer_is_a_sum)
{
    static const option by_class[] = {
        {"embed_dim", NULL, 32}, {"depth", NULL, 1}, {"num_heads", NULL, 2}, {"reg_tokens", NULL, 3}, {NULL, NULL, 0}};
    static const option by_mean[] = {{"embed_dim", NULL, 32}, {"depth", NULL, 1},        {"num_heads", NULL, 2},
                                     {"reg_tokens", NULL, 3}, {"global_pool", "avg", 0}, {NULL, NULL, 0}};
    enum { PREFIX = 4, TOKENS = PREFIX + PATCHES };
    double most = 0;
    for (int mean = 0; mean <= 1; mean++) {
        opened o = {.network = open_small("vit_tiny_patch16_224", 28, 7, 4, mean ? by_mean : by_class,
                                          att_network_options_defaults())};
        const att_batch inputs = image_input(28);
        float rows[2][TOKENS];
        double flow[PATCHES] = {0};
        att_relevance_map map;
        fill_weights(att_network_weights(o.network), ATT_F32);
        must(att_explorer_create(o.network, &o.explorer));
        must(att_relevance_create(o.explorer, &o.relevance));
        must(att_relevance_run(o.relevance, &inputs, "flow", -1, &map));
        for (int i = mean ? PREFIX : 0; i < (mean ? TOKENS : 1); i++) {
            must(att_explorer_row(o.explorer, 0, i, NULL, rows[0]));
            for (int j = 0; j < PATCHES; j++) {
                const double a = ((double)rows[0][PREFIX + j] + (double)rows[1][PREFIX + j]) / 2;
                flow[j] += fmin(mean ? 1.0 / PATCHES : 1, a / 2 + (i == PREFIX + j ? 0.5 : 0));
            }
        }
        for (int j = 0; j < PATCHES; j++)
            most = larger(most, fabs(map.values[j] - flow[j]) / flow[j]);
        close_relevance(&o);
    }
    if (!(most < 1e-6)) /* measured: 5.7e-8 */
        fail_msg("flows differ by %.2g", most);
    print_message("flows differ by at most %.2g of a flow\n", most);
}

TEST(comparisons_need_no_network)
{
    opened o = open_relevance(SWIN);
    const att_batch inputs = image_input(networks[SWIN].side);
    att_relevance_map map;
    double first[4];
    must(att_relevance_run(o.relevance, &inputs, "centre", -1, &map));
    assert_int_equal(map.height, 28);
    assert_true(map.values[13 * 28 + 13] == map.values[14 * 28 + 14] && map.values[0] < map.values[14]);
    must(att_relevance_run(o.relevance, &inputs, "random:cells=2", -1, &map));
    assert_int_equal(map.height * map.width, 4);
    memcpy(first, map.values, sizeof first);
    must(att_relevance_run(o.relevance, &inputs, "random:cells=2", 1, &map));
    assert_memory_equal(first, map.values, sizeof first);
    must(att_relevance_run(o.relevance, &inputs, "random:cells=2,seed=1", 1, &map));
    assert_memory_not_equal(first, map.values, sizeof first);
    close_relevance(&o);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

TEST(what_does_not_apply_is_refused)
{
    opened o = open_relevance(SWIN);
    const att_batch inputs = image_input(networks[SWIN].side);
    att_relevance_map map;
    static const struct refusal {
        const char *method;
        int target;
        att_status status;
        const char *says;
    } refusals[] = {
        {"chefer", 1, ATT_ERR_UNSUPPORTED, "has windows"},
        {"attention_gradient", 1, ATT_ERR_UNSUPPORTED, "has windows"},
        {"rollout", 1, ATT_ERR_UNSUPPORTED, "has windows"},
        {"flow", 1, ATT_ERR_UNSUPPORTED, "has windows"},
        {"gradcam", 1, ATT_ERR_NOT_FOUND, "did you mean \"grad_cam\""},
        {"x", 1, ATT_ERR_NOT_FOUND, "available: chefer,"},
        {"grad_cam", CLASSES, ATT_ERR_ARGUMENT, "class 10 does not exist"},
        {"grad_cam", -2, ATT_ERR_ARGUMENT, "class -2 does not exist"},
        {"grad_cam:layer=1", 1, ATT_ERR_ARGUMENT, "has no options"},
        {"attention_gradient:layer=9", 1, ATT_ERR_ARGUMENT, "attention layer 9 does not exist"},
        {"integrated_gradients:steps=0", 1, ATT_ERR_ARGUMENT, "steps must be in 1..1024"},
        {"occlusion:square=64", 1, ATT_ERR_ARGUMENT, "a square of 64 cells is larger than the image"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        assert_fails(context, att_relevance_run(o.relevance, &inputs, refusals[i].method, refusals[i].target, &map),
                     refusals[i].status, refusals[i].says);
    close_relevance(&o);
    o = open_relevance(RESNET);
    const att_batch larger_inputs = image_input(networks[RESNET].side);
    assert_fails(context, att_relevance_run(o.relevance, &larger_inputs, "chefer", 1, &map), ATT_ERR_UNSUPPORTED,
                 "no attention layer");
    assert_fails(context, att_relevance_run(o.relevance, &inputs, "chefer:", 1, &map), ATT_ERR_ARGUMENT,
                 "not option=value");
    close_relevance(&o);
}

TEST(a_network_needs_one_class_of_an_image)
{
    att_network *network = NULL;
    att_explorer *explorer = NULL;
    att_relevance *relevance = NULL;
    att_option_values options = att_options_none();
    att_network_options how = att_network_options_defaults();
    how.options = &options;
    att_options_set_sides(&options, "img_size", 32, 32);
    att_options_set(&options, "num_classes", 0);
    must(att_network_open(context, "resnet18", &how, &network));
    must(att_explorer_create(network, &explorer));
    assert_fails(context, att_relevance_create(explorer, &relevance), ATT_ERR_UNSUPPORTED, "has no head");
    assert_null(relevance);
    att_explorer_destroy(&explorer);
    att_network_close(&network);
}
