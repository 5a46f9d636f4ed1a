/* Encoders of texts against the answers of the transformers library (tools/goldens/encoders.py), and their figures
 * against those of whole maps. */
#include <attscope/encoder.h>

#include "context.h"
#include "golden_path.h"
#include "study/measure/measure.h"

SHARED_CONTEXT(threads, 1)

enum { MOST = 150, WIDTH = 8, MOST_STATES = 14 * WIDTH, MOST_TEXTS = 8 };

typedef struct row {
    const char *folder;  /* in tests/goldens/encoders */
    const char *network; /* expected name */
    const char *options; /* expected values, "key=value key=value" */
} row;

#define SMALL "embed_dim=8 num_heads=2 mlp_ratio=2 vocab_size=20 "
#define TWO SMALL "depth=2 groups=0 embed_rank=0 "
static const row rows[] = {
    {"bert", "bert_base_uncased", TWO "num_classes=0 pooler=tanh act_layer=gelu type_vocab_size=2 norm_eps=1e-12"},
    {"bert_classes", "bert_base_uncased", TWO "num_classes=3 pooler=tanh act_layer=relu max_positions=16"},
    {"bert_masked", "bert_base_uncased", TWO "num_classes=0 pooler=none type_vocab_size=3 norm_eps=0.01"},
    {"bert_tokens", "bert_base_uncased", TWO "num_classes=0 pooler=none"},
    {"distilbert", "distilbert_base_uncased", TWO "num_classes=0 pooler=none type_vocab_size=0"},
    {"distilbert_classes", "distilbert_base_uncased", TWO "num_classes=3 pooler=relu type_vocab_size=0"},
    {"albert", "albert_base_v2", SMALL "depth=4 groups=1 embed_rank=4 pooler=tanh act_layer=gelu_tanh"},
    {"albert_groups", "albert_base_v2", SMALL "depth=4 groups=2 embed_rank=4 num_classes=3"},
    {"mpnet", "mpnet_base", TWO "rel_pos_bias=true type_vocab_size=0 max_positions=150 pooler=tanh norm_eps=1e-12"},
    {"mpnet_classes", "mpnet_base", TWO "rel_pos_bias=true num_classes=3 max_positions=14 norm_eps=1e-05"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* --- expected values ---------------------------------------------------------------------------------------------- */

enum { PARTS = 4, MOST_STEPS = 5 };
static const char *const part_names[PARTS] = {"attention", "skip", "mlp", "both"};

typedef struct text {
    int32_t tokens[MOST], types[MOST], count;
    int length, feature_count, state_count;
    double parts[PARTS][MOST_STEPS]; /* rank residuals, in the order of part_names */
    int part_counts[PARTS];
    double features[WIDTH], class[WIDTH], mean[WIDTH], states[MOST_STATES];
} text;

/* Numbers after a word; returns how many. */
static int read_numbers(char *from, double *numbers, int most)
{
    int count = 0;
    for (char *word = strtok(from, " \n"); word; word = strtok(NULL, " \n")) {
        assert_in_range(count, 0, most - 1);
        numbers[count++] = strtod(word, NULL);
    }
    return count;
}

static void take_line(char *line, text *t)
{
    double numbers[MOST];
    char *rest = strchr(line, ' ');
    assert_non_null(rest);
    *rest++ = '\0';
    const int count = read_numbers(rest, numbers, MOST);
    if (strcmp(line, "tokens") == 0)
        t->length = count;
    for (int i = 0; i < count && strcmp(line, "tokens") == 0; i++)
        t->tokens[i] = (int32_t)numbers[i];
    for (int i = 0; i < count && strcmp(line, "types") == 0; i++)
        t->types[i] = (int32_t)numbers[i];
    if (strcmp(line, "count") == 0)
        t->count = (int32_t)numbers[0];
    for (int p = 0; p < PARTS; p++)
        if (strcmp(line, part_names[p]) == 0) {
            memcpy(t->parts[p], numbers, (size_t)count * sizeof *numbers);
            t->part_counts[p] = count;
        }
    double *to = strcmp(line, "features") == 0 ? t->features
                 : strcmp(line, "class") == 0  ? t->class
                 : strcmp(line, "mean") == 0   ? t->mean
                 : strcmp(line, "states") == 0 ? t->states
                                               : NULL;
    if (to)
        memcpy(to, numbers, (size_t)count * sizeof *to);
    t->feature_count = to == t->features ? count : t->feature_count;
    t->state_count = to == t->states ? count : t->state_count;
}

static int read_texts(const row *r, text texts[MOST_TEXTS])
{
    static char line[1 << 14];
    char name[256], path[4096];
    int count = 0;
    snprintf(name, sizeof name, "encoders/%s/expected.txt", r->folder);
    golden_path(name, path, sizeof path);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "tokens ", 7) == 0)
            texts[count++] = (text){0};
        take_line(line, &texts[count - 1]);
    }
    fclose(file);
    return count;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static att_network *open_network(const row *r)
{
    char name[256], path[4096];
    att_network *network;
    snprintf(name, sizeof name, "encoders/%s", r->folder);
    golden_path(name, path, sizeof path);
    must(att_network_open(context, path, NULL, &network));
    return network;
}

