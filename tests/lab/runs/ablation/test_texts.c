/* Ablations of texts against the slow way: an explorer for each text, one change at a time. */
#include <attscope/lab/ablation.h>

#include "context.h"
#include "golden_path.h"

SHARED_CONTEXT(threads, 2)

enum { TEXTS = 4, WIDTH = 8, CLASSES = 3, HEADS = 2, PARTS = 8 };

static const int32_t numbers[] = {2, 5, 6, 8, 3, 0, 0, 0, 0, 0}, others[] = {2, 9, 3, 0, 0, 0},
                     longer[] = {2, 7, 7, 19, 4, 11, 3, 0, 0, 0, 0, 0, 0, 0};
static att_token_ids ids[TEXTS] = {{.tokens = numbers, .types = numbers + 5, .count = 5},
                                   {.tokens = others, .types = others + 3, .count = 3},
                                   {.tokens = longer, .types = longer + 7, .count = 7},
                                   {.tokens = longer, .types = longer + 7, .count = 5}};
static const att_token_texts texts = {.count = TEXTS, .texts = ids};

static att_network *open_network(const char *name)
{
    char folder[64], path[4096];
    att_network *network;
    snprintf(folder, sizeof folder, "encoders/%s", name);
    golden_path(folder, path, sizeof path);
    must(att_network_open(context, path, NULL, &network));
    return network;
}

/* Applies part `part` of the heads of all layers and then the branches; -1: none. */
static void apply(att_explorer *explorer, int part)
{
    att_explorer_reset(explorer);
    if (part >= 2 * HEADS)
        must(att_explorer_remove_branch(explorer, part - 2 * HEADS, true));
    else if (part >= 0)
        must(att_explorer_change_head(explorer, part / HEADS, part % HEADS, ATT_HEAD_REMOVED));
}

/* The mean over the tokens of the last block, or the logits. */
static void find_answer(att_network *network, const att_token_ids *text, int part, bool logits, double answer[WIDTH])
{
    att_explorer *explorer;
    att_text_inputs room;
    att_batch answers;
    const att_batch inputs = att_network_text_inputs(network, text, &room);
    must(att_explorer_create_for(network, &inputs, logits ? NULL : "tokens", &explorer));
    apply(explorer, part);
    must(att_explorer_run(explorer, &inputs, &answers));
    const float *values = att_batch_field(&answers, logits ? "logits" : "tokens");
    const int rows = logits ? 1 : text->count, width = logits ? CLASSES : WIDTH;
    for (int c = 0; c < width; c++) {
        answer[c] = 0;
        for (int i = 0; i < rows; i++)
            answer[c] += (double)values[i * width + c] / rows;
    }
    att_explorer_destroy(&explorer);
}

static double slow_distance(att_network *network, const att_token_ids *text, int part)
{
    double u[WIDTH], v[WIDTH], uv = 0, uu = 0, vv = 0;
    find_answer(network, text, part, false, u);
    find_answer(network, text, -1, false, v);
    for (int c = 0; c < WIDTH; c++) {
        uv += u[c] * v[c];
        uu += u[c] * u[c];
        vv += v[c] * v[c];
    }
    return 1 - uv / sqrt(uu * vv);
}

/* Of the class that the unchanged network predicts. */
static double slow_loss(att_network *network, const att_token_ids *text, int part)
{
    double plain[WIDTH], changed[WIDTH], sum = 0;
    int best = 0;
    find_answer(network, text, -1, true, plain);
    find_answer(network, text, part, true, changed);
    for (int c = 0; c < CLASSES; c++)
        best = plain[c] > plain[best] ? c : best;
    for (int c = 0; c < CLASSES; c++)
        sum += exp(changed[c] - changed[best]);
    return log(sum);
}

static void compare(const char *name, double (*slow)(att_network *network, const att_token_ids *text, int part))
{
    att_network *network = open_network(name);
    att_ablation_options options = att_ablation_options_defaults();
    att_ablation *ablation;
    double most = 0, largest = 0;
    options.heads = options.branches = "all";
    must(att_ablate_texts(network, &texts, &options, &ablation));
    assert_int_equal(att_ablation_count(ablation), PARTS);
    assert_int_equal(att_ablation_describe(ablation).images, TEXTS);
    for (int part = -1; part < PARTS; part++) {
        const double *losses = att_ablation_losses(ablation, part);
        for (int i = 0; i < TEXTS; i++) {
            const double expected = slow(network, &ids[att_ablation_image_at(ablation, i).index], part);
            most = fmax(most, fabs(losses[i] - expected));
            largest = fmax(largest, expected);
        }
    }
    print_message("%s: largest difference %.2g of at most %.2g\n", name, most, largest);
    assert_true(largest > 1e-2 && most < 1e-6);                            /* measured: 1.1e-8 and 2.7e-8 */
    assert_string_equal(att_ablation_image_at(ablation, 0).name, "text2"); /* the shortest is first */
    assert_true(att_ablation_correlation_count(ablation) == 0 || att_ablation_correlation_at(ablation, 0).count >= 4);
    att_ablation_destroy(&ablation);
    att_network_close(&network);
}

