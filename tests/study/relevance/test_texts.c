/* Relevance of the tokens of a text against PyTorch (tools/goldens/encoders.py), and methods that texts do not have. */
#include <attscope/encoder.h>
#include <attscope/relevance.h>

#include "context.h"
#include "golden_path.h"

SHARED_CONTEXT(threads, 2)

enum { MOST = 16 };

typedef struct expected {
    int32_t tokens[MOST], types[MOST];
    double chefer[MOST];
    int count, relevant;
} expected;

static int read_numbers(const char *from, double numbers[MOST])
{
    int count = 0, used;
    for (; count < MOST && sscanf(from, "%lf%n", &numbers[count], &used) == 1; count++)
        from += used;
    return count;
}

static void take_line(const char *line, expected *text)
{
    double numbers[MOST];
    char word[16] = "";
    assert_int_equal(sscanf(line, "%15s", word), 1);
    const int count = read_numbers(line + strlen(word), numbers);
    if (strcmp(word, "tokens") == 0)
        *text = (expected){.count = count};
    for (int i = 0; i < count; i++) {
        if (strcmp(word, "tokens") == 0)
            text->tokens[i] = (int32_t)numbers[i];
        if (strcmp(word, "types") == 0)
            text->types[i] = (int32_t)numbers[i];
        if (strcmp(word, "chefer") == 0)
            text->chefer[text->relevant++] = numbers[i];
    }
}

static att_network *open_network(const char *name)
{
    char folder[64], path[4096];
    att_network *network;
    snprintf(folder, sizeof folder, "encoders/%s", name);
    golden_path(folder, path, sizeof path);
    must(att_network_open(context, path, NULL, &network));
    return network;
}

typedef struct opened {
    att_explorer *explorer;
    att_relevance *relevance;
    att_text_inputs room;
    att_batch inputs;
} opened;

static void open_text(att_network *network, const att_token_ids *ids, opened *o)
{
    o->inputs = att_network_text_inputs(network, ids, &o->room);
    must(att_explorer_create_for(network, &o->inputs, NULL, &o->explorer));
    must(att_relevance_create(o->explorer, &o->relevance));
}

static void close_text(opened *o)
{
    att_relevance_destroy(&o->relevance);
    att_explorer_destroy(&o->explorer);
}

/* Largest difference, as a part of the largest value without the 1 of the token that the head reads. */
static double error_of(att_network *network, const expected *text)
{
    const att_token_ids ids = {.tokens = text->tokens, .types = text->types, .count = text->count};
    att_relevance_map map;
    double most = 0, size = 0;
    opened o = {0};
    open_text(network, &ids, &o);
    must(att_relevance_run(o.relevance, &o.inputs, "chefer", -1, &map));
    assert_int_equal(map.height, 1);
    assert_int_equal(map.width, text->relevant);
    for (int i = 0; i < text->relevant; i++) {
        most = fmax(most, fabs(map.values[i] - (i == 0) - text->chefer[i]));
        size = fmax(size, fabs(text->chefer[i]));
    }
    close_text(&o);
    return most / size;
}

TEST(relevance_of_tokens_is_that_of_pytorch)
{
    char path[4096], line[4096];
    expected text = {0};
    int compared = 0;
    double most = 0;
    att_network *network = open_network("bert_classes");
    golden_path("encoders/bert_classes/expected.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        take_line(line, &text);
        if (strncmp(line, "chefer ", 7) != 0)
            continue;
        most = fmax(most, error_of(network, &text));
        compared++;
    }
    fclose(file);
    assert_int_equal(compared, 3);
    print_message("largest difference %.2g\n", most);
    assert_true(most < 1e-5); /* measured: 1.7e-7 */
    att_network_close(&network);
}

TEST(methods_that_change_pixels_are_refused)
{
    static const int32_t tokens[] = {2, 5, 6, 3}, types[4] = {0};
    const att_token_ids ids = {.tokens = tokens, .types = types, .count = 4};
    att_network *network = open_network("bert_classes");
    att_relevance_map map;
    opened o = {0};
    int applied = 0;
    double numbers[8], area;
    open_text(network, &ids, &o);
    for (int i = 0; i < att_relevance_method_count(); i++) {
        const att_relevance_method_info info = att_relevance_method_at(i);
        const att_status status = att_relevance_run(o.relevance, &o.inputs, info.name, 1, &map);
        if (info.needs_image)
            assert_fails(context, status, ATT_ERR_UNSUPPORTED, "these methods apply to texts: chefer");
        else
            must(status);
        applied += !info.needs_image;
    }
    assert_int_equal(applied, 5);
    must(att_relevance_run(o.relevance, &o.inputs, "rollout", 1, &map));
    assert_fails(context, att_relevance_curve(o.relevance, &o.inputs, &map, 1, ATT_DELETION, 4, numbers, &area),
                 ATT_ERR_UNSUPPORTED, "curves change pixels");
    close_text(&o);
    att_network_close(&network);
    network = open_network("bert");
    o.inputs = att_network_text_inputs(network, &ids, &o.room);
    must(att_explorer_create_for(network, &o.inputs, NULL, &o.explorer));
    assert_false(att_relevance_applies(o.explorer));
    assert_fails(context, att_relevance_create(o.explorer, &o.relevance), ATT_ERR_UNSUPPORTED, "no head");
    close_text(&o);
    att_network_close(&network);
}
