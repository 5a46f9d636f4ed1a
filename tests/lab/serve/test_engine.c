/* The engine of the pages that explore attention, against the network itself. */
#include "base/io/jpeg.h"
#include "base/io/png_write.h"
#include "golden_path.h"
#include "lab/serve/engine_parts.h"
#include "study/network/fixture.h"

enum { TOKENS = 5, HEADS = 2, LAYERS = 2 };

typedef struct opened {
    fixture *f;
    char path[160], images[160];
    att_engine *engine;
    att_json_writer *writer;
    const char *json; /* the last document */
} opened;

static void must(const opened *o, att_status status)
{
    CHECK(o->f->context, status);
}

static void refused(const opened *o, att_status status, att_status expected, const char *part)
{
    assert_fails(o->f->context, status, expected, part);
}

/* Multiplies all weights with this part in their names. */
static void enlarge(const fixture *f, const char *part, float factor)
{
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        const att_parameter_info info = att_weights_at(f->weights, i);
        const int64_t count = att_shape_count(info.shape);
        float *values = malloc((size_t)count * sizeof *values);
        CHECK(f->context, att_weights_get(f->weights, -1, i, values, count));
        for (int64_t e = 0; strstr(info.name, part) && e < count; e++)
            values[e] *= factor;
        CHECK(f->context, att_weights_set(f->weights, -1, i, values, count));
        free(values);
    }
}

/* Replaces the fixture's network. */
static void make_network(fixture *f, const att_option_values *options)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", options, ATT_F32, &f->model));
    CHECK(f->context, att_weights_create(att_model_graph(f->model), "cpu", &f->weights));
    CHECK(f->context, att_weights_initialise(f->weights, 1));
}

/* An engine with one picture, and a file of weights whose attention is sharp. */
static opened begin(fixture *f)
{
    opened o = {.f = f};
    char picture[200];
    enlarge(f, "qkv.weight", 40);
    export(f, o.path);
    path_to(f, "pictures", o.images);
    assert_int_equal(mkdir(o.images, 0700), 0);
    snprintf(picture, sizeof picture, "%s/one.jpg", o.images);
    write_picture(picture);
    must(&o, att_engine_create(f->context, &(att_engine_options){.images = o.images}, &o.engine));
    must(&o, att_json_writer_create(f->context, false, &o.writer));
    return o;
}

static void end(opened *o)
{
    char picture[200];
    att_json_writer_destroy(&o->writer);
    att_engine_destroy(&o->engine);
    snprintf(picture, sizeof picture, "%s/one.jpg", o->images);
    assert_int_equal(unlink(picture), 0);
    assert_int_equal(rmdir(o->images), 0);
}

static att_engine_view view_of(const opened *o, const char *image, const char *changes)
{
    return (att_engine_view){.path = o->path, .image = image, .changes = changes};
}

/* The JSON of an answer; valid until the next one. */
static const char *answer_of(const opened *o, const char *image, const char *changes)
{
    const att_engine_view view = view_of(o, image, changes);
    const char *text;
    size_t length;
    att_json_begin_object(o->writer);
    must(o, att_engine_write_answer(o->engine, o->f->context, &view, o->writer));
    att_json_end_object(o->writer);
    must(o, att_json_writer_finish(o->writer, &text, &length));
    return text;
}

static void read_logits(const char *json, double logits[CLASSES])
{
    const char *at = strstr(json, "\"logits\":[");
    assert_non_null(at);
    at += strlen("\"logits\":[");
    for (int c = 0; c < CLASSES; c++) {
        char *rest;
        logits[c] = strtod(at, &rest);
        at = rest + 1;
    }
}

/* Appends the weights of all layers for one query of each. */
static att_status weights_of(const opened *o, const char *image, const char *changes, att_engine_way way, int query,
                             att_text *out)
{
    const att_engine_view view = view_of(o, image, changes);
    const att_row_options options = att_row_options_defaults();
    const int queries[LAYERS] = {query, query};
    *out = (att_text){.context = o->f->context};
    return att_engine_weights(o->engine, o->f->context, &view, way, queries, LAYERS, &options, out);
}

FIXTURE_TEST(answers_are_those_of_the_network)
{
    opened o = begin(f);
    char picture[200];
    att_batch answers;
    double logits[CLASSES];
    att_network *network = open_network(o.f, o.path);
    snprintf(picture, sizeof picture, "%s/one.jpg", o.images);
    assert_int_equal(att_network_run_file(network, picture, &answers), ATT_OK);
    const float *expected = att_batch_field(&answers, "logits");
    const char *json = answer_of(&o, "d0", "");
    read_logits(json, logits);
    for (int c = 0; c < CLASSES; c++)
        assert_true((float)logits[c] == expected[c]);
    assert_non_null(strstr(json, "\"input\":[8,8,1]"));
    read_logits(answer_of(&o, "d0", "h1.0r"), logits);
    assert_true((float)logits[0] != expected[0]);
    att_network_close(&network);
    end(&o);
}