static att_status run(att_network *network, const int32_t *tokens, const int32_t *types, const int32_t *count,
                      int length, int batch, att_batch *answers)
{
    const att_field fields[] = {
        {"tokens", ATT_I32, att_shape_of(length)}, {"count", ATT_I32, {0}}, {"types", ATT_I32, att_shape_of(length)}};
    const void *const data[] = {tokens, count, types};
    const att_batch inputs = {.count = batch, .field_count = types ? 3 : 2, .fields = fields, .data = data};
    return att_network_run(network, &inputs, answers);
}

static bool has_types(const att_network *network)
{
    return att_options_number(att_model_options(att_network_model(network)), "type_vocab_size", 0) > 0;
}

/* The largest difference, relative to the largest expected value. */
static double difference(const float *values, const double *expected, int count)
{
    double largest = 0, worst = 0;
    for (int i = 0; i < count; i++) {
        largest = fmax(largest, fabs(expected[i]));
        worst = fmax(worst, isfinite(values[i]) ? fabs(values[i] - expected[i]) : INFINITY);
    }
    return worst / largest;
}

/* Relative to the largest number; measured: 3.6e-7. */
static const double TOLERANCE = 1e-5;

static double compare(const row *r, const text *t, const char *what, const float *values, const double *expected,
                      int count)
{
    const double error = difference(values, expected, count);
    if (!(error <= TOLERANCE))
        fail_msg("%s, %d of %d tokens: %s differs by %.2g", r->folder, (int)t->count, t->length, what, error);
    return error;
}

static double compare_text(const row *r, att_network *network, const text *t)
{
    att_batch answers;
    must(run(network, t->tokens, has_types(network) ? t->types : NULL, &t->count, t->length, 1, &answers));
    const bool classes = att_model_classes(att_network_model(network)) > 0;
    double worst = compare(r, t, "features", att_batch_rows(&answers, classes ? "logits" : "features"), t->features,
                           classes ? 3 : WIDTH);
    worst = fmax(worst, compare(r, t, "class", att_batch_rows(&answers, "class"), t->class, WIDTH));
    worst = fmax(worst, compare(r, t, "mean", att_batch_rows(&answers, "mean"), t->mean, WIDTH));
    return t->state_count > 0
               ? fmax(worst, compare(r, t, "states", att_batch_rows(&answers, "tokens"), t->states, t->state_count))
               : worst;
}

static void check_options(const row *r, const att_network *network)
{
    const att_family_info family = att_model_family_of(r->network);
    char options[512];
    assert_string_equal(att_network_identity(network)->name, r->network);
    snprintf(options, sizeof options, "%s", r->options);
    for (char *word = strtok(options, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '='), texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES] = {"nothing"};
        *value++ = '\0';
        for (int i = 0; i < family.option_count; i++)
            if (strcmp(family.options[i].key, word) == 0)
                att_option_format(&family.options[i], att_model_options(att_network_model(network)), texts);
        if (strcmp(texts[0], value) != 0)
            fail_msg("%s: %s is %s instead of %s", r->folder, word, texts[0], value);
    }
}

