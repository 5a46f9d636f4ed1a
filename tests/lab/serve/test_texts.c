/* The engine of the pages with a network for texts, against the network itself. */
#include <unistd.h>

#include "context.h"
#include "golden_path.h"
#include "lab/serve/engine_parts.h"

SHARED_CONTEXT(threads, 2)

enum { COUNT = 5, HEADS = 2, LAYERS = 2, WIDTH = 8 };

/* "[CLS] a b ##c [SEP]" */
static const int32_t ids[COUNT] = {2, 5, 6, 8, 3}, types[COUNT] = {0};
static const att_token_ids text = {.tokens = ids, .types = types, .count = COUNT};

typedef struct opened {
    char folder[64], texts[80], vocabulary[80], path[4096];
    att_engine *engine;
    att_json_writer *writer;
} opened;

static void write_file(const char *path, const char *bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(bytes, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static opened begin(const char *network)
{
    opened o = {.folder = "/tmp/att_texts_XXXXXX"};
    char name[64];
    assert_non_null(mkdtemp(o.folder));
    snprintf(o.texts, sizeof o.texts, "%s/texts.txt", o.folder);
    snprintf(o.vocabulary, sizeof o.vocabulary, "%s/vocab.txt", o.folder);
    write_file(o.texts, "a bc\nd \xC3\xA9\n\n");
    write_file(o.vocabulary, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##c\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\n");
    snprintf(name, sizeof name, "encoders/%s", network);
    golden_path(name, o.path, sizeof o.path);
    must(att_engine_create(context, &(att_engine_options){.texts = o.texts, .tokenizer = o.vocabulary}, &o.engine));
    must(att_json_writer_create(context, false, &o.writer));
    return o;
}

static void end(opened *o)
{
    att_json_writer_destroy(&o->writer);
    att_engine_destroy(&o->engine);
    assert_int_equal(unlink(o->texts), 0);
    assert_int_equal(unlink(o->vocabulary), 0);
    assert_int_equal(rmdir(o->folder), 0);
}

static const char *finish(const opened *o)
{
    const char *json;
    size_t length;
    att_json_end_object(o->writer);
    must(att_json_writer_finish(o->writer, &json, &length));
    return json;
}

/* The JSON of an answer; valid until the next one. */
static const char *answer_of(const opened *o, const char *id, const char *changes)
{
    const att_engine_view view = {o->path, id, changes};
    att_json_begin_object(o->writer);
    must(att_engine_write_answer(o->engine, context, &view, o->writer));
    return finish(o);
}

static att_network *open_network(const opened *o)
{
    att_network *network;
    must(att_network_open(context, o->path, NULL, &network));
    return network;
}

/* The mean over the tokens of the last block, with head 1 of layer 0 removed or not. */
static void find_mean(att_network *network, bool changed, double mean[WIDTH])
{
    att_explorer *explorer;
    att_text_inputs room;
    att_batch answers;
    const att_batch inputs = att_network_text_inputs(network, &text, &room);
    must(att_explorer_create_for(network, &inputs, "tokens", &explorer));
    must(att_explorer_change_head(explorer, 0, 1, changed ? ATT_HEAD_REMOVED : ATT_HEAD_KEPT));
    must(att_explorer_run(explorer, &inputs, &answers));
    const float *tokens = att_batch_field(&answers, "tokens");
    for (int c = 0; c < WIDTH; c++) {
        mean[c] = 0;
        for (int i = 0; i < COUNT; i++)
            mean[c] += (double)tokens[i * WIDTH + c] / COUNT;
    }
    att_explorer_destroy(&explorer);
}

static double distance_in(const char *json)
{
    const char *at = strstr(json, "\"vector\":{\"name\":\"mean\",\"width\":8,\"distance\":");
    assert_non_null(at);
    return strtod(strstr(at, "distance") + strlen("distance\":"), NULL);
}

TEST(a_text_has_its_tokens_and_a_changed_network_a_distance)
{
    opened o = begin("bert");
    att_network *network = open_network(&o);
    double plain[WIDTH], changed[WIDTH], ab = 0, aa = 0, bb = 0;
    const char *json = answer_of(&o, "t0", "");
    static const char pieces[] =
        "\"text\":{\"pieces\":[{\"piece\":\"[CLS]\",\"special\":true},{\"piece\":\"a\",\"special\":false},"
        "{\"piece\":\"b\",\"special\":false},{\"piece\":\"##c\",\"special\":false},"
        "{\"piece\":\"[SEP]\",\"special\":true}],\"shortened\":0}";
    if (!strstr(json, pieces))
        fail_msg("%s", json);
    assert_non_null(strstr(json, "\"tokens\":5"));
    assert_true(distance_in(json) == 0);
    find_mean(network, false, plain);
    find_mean(network, true, changed);
    for (int c = 0; c < WIDTH; c++) {
        ab += plain[c] * changed[c];
        aa += plain[c] * plain[c];
        bb += changed[c] * changed[c];
    }
    const double expected = 1 - ab / sqrt(aa * bb), found = distance_in(answer_of(&o, "t0", "h0.1r"));
    print_message("distance %.6g, should be %.6g\n", found, expected);
    assert_true(expected > 1e-5 && fabs(found - expected) < 1e-6); /* measured: 2.9e-9 */
    assert_true(distance_in(answer_of(&o, "text:a bc", "h0.1r")) == found);
    assert_true(distance_in(answer_of(&o, "t0", "t2")) > 1e-5);
    assert_non_null(strstr(answer_of(&o, "t1", ""), "{\"piece\":\"e\",\"special\":false}")); /* of a line of its own */
    assert_non_null(strstr(answer_of(&o, "t2", ""), "\"tokens\":2"));                        /* an empty line */
    att_network_close(&network);
    end(&o);
}

TEST(weights_of_a_text_are_those_of_the_map)
{
    opened o = begin("bert");
    att_network *network = open_network(&o);
    att_text_inputs room;
    att_batch answers;
    const att_batch inputs = att_network_text_inputs(network, &text, &room);
    const att_engine_view view = {o.path, "t0", ""};
    const att_row_options options = att_row_options_defaults();
    const int queries[LAYERS] = {3, 3};
    att_text out = {.context = context};
    must(att_engine_weights(o.engine, context, &view, ATT_ENGINE_ROW, queries, LAYERS, &options, &out));
    assert_int_equal(out.length, sizeof(float) * LAYERS * HEADS * COUNT);
    must(att_network_select_outputs(network, "blocks.1.attn.map"));
    must(att_network_run(network, &inputs, &answers));
    const float *map = answers.data[0], *rows = (const float *)out.data + HEADS * COUNT;
    for (int h = 0; h < HEADS; h++)
        for (int j = 0; j < COUNT; j++) /* measured: 3.0e-8 */
            assert_true(fabs(rows[h * COUNT + j] - map[(h * COUNT + 3) * COUNT + j]) < 1e-6);
    att_text_free(&out);
    att_network_close(&network);
    end(&o);
}

TEST(a_classifier_of_texts_has_classes_and_relevance)
{
    opened o = begin("bert_classes");
    const att_engine_view view = {o.path, "t0", ""};
    const char *json = answer_of(&o, "t0", "");
    assert_non_null(strstr(json, "\"top\":[{\"class\":"));
    assert_null(strstr(json, "\"vector\""));
    att_json_begin_object(o.writer);
    must(att_engine_write_relevance(o.engine, context, &view, "chefer", 1, o.writer));
    assert_non_null(strstr(finish(&o), "\"height\":1,\"width\":5,"));
    att_json_begin_object(o.writer);
    must(att_engine_write_model(o.engine, context, o.path, o.writer));
    json = finish(&o);
    assert_non_null(strstr(json, "\"reads\":\"texts\""));
    assert_non_null(strstr(json, "{\"name\":\"chefer\""));
    assert_null(strstr(json, "\"occlusion\""));
    end(&o);
}

TEST(figures_of_a_text_are_those_of_the_network)
{
    opened o = begin("bert");
    att_network *network = open_network(&o);
    att_measure *measure;
    char number[ATT_NUMBER_TEXT], expected[64];
    const att_engine_view view = {o.path, "t0", ""};
    must(att_network_measure_texts(network, &text, 1, "entropy", "*", NULL, &measure));
    snprintf(expected, sizeof expected, "\"mean\":%s", att_format_number(att_measure_at(measure, 0).mean, number));
    att_json_begin_object(o.writer);
    must(att_engine_write_figures(o.engine, context, &view, "entropy", o.writer));
    assert_non_null(strstr(finish(&o), expected));
    att_measure_destroy(&measure);
    att_network_close(&network);
    end(&o);
}

TEST(texts_are_listed_and_what_is_none_is_refused)
{
    static const struct {
        const char *id, *part;
        att_status status;
    } wrong[] = {{"d0", "bert_base_uncased reads texts, and d0 is an image", ATT_ERR_UNSUPPORTED},
                 {"u0", "reads texts, and u0 is an image", ATT_ERR_UNSUPPORTED},
                 {"t3", "there is no text \"t3\": expected t0 to t2, or text: and the text itself", ATT_ERR_NOT_FOUND},
                 {"", "there is no text \"\"", ATT_ERR_NOT_FOUND},
                 {"t-1", "there is no text \"t-1\"", ATT_ERR_NOT_FOUND},
                 {"text:\xFF", "UTF-8", ATT_ERR_FORMAT}};
    opened o = begin("bert");
    att_text out = {.context = context};
    att_engine_view view = {o.path, "t0", ""};
    att_json_begin_object(o.writer);
    must(att_engine_write_images(o.engine, context, 1, 1, o.writer));
    assert_string_equal(finish(&o),
                        "{\"images\":[],\"count\":0,\"uploads\":[],\"texts\":[{\"id\":\"t1\",\"name\":\"d "
                        "\xC3\xA9\"}],\"text_count\":3}");
    assert_fails(context, att_engine_input(o.engine, context, &view, &out), ATT_ERR_UNSUPPORTED, "has no pixels");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        view.image = wrong[i].id;
        assert_fails(context, att_engine_input(o.engine, context, &view, &out), wrong[i].status, wrong[i].part);
    }
    view = (att_engine_view){"vit_tiny_patch16_224", "text:a", ""};
    assert_fails(context, att_engine_input(o.engine, context, &view, &out), ATT_ERR_UNSUPPORTED,
                 "vit_tiny_patch16_224 reads images, and this is a text");
    const att_engine_cuts cuts = {.heads = "all", .images = 1};
    assert_fails(context, att_engine_write_ablation(o.engine, context, o.path, &cuts, o.writer), ATT_ERR_UNSUPPORTED,
                 "reads texts, and this needs a network that reads images");
    att_text_free(&out);
    end(&o);
}