FIXTURE_TEST(weights_are_those_of_the_maps)
{
    opened o = begin(f);
    char picture[200];
    att_batch answers;
    att_network *network = open_network(o.f, o.path);
    att_text row, mean;
    snprintf(picture, sizeof picture, "%s/one.jpg", o.images);
    assert_int_equal(att_network_select_outputs(network, "*.map"), ATT_OK);
    assert_int_equal(att_network_run_file(network, picture, &answers), ATT_OK);
    double means[LAYERS][HEADS][TOKENS] = {0}, most = 0;
    for (int query = 0; query < TOKENS; query++) {
        must(&o, weights_of(&o, "d0", "", ATT_ENGINE_ROW, query, &row));
        assert_int_equal(row.length, LAYERS * HEADS * TOKENS * sizeof(float));
        for (int l = 0; l < LAYERS; l++) {
            char name[32];
            snprintf(name, sizeof name, "blocks.%d.attn.map", l);
            const float *map = att_batch_field(&answers, name);
            for (int e = 0; e < HEADS * TOKENS; e++) {
                float weight;
                memcpy(&weight, row.data + ((size_t)l * HEADS * TOKENS + (size_t)e) * sizeof weight, sizeof weight);
                const float expected = map[(e / TOKENS * TOKENS + query) * TOKENS + e % TOKENS];
                most = fmax(most, fabs((double)weight - (double)expected));
                means[l][e / TOKENS][e % TOKENS] += (double)expected / TOKENS;
            }
        }
        att_text_free(&row);
    }
    assert_true(most < 1e-6); /* measured: 6e-8 */
    must(&o, weights_of(&o, "d0", "", ATT_ENGINE_MEAN, 0, &mean));
    assert_int_equal(mean.length, LAYERS * HEADS * TOKENS * sizeof(float));
    for (int e = 0; e < LAYERS * HEADS * TOKENS; e++) {
        float weight;
        memcpy(&weight, mean.data + (size_t)e * sizeof weight, sizeof weight);
        assert_true(fabs((double)weight - ((double *)means)[e]) < 1e-6); /* measured: 6e-8 */
    }
    att_text_free(&mean);
    must(&o, weights_of(&o, "d0", "", ATT_ENGINE_ROLLOUT, 3, &row));
    assert_int_equal(row.length, LAYERS * TOKENS * sizeof(float));
    float sum = 0;
    for (int e = 0; e < TOKENS; e++)
        sum += ((float *)(void *)row.data)[e];
    assert_true(fabsf(sum - 1) < 1e-6F); /* measured: 6e-8 */
    att_text_free(&row);
    att_network_close(&network);
    end(&o);
}

/* Two views of a network alternate without new runs: the time of a run is that of the first one. */
FIXTURE_TEST(the_last_two_runs_are_kept)
{
    opened o = begin(f);
    char first[4096], second[4096];
    snprintf(first, sizeof first, "%s", answer_of(&o, "d0", ""));
    snprintf(second, sizeof second, "%s", answer_of(&o, "d0", "b1"));
    assert_string_equal(answer_of(&o, "d0", ""), first);
    assert_string_equal(answer_of(&o, "d0", "b1"), second);
    assert_string_not_equal(strstr(first, "logits"), strstr(second, "logits"));
    answer_of(&o, "d0", "b2");
    assert_string_equal(answer_of(&o, "d0", "b1"), second);
    assert_string_equal(strstr(answer_of(&o, "d0", ""), "\"top\""), strstr(first, "\"top\""));
    end(&o);
}

/* A training run replaces its checkpoint by a new file. */
FIXTURE_TEST(a_replaced_checkpoint_is_read_again)
{
    opened o = begin(f);
    char newer[200];
    double before[CLASSES], after[CLASSES];
    float bias[CLASSES] = {3};
    att_weights *weights = o.f->weights;
    read_logits(answer_of(&o, "d0", ""), before);
    must(&o, att_weights_set(weights, -1, att_weights_find(weights, "head.bias"), bias, CLASSES));
    must(&o, att_checkpoint_export(o.f->model, weights, path_to(o.f, "newer.safetensors", newer)));
    assert_int_equal(rename(newer, o.path), 0);
    read_logits(answer_of(&o, "d0", ""), after);
    assert_true(after[0] - before[0] > 2);
    end(&o);
}

FIXTURE_TEST(changes_are_read)
{
    static const char *const good[] = {"", "h0.0r", "h1.1u", "b3", "t4", "h0.1r-h1.0u-b0-t0", "b0-b0", "b0-"};
    static const struct {
        const char *changes, *part;
    } bad[] = {{"x", "the change \"x\" is none of"},
               {"h0", "is none of"},
               {"h0.0", "is none of"},
               {"h0.0x", "is none of"},
               {"h0.0rr", "is none of"},
               {"b", "is none of"},
               {"b1x", "is none of"},
               {"-b1", "the change \"\" is none of"},
               {"b99999999999999999999", "is none of"},
               {"t-1", "the change \"t\" is none of"},
               {"h2.0r", "attention layer 2 does not exist: expected 0 to 1"},
               {"h0.2r", "head 2 does not exist: expected 0 to 1"},
               {"b4", "residual branch 4 does not exist"},
               {"t5", "token 5 does not exist"},
               {"t0-t1-t2-t3-t4", "is the last one that remains"}};
    opened o = begin(f);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        answer_of(&o, "d0", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const att_engine_view view = view_of(&o, "d0", bad[i].changes);
        refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_ARGUMENT, bad[i].part);
    }
    char many[ATT_ENGINE_CHANGES + 8];
    memset(many, '-', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    const att_engine_view view = view_of(&o, "d0", many);
    refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_ARGUMENT, "more than 2047");
    end(&o);
}