TEST(vectors_are_compared_by_their_distance)
{
    compare("bert", slow_distance);
}

TEST(a_classifier_is_compared_by_the_class_that_it_predicts)
{
    compare("bert_classes", slow_loss);
}

TEST(an_ablation_of_vectors_has_no_accuracy)
{
    att_network *network = open_network("bert");
    att_ablation *ablation;
    att_json_writer *writer;
    const char *json;
    size_t length;
    must(att_ablate_texts(network, &texts, NULL, &ablation));
    const att_ablation_facts facts = att_ablation_describe(ablation);
    assert_string_equal(facts.vector, "mean");
    assert_true(facts.texts && isnan(facts.accuracy) && isnan(att_ablation_at(ablation, 0).accuracy.mean));
    assert_string_equal(att_ablation_method_at(ablation, 0).name, "distance");
    assert_string_equal(att_ablation_method_at(ablation, 1).name, "interval");
    must(att_json_writer_create(context, false, &writer));
    att_json_begin_object(writer);
    att_ablation_write_json(ablation, writer);
    att_json_end_object(writer);
    must(att_json_writer_finish(writer, &json, &length));
    assert_non_null(strstr(json, "{\"texts\":4,"));
    assert_non_null(strstr(json, "\"vector\":\"mean\""));
    assert_non_null(strstr(json, "\"distance\":{\"mean\":"));
    assert_null(strstr(json, "p_class"));
    att_json_writer_destroy(&writer);
    att_ablation_destroy(&ablation);
    att_network_close(&network);
}

static bool compare_total(void *user, const att_progress *progress)
{
    int *runs = user;
    assert_int_equal(progress->total, TEXTS * (1 + PARTS));
    *runs = (int)progress->done;
    return true;
}

TEST(progress_counts_all_runs_from_the_first_text_on)
{
    int runs = 0;
    att_ablation *ablation;
    att_network *network = open_network("bert");
    att_ablation_options options = att_ablation_options_defaults();
    options.heads = "all";
    options.branches = "all";
    options.progress = compare_total;
    options.progress_user = &runs;
    must(att_ablate_texts(network, &texts, &options, &ablation));
    assert_int_equal(runs, TEXTS * (1 + PARTS));
    att_ablation_destroy(&ablation);
    att_network_close(&network);
}

TEST(greedy_steps_of_a_classifier_keep_its_answers)
{
    att_network *network = open_network("bert_classes");
    att_ablation_options options = att_ablation_options_defaults();
    att_ablation *ablation;
    options.greedy = true;
    options.batch_size = 3;
    must(att_ablate_texts(network, &texts, &options, &ablation));
    assert_int_equal(att_ablation_count(ablation), 2 * HEADS);
    assert_int_equal(att_ablation_describe(ablation).runs, TEXTS * (5 + 4 + 3 + 2));
    att_ablation_destroy(&ablation);
    att_network_close(&network);
}

TEST(what_cannot_be_ablated_is_refused)
{
    att_network *network = open_network("bert"), *images;
    att_ablation_options options = att_ablation_options_defaults();
    att_ablation *ablation = NULL;
    options.tokens = "class";
    assert_fails(context, att_ablate_texts(network, &texts, &options, &ablation), ATT_ERR_UNSUPPORTED,
                 "token N of two texts are different words");
    options.tokens = NULL;
    options.greedy = true;
    assert_fails(context, att_ablate_texts(network, &texts, &options, &ablation), ATT_ERR_UNSUPPORTED,
                 "a greedy ablation needs classes");
    options.greedy = false;
    options.heads = "blocks.7";
    assert_fails(context, att_ablate_texts(network, &texts, &options, &ablation), ATT_ERR_ARGUMENT, "blocks.7");
    must(att_network_open(context, "vit_tiny_patch16_224", NULL, &images));
    assert_fails(context, att_ablate_texts(images, &texts, NULL, &ablation), ATT_ERR_UNSUPPORTED,
                 "reads images, and these are texts");
    assert_null(ablation);
    att_network_close(&images);
    att_network_close(&network);
}
