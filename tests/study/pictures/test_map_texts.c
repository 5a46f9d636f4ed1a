/* Maps of texts: their files, the words in them, and what texts do not have. */
#include <attscope/encoder.h>
#include <attscope/map_files.h>

#include <unistd.h>

#include "context.h"
#include "golden_path.h"

SHARED_CONTEXT(threads, 1)

enum { COUNT = 5, HEADS = 2 };

static char folder[64];

static void write_vocabulary(char path[96])
{
    strcpy(folder, "/tmp/att_maps_XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, 96, "%s/vocab.txt", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n<\nb\n##c\n\xE4\xBA\xBA\ne\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static att_network *open_texts(const char *name, att_token_texts *texts)
{
    static const att_encode_text given[] = {{"<bc", 3}, {"\xE4\xBA\xBA", 3}, {"e e e", 5}};
    char vocabulary[96], golden[64], path[4096];
    att_network *network;
    snprintf(golden, sizeof golden, "encoders/%s", name);
    golden_path(golden, path, sizeof path);
    must(att_network_open(context, path, NULL, &network));
    write_vocabulary(vocabulary);
    must(att_network_tokenize(network, vocabulary, given, 3, 0, NULL, texts));
    return network;
}

static void close_texts(att_network *network, att_token_texts *texts)
{
    char command[128];
    att_token_texts_free(context, texts);
    att_network_close(&network);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* The text of a file in the folder; the caller frees it. */
static char *read_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/maps/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("there is no file %s", path);
    char *bytes = calloc(1, 1 << 20);
    assert_true(fread(bytes, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return bytes;
}

static void expect(const char *name, const char *part, int times)
{
    char *bytes = read_file(name);
    int found = 0;
    for (const char *at = bytes; (at = strstr(at, part)); at++)
        found++;
    if (found != times)
        fail_msg("%s has \"%s\" %d times, should be %d times", name, part, found, times);
    free(bytes);
}

/* Values of the maps that were told. */
typedef struct told {
    int texts, maps;
    int width;
    double last[16];
} told;

static void note(void *user, const char *name, const att_named_map *maps, int count)
{
    told *t = user;
    char expected[16];
    snprintf(expected, sizeof expected, "text%d", ++t->texts);
    assert_string_equal(name, expected);
    t->maps += count;
    t->width = maps[count - 1].map.width;
    assert_int_equal(maps[count - 1].map.height, 1);
    memcpy(t->last, maps[count - 1].map.values, (size_t)t->width * sizeof *t->last);
}

static att_status draw(att_network *network, const att_token_texts *texts, att_map_options options, told *t)
{
    char path[80];
    att_map_files *files = NULL;
    *t = (told){0};
    options.found = note;
    options.found_user = t;
    snprintf(path, sizeof path, "%s/maps", folder);
    att_status status = att_map_files_open(network, &options, path, &files);
    if (status == ATT_OK)
        status = att_map_files_add_texts(files, texts);
    if (status == ATT_OK)
        status = att_map_files_finish(files);
    att_map_files_close(&files);
    return status;
}

TEST(words_are_in_the_pictures_and_weights_in_the_values)
{
    att_token_texts texts = {0};
    att_network *network = open_texts("bert", &texts);
    att_map_options options = att_map_options_defaults();
    att_text_inputs room;
    att_batch answers;
    told t;
    options.query = "token:1";
    options.heads = "1";
    must(draw(network, &texts, options, &t));
    assert_int_equal(t.texts, 3);
    assert_int_equal(t.maps, 3);
    expect("text1.attention.blocks.1.attn.head1.svg", "<rect", COUNT + 1);
    expect("text1.attention.blocks.1.attn.head1.svg", ">&lt;</text>", 1);
    expect("text1.attention.blocks.1.attn.head1.svg", ">##c</text>", 1);
    expect("text2.attention.blocks.1.attn.head1.svg", ">\xE4\xBA\xBA</text>", 1);
    const att_batch inputs = att_network_text_inputs(network, &texts.texts[2], &room);
    must(att_network_select_outputs(network, "blocks.1.attn.map"));
    must(att_network_run(network, &inputs, &answers));
    const float *map = answers.data[0];
    assert_int_equal(t.width, COUNT);
    for (int j = 0; j < COUNT; j++) /* measured: 1.5e-8 */
        assert_true(fabs(t.last[j] - (double)map[(COUNT + 1) * COUNT + j]) < 1e-6);
    options.query = NULL; /* the first token */
    must(draw(network, &texts, options, &t));
    for (int j = 0; j < COUNT; j++)
        assert_true(fabs(t.last[j] - (double)map[COUNT * COUNT + j]) < 1e-6); /* measured: 1.5e-8 */
    options.form = "grid";
    options.heads = NULL;
    options.show = "attention,mean";
    must(draw(network, &texts, options, &t));
    assert_int_equal(t.maps, 3 * 2 * 2 * HEADS); /* items, layers, heads */
    expect("text1.mean.svg", ">mean.blocks.0.attn.head1</text>", 1);
    expect("text1.mean.svg", "<rect", 2 * HEADS * COUNT + 1);
    close_texts(network, &texts);
}

TEST(a_classifier_has_maps_of_relevance)
{
    att_token_texts texts = {0};
    att_network *network = open_texts("bert_classes", &texts);
    att_map_options options = att_map_options_defaults();
    told t;
    options.show = "chefer,grad_cam";
    options.target = 2;
    must(draw(network, &texts, options, &t));
    assert_int_equal(t.maps, 6);
    expect("text3.chefer.svg", "<rect", COUNT + 1);
    close_texts(network, &texts);
}

TEST(what_texts_do_not_have_is_refused)
{
    const att_map_options usual = att_map_options_defaults();
    static const struct {
        const char *show, *query, *at, *form, *format, *means;
        bool smooth;
        att_status status;
        const char *part;
    } wrong[] = {
        {.format = "png", .status = ATT_ERR_UNSUPPORTED, .part = "format \"png\": pictures of texts are svg"},
        {.means = "all", .status = ATT_ERR_UNSUPPORTED, .part = "the tokens of two texts do not correspond"},
        {.form = "map", .status = ATT_ERR_UNSUPPORTED, .part = "the form map is for images"},
        {.smooth = true, .status = ATT_ERR_UNSUPPORTED, .part = "smooth is for images"},
        {.at = "0.5,0.5", .status = ATT_ERR_ARGUMENT, .part = "of a text give query token:N"},
        {.query = "token:5", .status = ATT_ERR_ARGUMENT, .part = "this text has 5 tokens; expected class"},
        {.query = "prefix:0", .status = ATT_ERR_ARGUMENT, .part = "expected class, which is the first one"},
        {.show = "chefer", .status = ATT_ERR_UNSUPPORTED, .part = "no head"},
    };
    att_token_texts texts = {0};
    att_network *network = open_texts("bert", &texts), *images;
    told t;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_map_options options = usual;
        options.show = wrong[i].show ? wrong[i].show : options.show;
        options.form = wrong[i].form ? wrong[i].form : options.form;
        options.means = wrong[i].means ? wrong[i].means : options.means;
        options.query = wrong[i].query;
        options.at = wrong[i].at;
        options.format = wrong[i].format;
        options.smooth = wrong[i].smooth;
        assert_fails(context, draw(network, &texts, options, &t), wrong[i].status, wrong[i].part);
    }
    must(att_network_open(context, "vit_tiny_patch16_224", NULL, &images));
    assert_fails(context, draw(images, &texts, usual, &t), ATT_ERR_UNSUPPORTED, "reads images, and these are texts");
    att_network_close(&images);
    close_texts(network, &texts);
}