FIXTURE_TEST(uploads_are_images)
{
    opened o = begin(f);
    char id[ATT_ENGINE_ID], first[8192];
    void *picture;
    size_t size;
    picture_make(100, &picture, &size);
    for (int i = 0; i <= ATT_ENGINE_UPLOADS; i++) {
        char expected[ATT_ENGINE_ID];
        must(&o, att_engine_upload(o.engine, o.f->context, "cat.png", picture, size, id));
        snprintf(expected, sizeof expected, "u%d", i);
        assert_string_equal(id, expected);
    }
    /* The grey image of an upload is that of the same file. */
    snprintf(first, sizeof first, "%s", answer_of(&o, "d0", ""));
    assert_string_equal(strstr(answer_of(&o, id, ""), "logits"), strstr(first, "logits"));
    answer_of(&o, "u1", "");
    static const char *const missing[] = {"u0", "u17", "d1", "d-1", "x", "", "d", "d0x", "u99999999999999999999"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        const att_engine_view view = view_of(&o, missing[i], "");
        refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_NOT_FOUND,
                "there is no image");
    }
    refused(&o, att_engine_upload(o.engine, o.f->context, "cat.png", picture, size / 2, id), ATT_ERR_FORMAT, "");
    refused(&o, att_engine_upload(o.engine, o.f->context, "cat.png", "no image", 8, id), ATT_ERR_FORMAT,
            "cat.png: not a JPEG, PNG or WebP image");
    refused(&o, att_engine_upload(o.engine, o.f->context, "cat.png", NULL, 0, id), ATT_ERR_FORMAT, "cat.png: empty");
    answer_of(&o, "d0", "");
    free(picture);
    end(&o);
}

FIXTURE_TEST(photographs_are_turned)
{
    static const uint8_t exif[] = {0xff, 0xe1, 0, 34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                   0,    1,    1, 0x12, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0};
    const jpeg_kind kind = {.width = 20, .height = 12, .components = 3, .across = 1, .down = 1};
    opened o = begin(f);
    char id[ATT_ENGINE_ID];
    uint8_t *jpeg;
    size_t size;
    jpeg_make(&kind, &jpeg, &size);
    uint8_t *file = calloc(1, size + sizeof exif);
    assert_non_null(file);
    memcpy(file, jpeg, 2);
    memcpy(file + 2, exif, sizeof exif);
    memcpy(file + 2 + sizeof exif, jpeg + 2, size - 2);
    must(&o, att_engine_upload(o.engine, o.f->context, "phone.jpg", file, size + sizeof exif, id));
    const att_image *image = &o.engine->uploads[0].image;
    assert_true(image->width == kind.height && image->height == kind.width);
    free(file);
    free(jpeg);
    end(&o);
}

static bool has_image(const opened *o, const char *id)
{
    att_text png = {.context = o->f->context};
    const att_status status = att_engine_thumbnail(o->engine, o->f->context, id, &png);
    att_text_free(&png);
    return status == ATT_OK;
}

/* Two uploads fit; a third one takes the place of the first. */
FIXTURE_TEST(uploads_have_a_limit_of_bytes)
{
    opened o = begin(f);
    char id[ATT_ENGINE_ID];
    void *picture;
    size_t size, length;
    const char *json;
    picture_make(100, &picture, &size);
    must(&o, att_engine_upload(o.engine, o.f->context, "cat.png", picture, size, id));
    const att_image *image = &o.engine->uploads[0].image;
    o.engine->upload_bytes = (size_t)image->width * (size_t)image->height * 3 * 2;
    must(&o, att_engine_upload(o.engine, o.f->context, "cat.png", picture, size, id));
    assert_true(has_image(&o, "u0") && has_image(&o, "u1"));
    must(&o, att_engine_upload(o.engine, o.f->context, "cat.png", picture, size, id));
    assert_true(!has_image(&o, "u0") && has_image(&o, "u1") && has_image(&o, "u2"));
    att_json_begin_object(o.writer);
    must(&o, att_engine_write_images(o.engine, o.f->context, 0, 1, o.writer));
    att_json_end_object(o.writer);
    must(&o, att_json_writer_finish(o.writer, &json, &length));
    assert_non_null(strstr(json, "\"uploads\":[{\"id\":\"u2\",\"name\":\"cat.png\"},{\"id\":\"u1\","));
    free(picture);
    end(&o);
}

/* The fifth network takes the place of the one that was used least recently. */
FIXTURE_TEST(few_networks_stay_open)
{
    opened o = begin(f);
    const char *const copies[] = {"a", "b", "c", "d"};
    char path[200];
    answer_of(&o, "d0", "");
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        snprintf(path, sizeof path, "%s.%s", o.path, copies[i]);
        assert_int_equal(link(o.path, path), 0);
        const att_engine_view view = {.path = path, .image = "d0", .changes = ""};
        att_text input = {.context = o.f->context};
        must(&o, att_engine_input(o.engine, o.f->context, &view, &input));
        att_text_free(&input);
        if (i == 2)
            answer_of(&o, "d0", ""); /* "a" is now the oldest */
        assert_int_equal(unlink(path), 0);
    }
    int count = 0;
    bool has_first = false;
    for (const att_opened *at = o.engine->first; at; at = at->next, count++) {
        has_first |= strcmp(at->path, o.path) == 0;
        assert_string_not_equal(at->path + strlen(at->path) - 2, ".a");
    }
    assert_true(has_first);
    assert_int_equal(count, ATT_ENGINE_NETWORKS);
    end(&o);
}