TEST(encoders_give_the_answers_of_transformers)
{
    text texts[MOST_TEXTS];
    double worst = 0;
    for (const row *r = rows; r < rows + ROWS; r++) {
        const int count = read_texts(r, texts);
        att_network *network = open_network(r);
        check_options(r, network);
        const bool classes = att_model_classes(att_network_model(network)) > 0;
        must(att_network_select_outputs(network, classes ? "logits,class,mean,tokens" : "features,class,mean,tokens"));
        for (int i = 0; i < count; i++)
            worst = fmax(worst, compare_text(r, network, &texts[i]));
        att_network_close(&network);
    }
    print_message("%d networks, relative errors up to %.2g\n", ROWS, worst);
}

TEST(padding_changes_nothing)
{
    const row *r = &rows[0];
    att_network *network = open_network(r);
    const int32_t types[24] = {0}, counts[] = {3, 8, 5};
    int32_t tokens[24];
    float first[3 * WIDTH];
    att_batch answers;
    must(att_network_select_outputs(network, "mean"));
    for (int32_t other = 0; other < 2; other++) {
        for (int i = 0; i < 24; i++)
            tokens[i] = i % 8 < counts[i / 8] ? 2 + i % 17 : 19 * other;
        must(run(network, tokens, types, counts, 8, 3, &answers));
        if (other == 0)
            memcpy(first, answers.data[0], sizeof first);
    }
    assert_memory_equal(first, answers.data[0], sizeof first);
    att_network_close(&network);
}

/* --- many texts --------------------------------------------------------------------------------------------------- */

static int take_texts(const row *r, text texts[MOST_TEXTS], att_token_ids ids[MOST_TEXTS])
{
    const int count = read_texts(r, texts);
    for (int i = 0; i < count; i++)
        ids[i] = (att_token_ids){.tokens = texts[i].tokens, .types = texts[i].types, .count = texts[i].count};
    return count;
}

TEST(texts_of_all_lengths_are_encoded_in_their_order)
{
    text texts[MOST_TEXTS];
    att_token_ids ids[MOST_TEXTS];
    for (const row *r = rows; r < rows + ROWS; r++) {
        const int count = take_texts(r, texts, ids);
        att_network *network = open_network(r);
        att_embedding vectors, units;
        att_texts_options options = att_texts_options_defaults();
        must(att_network_embed_texts(network, ids, count, NULL, &vectors));
        options.unit = true, options.batch_size = 1;
        must(att_network_embed_texts(network, ids, count, &options, &units));
        assert_int_equal(vectors.count, count);
        for (int i = 0; i < count; i++) {
            double length = 0;
            compare(r, &texts[i], "vector", vectors.values + (ptrdiff_t)i * WIDTH, texts[i].mean, WIDTH);
            for (int c = 0; c < WIDTH; c++)
                length += pow(units.values[i * WIDTH + c], 2);
            assert_true(fabs(length - 1) < 1e-6); /* measured: 1.2e-7 */
            assert_int_equal(vectors.indices[i], i);
        }
        att_embedding_free(context, &vectors);
        att_embedding_free(context, &units);
        att_network_close(&network);
    }
}

/* Sums of a text's figures over heads and tokens, from whole maps: entropy, and distance in shares of the text. */
static void figures_of_maps(const float *map, int heads, int n, double *entropy, double *distance)
{
    *entropy = *distance = 0;
    for (int i = 0; i < heads * n; i++)
        for (int j = 0; j < n; j++) {
            const double a = map[i * n + j];
            *entropy -= a > 0 ? a * log(a) / (heads * n) : 0;
            *distance += a * abs(i % n - j) / ((double)heads * n * n);
        }
}

/* |res(X)| / |X| in the Frobenius norm. */
static double residual_of(const float *x, int n)
{
    double all = 0, rest = 0;
    for (int c = 0; c < WIDTH; c++) {
        double mean = 0;
        for (int i = 0; i < n; i++)
            mean += x[i * WIDTH + c] / n;
        for (int i = 0; i < n; i++) {
            all += pow(x[i * WIDTH + c], 2);
            rest += pow(x[i * WIDTH + c] - mean, 2);
        }
    }
    return sqrt(rest / all);
}