/* Names of classes that do not fit a network are those of another one. */
FIXTURE_TEST(classes_have_the_given_names)
{
    opened o = begin(f);
    char names[200];
    att_engine *named = NULL;
    for (int extra = 0; extra < 2; extra++) {
        FILE *file = fopen(path_to(o.f, "names.txt", names), "w");
        assert_non_null(file);
        for (int c = 0; c < CLASSES + extra; c++)
            fprintf(file, "animal %d\n", c);
        fclose(file);
        must(&o, att_engine_create(o.f->context, &(att_engine_options){.images = o.images, .labels = names}, &named));
        att_engine *before = o.engine;
        o.engine = named;
        assert_int_equal(strstr(answer_of(&o, "d0", ""), "\"label\":\"animal ") != NULL, extra == 0);
        o.engine = before;
        att_engine_destroy(&named);
    }
    assert_int_equal(unlink(names), 0);
    end(&o);
}

/* The logits at a pixel of the picture. */
static att_status logits_of(const opened *o, int row, int column, att_text *out)
{
    const att_engine_view view = view_of(o, "d0", "");
    *out = (att_text){.context = o->f->context};
    return att_engine_logits(o->engine, o->f->context, &view, row, column, out);
}

/* A pixel has the class of its largest logit. The logits are interpolated between those of 2 x 2 places. */
static void check_logits(const opened *o, const int32_t *map, const float *logits)
{
    double most = 0;
    att_text found;
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double down = fmin(fmax((i / SIDE + 0.5) * 2 / SIDE - 0.5, 0), 1);
        const double across = fmin(fmax((i % SIDE + 0.5) * 2 / SIDE - 0.5, 0), 1);
        float values[CLASSES];
        must(o, logits_of(o, i / SIDE, i % SIDE, &found));
        assert_int_equal(found.length, sizeof values);
        memcpy(values, found.data, sizeof values);
        att_text_free(&found);
        for (int c = 0; c < CLASSES; c++) {
            const float *place = logits + c;
            const double upper = (1 - across) * place[0] + across * place[CLASSES];
            const double lower = (1 - across) * place[2 * CLASSES] + across * place[3 * CLASSES];
            most = fmax(most, fabs((1 - down) * upper + down * lower - values[c]));
            assert_true(values[c] <= values[map[i]]);
        }
    }
    print_message("logits of pixels: %.2g\n", most);
    assert_true(most < 1e-7); /* measured: 2.8e-9 */
    refused(o, logits_of(o, 0, SIDE, &found), ATT_ERR_ARGUMENT, "row 0, column 8 is no pixel");
    refused(o, logits_of(o, SIDE, 0, &found), ATT_ERR_ARGUMENT, "which has 8 rows and 8 columns");
    assert_int_equal(found.length, 0);
}

FIXTURE_TEST(a_segmenter_has_a_class_for_each_pixel)
{
    char picture[200];
    att_batch answers;
    att_option_values options = tiny_options();
    att_options_set_text(&options, "task", "segment");
    make_network(f, &options);
    opened o = begin(f);
    att_network *network = open_network(o.f, o.path);
    snprintf(picture, sizeof picture, "%s/one.jpg", o.images);
    must(&o, att_network_run_file(network, picture, &answers));
    const int32_t *map = att_batch_field(&answers, "class_map");
    const att_engine_view view = view_of(&o, "d0", "");
    att_text classes = {.context = o.f->context};
    must(&o, att_engine_classes(o.engine, o.f->context, &view, &classes));
    assert_int_equal(classes.length, SIDE * SIDE * sizeof(uint16_t));
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_int_equal(((const uint16_t *)(const void *)classes.data)[i], map[i]);
    att_text_free(&classes);
    check_logits(&o, map, att_batch_field(&answers, "pixel_logits"));
    const char *text;
    size_t length;
    att_json_begin_object(o.writer);
    must(&o, att_engine_write_model(o.engine, o.f->context, o.path, o.writer));
    att_json_end_object(o.writer);
    must(&o, att_json_writer_finish(o.writer, &text, &length));
    assert_non_null(strstr(text, "\"drawn\":[{\"label\":null,\"colour\":\"#0060ff\"},"));
    att_network_close(&network);
    end(&o);
}

FIXTURE_TEST(a_classifier_has_no_classes_of_pixels)
{
    opened o = begin(f);
    const att_engine_view view = view_of(&o, "d0", "");
    att_text classes = {.context = o.f->context};
    refused(&o, att_engine_classes(o.engine, o.f->context, &view, &classes), ATT_ERR_UNSUPPORTED, "cannot be drawn");
    assert_int_equal(classes.length, 0);
    att_text_free(&classes);
    refused(&o, logits_of(&o, 0, 0, &classes), ATT_ERR_UNSUPPORTED, "give pixels no class");
    assert_int_equal(classes.length, 0);
    end(&o);
}

static void put(const opened *o, const char *name, const void *bytes, size_t size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", o->images, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void take_away(const opened *o, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", o->images, name);
    assert_int_equal(unlink(path), 0);
}

/* The engine again, with what its folder has now. */
static void open_again(opened *o, const char *network)
{
    att_engine_destroy(&o->engine);
    must(o,
         att_engine_create(o->f->context, &(att_engine_options){.images = o->images, .network = network}, &o->engine));
}

/* --- detectors ---------------------------------------------------------------------------------------------------- */

static att_option_values detector_options(void)
{
    static const struct {
        const char *key;
        double value;
    } numbers[] = {{"in_chans", 1},   {"num_classes", 3}, {"embed_dim", 16},     {"num_heads", 2},
                   {"depth", 4},      {"patch_size", 16}, {"head_channels", 8},  {"box_channels", 16},
                   {"proposals", 40}, {"anchor_size", 8}, {"score_thresh", 0.01}};
    att_option_values options = att_options_none();
    att_options_set_text(&options, "task", "detect");
    att_options_set_text(&options, "neck", "feature2pyramid");
    att_options_set_sides(&options, "img_size", 64, 96);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        att_options_set(&options, numbers[i].key, numbers[i].value);
    return options;
}

/* An engine with a detector of wide scores. */
static opened begin_detector(fixture *f)
{
    const att_option_values options = detector_options();
    make_network(f, &options);
    enlarge(f, "cls_score", 40);
    enlarge(f, "cls_logits", 100);
    enlarge(f, "bbox_pred", 8);
    return begin(f);
}

static void put_pattern(const opened *o, const char *name, int width, int height)
{
    uint8_t *pixels = malloc((size_t)(width * height));
    void *bytes;
    size_t size;
    for (int i = 0; i < width * height; i++)
        pixels[i] = (uint8_t)(i % width * (i / width) % 7 * 30 + i % 61);
    picture_encode(width, height, 8, SPNG_COLOR_TYPE_GRAYSCALE, NULL, pixels, (size_t)(width * height), &bytes, &size);
    put(o, name, bytes, size);
    free(bytes);
    free(pixels);
}

/* Sets the crop of torchvision's detectors. */
static void see_whole_photographs(att_network *network)
{
    att_preprocess preprocess = att_network_identity(network)->preprocess;
    preprocess.crop_pct = 1;
    snprintf(preprocess.crop_mode, sizeof preprocess.crop_mode, "within");
    assert_int_equal(att_network_set_preprocess(network, &preprocess), ATT_OK);
}

/* The engine's boxes of a picture are the network's own. `sides`: what the answer says about its size. */
static void check_boxes(const opened *o, att_network *network, const char *picture, const char *id, const char *sides)
{
    char path[200], expected[8192];
    const char *json;
    size_t length;
    att_batch answers;
    snprintf(path, sizeof path, "%s/%s", o->images, picture);
    must(o, att_network_run_file(network, path, &answers));
    att_json_begin_object(o->writer);
    must(o, att_network_write(network, &answers, NULL, o->writer));
    att_json_end_object(o->writer);
    must(o, att_json_writer_finish(o->writer, &json, &length));
    assert_in_range(length, 100, sizeof expected - 1);
    snprintf(expected, sizeof expected, "%s", strstr(json, "\"boxes\":[{\"class\":"));
    json = answer_of(o, id, "");
    assert_non_null(strstr(json, sides));
    assert_string_equal(strstr(json, "\"boxes\""), expected);
    assert_string_not_equal(strstr(answer_of(o, id, "b1-b3"), "\"boxes\""), expected);
}

/* As the network, the engine sees each photograph in the size that its transform gives it, filled up to a multiple of
 * 32: 40 x 30 pixels become 85 x 64, 25 x 45 become 53 x 96. */
FIXTURE_TEST(a_detector_sees_photographs_in_their_size)
{
    opened o = begin_detector(f);
    att_network *network = open_network(f, o.path);
    put_pattern(&o, "tall.png", 25, 45);
    put_pattern(&o, "wide.png", 40, 30);
    open_again(&o, NULL);
    must(&o, att_engine_open(o.engine, f->context, o.path));
    see_whole_photographs(o.engine->first->network);
    see_whole_photographs(network);
    check_boxes(&o, network, "wide.png", "d2",
                "\"input\":[64,96,1],\"photograph\":[30,40],\"map\":[2.125,0,0,0,2.1333333333333333,0]");
    check_boxes(&o, network, "tall.png", "d1", "\"input\":[96,64,1],\"photograph\":[45,25],\"map\":[2.12,0,0,0,");
    assert_non_null(strstr(answer_of(&o, "d1", ""), "\"grid_h\":6,\"grid_w\":4,"));
    assert_non_null(strstr(answer_of(&o, "d2", ""), "\"grid_h\":4,\"grid_w\":6,"));
    att_network_close(&network);
    take_away(&o, "tall.png");
    take_away(&o, "wide.png");
    end(&o);
}

/* Boxes are no classes of pixels. Times and figures are those of the network's own size. */
FIXTURE_TEST(a_detector_has_times_and_figures)
{
    opened o = begin_detector(f);
    const att_engine_view view = view_of(&o, "d0", "");
    att_text classes = {.context = f->context};
    refused(&o, att_engine_classes(o.engine, f->context, &view, &classes), ATT_ERR_UNSUPPORTED,
            "networks of the task \"detect\" give pixels no class");
    assert_int_equal(classes.length, 0);
    att_text_free(&classes);
    att_json_begin_object(o.writer);
    must(&o, att_engine_write_times(o.engine, f->context, o.path, o.writer));
    must(&o, att_engine_write_figures(o.engine, f->context, &view, "entropy", o.writer));
    end(&o);
}

/* An image that cannot be read is refused each time: no earlier run answers for it. */
FIXTURE_TEST(damaged_images_are_refused_each_time)
{
    opened o = begin(f);
    void *picture;
    size_t size;
    picture_make(100, &picture, &size);
    put(&o, "two.png", picture, size / 2);
    open_again(&o, NULL);
    answer_of(&o, "d0", "");
    answer_of(&o, "d0", "b1");
    const att_engine_view view = view_of(&o, "d1", "");
    for (int i = 0; i < 3; i++)
        refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_FORMAT, "two.png");
    take_away(&o, "two.png");
    free(picture);
    end(&o);
}