static const att_measurement *figure(const att_measurement *all, int count, const char *instrument, const char *node,
                                     const char *statistic)
{
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].instrument, instrument) == 0 && strcmp(all[i].node, node) == 0 && all[i].head == -1 &&
            strcmp(all[i].statistic, statistic) == 0)
            return &all[i];
    fail_msg("there is no %s %s of %s", instrument, statistic, node);
    return NULL;
}

TEST(figures_of_texts_are_those_of_their_own_tokens)
{
    const row *r = &rows[0];
    text texts[MOST_TEXTS];
    att_token_ids ids[MOST_TEXTS];
    const int count = take_texts(r, texts, ids);
    att_network *network = open_network(r);
    double entropy = 0, distance = 0, bound = 0, residual = 0;
    must(att_network_select_outputs(network, "blocks.1.attn.map,tokens"));
    for (int i = 0; i < count; i++) {
        att_batch answers;
        double of_maps[2];
        must(run(network, texts[i].tokens, texts[i].types, &texts[i].count, texts[i].count, 1, &answers));
        figures_of_maps(att_batch_rows(&answers, "blocks.1.attn.map"), 2, texts[i].count, &of_maps[0], &of_maps[1]);
        entropy += of_maps[0] / count, distance += of_maps[1] / count;
        bound += log(texts[i].count) / count;
        residual += residual_of(att_batch_rows(&answers, "tokens"), texts[i].count) / count;
    }
    att_measure *measure;
    int figures;
    must(att_network_measure_texts(network, ids, count, "entropy,distance,residual,collapse", NULL, NULL, &measure));
    const att_measurement *all = att_measure_observed(measure, &figures);
    const att_measurement *found = figure(all, figures, "entropy", "blocks.1.attn", "mean");
    assert_int_equal(found->count, count);
    assert_true(fabs(found->mean - entropy) < 1e-6); /* measured: 3.6e-8 */
    assert_true(fabs(found->bound - bound) < 1e-12);
    found = figure(all, figures, "distance", "blocks.1.attn", "mean");
    assert_true(fabs(found->mean - distance) < 1e-6); /* measured: 1.5e-8 */
    found = figure(all, figures, "residual", "blocks.1.add2", "frobenius");
    assert_true(fabs(found->mean - residual) < 1e-6); /* measured: 1.7e-9 */
    att_measure_destroy(&measure);
    att_network_close(&network);
}

/* The residuals of a part of the network, in the order of its steps: two for each block with MLPs, else one. */
static double compare_part(const att_measurement *all, int figures, const text *t, int part)
{
    const bool mlp = part >= 2;
    char statistic[32], node[32];
    double worst = 0;
    snprintf(statistic, sizeof statistic, "frobenius %s", part_names[part]);
    assert_int_equal(t->part_counts[part], mlp ? 5 : 3);
    for (int i = 0; i < t->part_counts[part]; i++) {
        const int step = i - 1;
        snprintf(node, sizeof node, "blocks.%d.add%d", mlp ? step / 2 : step, mlp ? 1 + step % 2 : 1);
        const att_measurement *found = figure(all, figures, "collapse", i == 0 ? "input" : node, statistic);
        worst = fmax(worst, fabs(found->mean - t->parts[part][i]));
    }
    return worst;
}

TEST(residuals_without_skips_and_mlps_are_those_of_pytorch)
{
    text texts[MOST_TEXTS];
    att_token_ids ids[MOST_TEXTS];
    take_texts(&rows[0], texts, ids);
    att_network *network = open_network(&rows[0]);
    att_measure *measure;
    int figures;
    double worst = 0;
    must(att_network_measure_texts(network, ids, 1, "collapse", NULL, NULL, &measure));
    const att_measurement *all = att_measure_observed(measure, &figures);
    for (int part = 0; part < PARTS; part++)
        worst = fmax(worst, compare_part(all, figures, &texts[0], part));
    print_message("residuals differ by up to %.2g\n", worst);
    assert_true(worst < 1e-6); /* measured: 7.2e-8 */
    att_measure_destroy(&measure);
    att_network_close(&network);
}