/* The limit needs no more than the header of a PNG, here of 8192 x 6144 pixels. */
FIXTURE_TEST(large_images_are_refused)
{
    static const unsigned char header[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0,    0,
                                           13,   'I', 'H', 'D', 'R',  0,    0,    0x20, 0,    0,    0,
                                           0x18, 0,   8,   2,   0,    0,    0,    0x66, 0x44, 0xb6, 0x3b};
    opened o = begin(f);
    char id[ATT_ENGINE_ID];
    put(&o, "two.png", header, sizeof header);
    open_again(&o, NULL);
    const att_engine_view view = view_of(&o, "d1", "");
    refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_UNSUPPORTED,
            "at most 33554432");
    refused(&o, att_engine_upload(o.engine, o.f->context, "cat.png", header, sizeof header, id), ATT_ERR_UNSUPPORTED,
            "at most 33554432");
    take_away(&o, "two.png");
    end(&o);
}

/* A coloured upload becomes grey as the same file does. */
FIXTURE_TEST(colours_become_grey_as_in_files)
{
    enum { COLOURED = 8 };
    opened o = begin(f);
    uint8_t pixels[COLOURED * COLOURED * 3];
    att_text png = {.context = o.f->context};
    char id[ATT_ENGINE_ID], first[8192];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i % 3 == 0 ? 255 : i % 3 == 1 ? 4 * (i / 3) : 30);
    must(&o, att_png_write(o.f->context, &(att_image){COLOURED, COLOURED, 3, pixels}, &png));
    put(&o, "two.png", png.data, png.length);
    open_again(&o, NULL);
    must(&o, att_engine_upload(o.engine, o.f->context, "cat.png", png.data, png.length, id));
    snprintf(first, sizeof first, "%s", answer_of(&o, "d1", ""));
    assert_string_equal(strstr(answer_of(&o, id, ""), "logits"), strstr(first, "logits"));
    att_text_free(&png);
    take_away(&o, "two.png");
    end(&o);
}

/* Writes the tensors alone, without the metadata that names the network. */
static void write_tensors(const opened *o, const char *path)
{
    const att_weights *weights = o->f->weights;
    const int count = att_weights_count(weights);
    att_safetensors_tensor *tensors = calloc((size_t)count, sizeof *tensors);
    for (int i = 0; i < count; i++) {
        const att_parameter_info info = att_weights_at(weights, i);
        const int64_t elements = att_shape_count(info.shape);
        float *values = malloc((size_t)elements * sizeof *values);
        must(o, att_weights_get(weights, -1, i, values, elements));
        tensors[i] = (att_safetensors_tensor){info.name, ATT_SAFETENSORS_F32, info.shape, values};
    }
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = count};
    must(o, att_safetensors_write(o->f->context, path, &content));
    for (int i = 0; i < count; i++)
        free((void *)tensors[i].data);
    free(tensors);
}

FIXTURE_TEST(checkpoints_without_a_name_need_one)
{
    opened o = begin(f);
    char path[160];
    write_tensors(&o, path_to(o.f, "plain.safetensors", path));
    const att_engine_view view = {.path = path, .image = "d0", .changes = ""};
    refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_NOT_FOUND,
            "plain.safetensors: ");
    open_again(&o, "vit_tiny_patch16_224");
    const att_status status = att_engine_write_answer(o.engine, o.f->context, &view, o.writer);
    refused(&o, status, status, "the tensors are 16 wide, vit_tiny_patch16_224 is 192 wide");
    assert_int_equal(unlink(path), 0);
    end(&o);
}

FIXTURE_TEST(thumbnails_are_pngs)
{
    opened o = begin(f);
    att_text png = {.context = o.f->context};
    att_image image = {0};
    must(&o, att_engine_thumbnail(o.engine, o.f->context, "d0", &png));
    must(&o, att_image_decode(o.f->context, png.data, png.length, 3, NULL, &image));
    assert_true(image.width == 96 && image.height == 96);
    int64_t sum = 0;
    for (int i = 0; i < 96 * 96 * 3; i++)
        sum += image.pixels[i];
    assert_true(sum > 20 * 96 * 96 * 3 && sum < 235 * 96 * 96 * 3);
    att_image_free(o.f->context, &image);
    att_text_free(&png);
    refused(&o, att_engine_thumbnail(o.engine, o.f->context, "d1", &png), ATT_ERR_NOT_FOUND,
            "there is no image \"d1\"");
    end(&o);
}

/* The JSON of what write() writes; valid until the next one. */
static const char *json_of(opened *o, att_status (*write)(att_engine *engine, att_context *context, const char *path,
                                                          att_json_writer *writer))
{
    size_t length;
    att_json_begin_object(o->writer);
    must(o, write(o->engine, o->f->context, o->path, o->writer));
    att_json_end_object(o->writer);
    must(o, att_json_writer_finish(o->writer, &o->json, &length));
    return o->json;
}

/* The sum of all numbers with a key. */
static double sum_of(const char *json, const char *key)
{
    double sum = 0;
    for (const char *at = strstr(json, key); at; at = strstr(at + 1, key))
        sum += strtod(at + strlen(key), NULL);
    return sum;
}

static int count_of(const char *json, const char *part)
{
    int count = 0;
    for (const char *at = strstr(json, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

FIXTURE_TEST(the_graph_has_all_parameters_and_operations)
{
    opened o = begin(f);
    const att_graph *graph = att_model_graph(o.f->model);
    const char *json = json_of(&o, att_engine_write_graph);
    assert_true(sum_of(json, "\"parameters\":") == (double)att_graph_parameter_elements(graph));
    assert_true(fabs(sum_of(json, "\"macs\":") - att_graph_cost(graph).macs) < 0.5);
    assert_int_equal(count_of(json, "\"op\":\"attention\""), LAYERS);
    assert_int_equal(count_of(json, "\"in\":[-1]"), 1);
    assert_null(strstr(json, "cross_entropy"));
    json = json_of(&o, att_engine_write_times);
    assert_int_equal(count_of(json, "\"op\":\"attention\""), LAYERS);
    assert_true(sum_of(json, "\"seconds\":") > 0);
    json = json_of(&o, att_engine_write_model);
    assert_int_equal(count_of(json, "\"node\":"), LAYERS);
    assert_non_null(strstr(json, "\"name\":\"entropy\""));
    assert_null(strstr(json, "\"name\":\"accuracy\"")); /* needs classes */
    end(&o);
}

FIXTURE_TEST(figures_are_those_of_the_network)
{
    opened o = begin(f);
    const att_engine_view view = view_of(&o, "d0", "h0.0r"); /* figures are without changes */
    att_dataset *dataset = NULL;
    att_measure *measure = NULL;
    const char *text, *path = o.images;
    size_t length;
    att_evaluate_options options = att_evaluate_options_defaults();
    att_network *network = open_network(o.f, o.path);
    must(&o, att_dataset_open_images(o.f->context, &path, 1, NULL, &dataset));
    must(&o, att_network_observe(network, "entropy", "*", &measure));
    options.unlabelled = true;
    options.measure = measure;
    must(&o, att_network_evaluate(network, dataset, &options, NULL));
    att_json_begin_object(o.writer);
    must(&o, att_engine_write_figures(o.engine, o.f->context, &view, "entropy", o.writer));
    att_json_end_object(o.writer);
    must(&o, att_json_writer_finish(o.writer, &text, &length));
    double expected = 0;
    for (int i = 0; i < att_measure_count(measure); i++)
        expected += att_measure_at(measure, i).mean;
    assert_int_equal(count_of(text, "\"head\":"), att_measure_count(measure));
    assert_true(fabs(sum_of(text, "\"mean\":") - expected) < 1e-12 * expected); /* measured: 0 */
    refused(&o, att_engine_write_figures(o.engine, o.f->context, &view, "entrpy", o.writer), ATT_ERR_NOT_FOUND,
            "entropy");
    refused(&o, att_engine_write_figures(o.engine, o.f->context, &view, "entropy,stiffness_index:products=9", o.writer),
            ATT_ERR_ARGUMENT, "stiffness_index takes too long for a page");
    att_measure_destroy(&measure);
    att_network_close(&network);
    att_dataset_close(&dataset);
    end(&o);
}

/* The JSON of what write() writes; valid until the next one. */
static const char *finish(const opened *o, att_status status)
{
    const char *text;
    size_t length;
    must(o, status);
    att_json_end_object(o->writer);
    must(o, att_json_writer_finish(o->writer, &text, &length));
    return text;
}

static double number_in(const char *json, const char *key)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    const char *at = strstr(json, wanted);
    assert_non_null(at);
    return strtod(at + strlen(wanted), NULL);
}

/* The file's values are those that the fixture exported, some of which are made zero and infinite. */
FIXTURE_TEST(values_of_tensors_are_summarised)
{
    enum { COUNT = CLASSES };
    const int index = att_weights_find(f->weights, "head.bias");
    const float values[COUNT] = {3, 0, -4};
    CHECK(f->context, att_weights_set(f->weights, -1, index, values, COUNT));
    opened o = begin(f);
    att_text bytes = {.context = f->context};
    att_json_begin_object(o.writer);
    const char *json = finish(&o, att_engine_write_tensor(o.engine, f->context, o.path, "head.bias", o.writer));
    assert_true(number_in(json, "count") == COUNT && number_in(json, "nonfinite") == 0);
    assert_true(number_in(json, "min") == -4 && number_in(json, "max") == 3 && number_in(json, "norm") == 5);
    assert_true(fabs(number_in(json, "mean") + 1.0 / COUNT) < 1e-15);
    assert_true(number_in(json, "zeros") == COUNT - 2);
    assert_non_null(strstr(json, "\"counts\":[1,0,"));
    must(&o, att_engine_values(o.engine, f->context, o.path, "head.bias", 2, 99, &bytes));
    assert_int_equal(bytes.length, (COUNT - 2) * sizeof(float)); /* those past the last are left out */
    assert_memory_equal(bytes.data, values + 2, bytes.length);
    att_text_free(&bytes);
    refused(&o, att_engine_values(o.engine, f->context, o.path, "head.bias", COUNT, 1, &bytes), ATT_ERR_ARGUMENT,
            "head.bias has the entries 0 to ");
    refused(&o, att_engine_write_tensor(o.engine, f->context, o.path, "head.bia", o.writer), ATT_ERR_NOT_FOUND,
            "no tensor \"head.bia\"");
    end(&o);
}

/* An upload of the picture that the server has is as similar as can be; the picture itself is left out. */
FIXTURE_TEST(similar_images_are_compared)
{
    opened o = begin(f);
    char picture[200], id[ATT_ENGINE_ID];
    static uint8_t bytes[1 << 16];
    snprintf(picture, sizeof picture, "%s/one.jpg", o.images);
    FILE *file = fopen(picture, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    must(&o, att_engine_upload(o.engine, f->context, "again.jpg", bytes, size, id));
    for (int i = 0; i < 2; i++) { /* the second time with the features of the first */
        att_json_begin_object(o.writer);
        const char *json = finish(&o, att_engine_write_nearest(o.engine, f->context, o.path, id, 3, o.writer));
        assert_true(number_in(json, "total") == 1 && number_in(json, "images") == 1);
        assert_non_null(strstr(json, "\"id\":\"d0\""));
        assert_true(fabs(number_in(json, "similarity") - 1) < 1e-6); /* measured: 0 */
    }
    att_json_begin_object(o.writer);
    assert_non_null(strstr(finish(&o, att_engine_write_nearest(o.engine, f->context, o.path, "d0", 3, o.writer)),
                           "\"nearest\":[]"));
    att_json_begin_object(o.writer); /* the network is timed with its head again */
    assert_non_null(
        strstr(finish(&o, att_engine_write_times(o.engine, f->context, o.path, o.writer)), "\"scope\":\"head\""));
    refused(&o, att_engine_write_nearest(o.engine, f->context, o.path, "d1", 3, o.writer), ATT_ERR_NOT_FOUND,
            "there is no image \"d1\"");
    end(&o);
}

FIXTURE_TEST(what_cannot_be_opened_is_refused)
{
    opened o = begin(f);
    att_engine *engine = NULL;
    att_text out;
    att_engine_view view = view_of(&o, "d0", "");
    const int query = 0;
    refused(&o, att_engine_create(o.f->context, &(att_engine_options){.images = "/nowhere"}, &engine),
            ATT_ERR_NOT_FOUND, "/nowhere");
    assert_null(engine);
    refused(&o, weights_of(&o, "d0", "", ATT_ENGINE_ROW, TOKENS, &out), ATT_ERR_ARGUMENT, "query 5 of blocks.0.attn");
    att_text_free(&out);
    refused(&o, att_engine_weights(o.engine, o.f->context, &view, ATT_ENGINE_ROW, &query, 1, NULL, &out),
            ATT_ERR_ARGUMENT, "1 queries, but the network has 2");
    view.path = "/nowhere.safetensors";
    refused(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer), ATT_ERR_NOT_FOUND, "/nowhere");
    end(&o);
}

/* Returns whether a number of polls is over. user: the polls that remain. */
static bool stop_after(void *user)
{
    int *polls = user;
    return (*polls)-- <= 0;
}

/* The requests to stop of a request's context end what its answer computes, and also answers that wait for others. */
FIXTURE_TEST(requests_can_be_stopped)
{
    opened o = begin(f);
    int polls = 0;
    att_settings settings = att_settings_defaults();
    att_context *context = NULL;
    att_json_writer *unfinished = NULL;
    const att_engine_view view = view_of(&o, "d0", "");
    settings.stop = stop_after;
    settings.stop_user = &polls;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    must(&o, att_json_writer_create(o.f->context, false, &unfinished));
    att_json_begin_object(unfinished);
    assert_int_equal(att_engine_write_model(o.engine, context, o.path, unfinished), ATT_ERR_STOPPED);
    assert_string_equal(att_context_message(context), "the answer is no longer wanted");
    answer_of(&o, "d0", "");
    for (int before = 0; before < 2; before++) { /* before the computation, and in it */
        att_text out = {.context = context};
        polls = before;
        assert_int_equal(att_engine_weights(o.engine, context, &view, ATT_ENGINE_MEAN, NULL, 0, NULL, &out),
                         ATT_ERR_STOPPED);
        att_text_free(&out);
        polls = before;
        assert_int_equal(att_engine_write_times(o.engine, context, o.path, unfinished), ATT_ERR_STOPPED);
    }
    /* In the run of a network, after some of its operations; the next run is complete. */
    const att_engine_view changed = view_of(&o, "d0", "b2");
    polls = 5;
    assert_int_equal(att_engine_write_answer(o.engine, context, &changed, unfinished), ATT_ERR_STOPPED);
    assert_string_equal(att_context_message(context), "stopped on request while the network ran");
    double stopped[CLASSES], whole[CLASSES];
    read_logits(answer_of(&o, "d0", "b2"), stopped);
    att_engine_destroy(&o.engine);
    must(&o, att_engine_create(o.f->context, &(att_engine_options){.images = o.images}, &o.engine));
    read_logits(answer_of(&o, "d0", "b2"), whole);
    assert_memory_equal(stopped, whole, sizeof whole);
    att_json_writer_destroy(&unfinished);
    att_context_destroy(&context);
    end(&o);
}

/* The outputs of CLIP's projection are features, whose softmax says nothing. */
FIXTURE_TEST(a_projection_gives_no_probabilities)
{
    char path[4096];
    opened o = begin(f);
    golden_path("layouts/clip_projection/model.safetensors", path, sizeof path);
    const att_engine_view view = {.path = path, .image = "d0", .changes = ""};
    size_t length;
    att_json_begin_object(o.writer);
    must(&o, att_engine_write_answer(o.engine, o.f->context, &view, o.writer));
    must(&o, att_engine_write_model(o.engine, o.f->context, path, o.writer));
    att_json_end_object(o.writer);
    must(&o, att_json_writer_finish(o.writer, &o.json, &length));
    assert_non_null(strstr(o.json, "\"no_classes\":\""));
    assert_non_null(strstr(o.json, "are features, not scores of classes"));
    assert_null(strstr(o.json, "\"top\""));
    assert_null(strstr(o.json, "\"logits\""));
    assert_non_null(strstr(o.json, "\"vector\":{\"name\":\"features\",\"width\":"));
    assert_non_null(strstr(o.json, "\"distance\":0}"));
    assert_non_null(strstr(o.json, "\"relevance\":[]"));
    end(&o);
}