TEST(padded_texts_are_not_measured_as_they_are)
{
    att_network *network = open_network(&rows[0]);
    const int32_t tokens[32] = {2, 3}, types[32] = {0}, counts[2] = {16, 3};
    const att_field fields[] = {
        {"tokens", ATT_I32, att_shape_of(16)}, {"types", ATT_I32, att_shape_of(16)}, {"count", ATT_I32, {0}}};
    const void *const data[] = {tokens, types, counts};
    att_batch inputs = {.count = 2, .field_count = 3, .fields = fields, .data = data};
    att_measure *measure;
    must(att_network_observe(network, "entropy", NULL, &measure));
    assert_fails(context, att_network_measure(network, measure, &inputs, NULL), ATT_ERR_UNSUPPORTED,
                 "text 1 has 3 tokens and is padded to 16");
    inputs.count = 1;
    must(att_network_measure(network, measure, &inputs, NULL));
    att_measure_destroy(&measure);
    att_network_close(&network);
}

/* --- bad input ---------------------------------------------------------------------------------------------------- */

TEST(numbers_and_lengths_that_do_not_exist_are_refused)
{
    att_network *network = open_network(&rows[0]);
    const int32_t good[17] = {2, 3}, bad[2] = {2, 20}, negative[2] = {-1, 2}, two = 2, three = 3, none = 0;
    const int32_t types[17] = {0}, bad_types[2] = {0, 2};
    att_batch answers;
    assert_fails(context, run(network, bad, types, &two, 2, 1, &answers), ATT_ERR_ARGUMENT,
                 "the input \"tokens\" of bert_base_uncased has the number 20, expected 0 to 19 (vocab_size 20)");
    assert_fails(context, run(network, negative, types, &two, 2, 1, &answers), ATT_ERR_ARGUMENT, "the number -1");
    assert_fails(context, run(network, good, bad_types, &two, 2, 1, &answers), ATT_ERR_ARGUMENT, "\"types\"");
    assert_fails(context, run(network, good, types, &three, 2, 1, &answers), ATT_ERR_ARGUMENT,
                 "\"count\" of bert_base_uncased has the number 3, expected 1 to 2");
    assert_fails(context, run(network, good, types, &none, 2, 1, &answers), ATT_ERR_ARGUMENT, "the number 0");
    assert_fails(context, run(network, good, NULL, &two, 2, 1, &answers), ATT_ERR_ARGUMENT, "\"types\" is not given");
    assert_fails(context, run(network, good, types, &two, 17, 1, &answers), ATT_ERR_ARGUMENT,
                 "a text of 17 tokens is longer than the network's table of positions, which has 16 rows");
    const att_token_ids texts[] = {{good, .count = 2}, {good, .count = 17}, {good, .count = 0}, {bad, .count = 2}};
    att_embedding vectors;
    assert_fails(context, att_network_embed_texts(network, texts, 2, NULL, &vectors), ATT_ERR_ARGUMENT,
                 "text 1 has 17 tokens; bert_base_uncased takes 1 to 16");
    assert_fails(context, att_network_embed_texts(network, texts + 2, 1, NULL, &vectors), ATT_ERR_ARGUMENT, "0 tokens");
    assert_fails(context, att_network_embed_texts(network, texts + 3, 1, NULL, &vectors), ATT_ERR_ARGUMENT,
                 "number 20");
    att_texts_options options = att_texts_options_defaults();
    options.output = "tokens";
    assert_fails(context, att_network_embed_texts(network, texts, 1, &options, &vectors), ATT_ERR_ARGUMENT,
                 "\"tokens\" is not one vector for each text");
    att_network_close(&network);
    must(att_network_open(context, "vit_tiny_patch16_224", NULL, &network));
    assert_int_equal(att_network_most_tokens(network), 0);
    assert_fails(context, att_network_embed_texts(network, texts, 1, NULL, &vectors), ATT_ERR_UNSUPPORTED,
                 "takes no tokens of texts");
    att_network_close(&network);
}
