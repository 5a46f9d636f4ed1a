/* Attention maps in the report: their order, their limited number, and damaged files. */
#include "lab/report/fixture.h"
#include "lab/report/map_file.h"
#include "lab/report/page_data.h"
#include <attscope/data.h>

static size_t base64_length(int64_t bytes)
{
    return (size_t)((bytes + 2) / 3 * 4);
}

/* The smallest file of maps: an image of one pixel, which is one patch, and one head in each layer. */
enum { LAYERS = 3, SMALLEST_TENSORS = 2 + 3 * LAYERS };

typedef struct smallest {
    att_safetensors_tensor tensors[SMALLEST_TENSORS];
    att_safetensors_pair metadata[6];
    char names[3 * LAYERS][32];
} smallest;

/* Metadata of a node whose grid is one patch. */
#define LAYOUT "\"prefix\":0,\"grid_h\":1,\"grid_w\":1,\"window_h\":1,\"window_w\":1,\"shift_h\":0,\"shift_w\":0"
#define NODE(number) "{\"node\":\"blocks." number ".attn\"," LAYOUT "}"
#define WITH_WINDOW(grid_h, grid_w, window_h, window_w, shift_h, shift_w)                                           \
    "[{\"node\":\"blocks.10.attn\",\"prefix\":0,\"grid_h\":" grid_h ",\"grid_w\":" grid_w ",\"window_h\":" window_h \
    ",\"window_w\":" window_w ",\"shift_h\":" shift_h ",\"shift_w\":" shift_w "}]"
#define NODES "[" NODE("2") "," NODE("10") "," NODE("11") "]"

static const int versions[] = {3, 4};
enum { VERSIONS = sizeof(versions) / sizeof(*versions) };

/* Layers 10, 2 and 11, whose order in the file and in the alphabet is not that of the network. */
static void smallest_make(int version, smallest *made)
{
    static const char *const layers[LAYERS] = {"10", "2", "11"};
    static const uint8_t bytes[3];
    static const uint16_t level[1] = {65535};
    static const int64_t label[1];
    static const float figures[2 * 4] = {0, 1, 0, 1, 0, 1, 0, 1};
    static const int32_t place[2];
    const att_safetensors_tensor each[] = {
        {"patches", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1, 1), level},
        {"figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), figures},
        {"place", ATT_SAFETENSORS_I32, att_shape_of(1, 2, 1), place},
    };
    *made = (smallest){.tensors = {{"image", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1, 3), bytes},
                                   {"label", ATT_SAFETENSORS_I64, att_shape_of(1), label}},
                       .metadata = {{"maps", version == 4 ? "4" : "3"},
                                    {version == 4 ? "nodes" : "grid_h", version == 4 ? NODES : "1"},
                                    {version == 4 ? "unused" : "grid_w", "1"},
                                    {version == 4 ? "also unused" : "prefix", "0"},
                                    {"names", "[\"a\"]"},
                                    {"captions", "[\"\"]"}}};
    for (int t = 0; t < 3 * LAYERS; t++) {
        snprintf(made->names[t], sizeof(made->names[t]), "blocks.%s.attn.%s", layers[t / 3], each[t % 3].name);
        made->tensors[2 + t] = each[t % 3];
        made->tensors[2 + t].name = made->names[t];
    }
}

static void smallest_write(scratch *self, const char *folder, const smallest *made, int tensor_count)
{
    char path[200];
    snprintf(path, sizeof(path), "%.150s/maps.safetensors", folder);
    const att_safetensors_content content = {.tensors = made->tensors,
                                             .tensor_count = tensor_count,
                                             .metadata = made->metadata,
                                             .metadata_count = sizeof made->metadata / sizeof *made->metadata};
    CHECK(self->context, att_safetensors_write(self->context, path, &content));
}

/* In the order of the network, 2 before 10. */
SCRATCH_TEST(maps_are_in_the_order_of_the_layers)
{
    static const char *const wanted[] = {"blocks.2.attn", "blocks.10.attn", "blocks.11.attn"};
    smallest made;
    smallest_make(4, &made);
    smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    CHECK(self->context, write_page_of(self));
    json_t *data = page_data(self);
    const json_t *maps = json_object_get(run_of(data, 0), "maps"), *nodes = json_object_get(maps, "nodes");
    assert_int_equal(json_array_size(nodes), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(nodes, i), "node")), wanted[i]);
    json_decref(data);
}

static void assert_captions(scratch *self, const char *const *wanted, size_t count)
{
    CHECK(self->context, write_page_of(self));
    json_t *data = page_data(self);
    const json_t *pictures = json_object_get(json_object_get(run_of(data, 0), "maps"), "pictures");
    assert_int_equal(json_array_size(pictures), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(pictures, i), "caption")), wanted[i]);
    json_decref(data);
}

SCRATCH_TEST(captions_of_all_versions_are_the_same)
{
    static const char *const wanted[] = {FIXTURE_CAPTION_0, FIXTURE_CAPTION_1, FIXTURE_CAPTION_2};
    char path[100];
    snprintf(path, sizeof(path), "%s/maps.safetensors", self->folder);
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (int v = 0; v < VERSIONS; v++) {
        CHECK(self->context, fixture_maps(self->context, path, FIXTURE_IMAGES, "2", versions[v]));
        assert_captions(self, wanted, FIXTURE_IMAGES);
    }
}

SCRATCH_TEST(captions_that_are_too_long_are_refused)
{
    static char list[4200] = "[\"";
    smallest made;
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t length = 4096; length <= 4097; length++) {
        memset(list + 2, 'c', length);
        memcpy(list + 2 + length, "\"]", 3);
        smallest_make(4, &made);
        made.metadata[5].value = list;
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        assert_int_equal(write_page_of(self), length <= 4096 ? ATT_OK : ATT_ERR_FORMAT);
    }
    assert_message_has(self, "maps.safetensors: the caption of image 0 has more than 4096 bytes");
}

/* Writes the smallest file with the class of its pixel. list: NULL: no list of the classes. */
static att_status write_classes(scratch *self, const att_safetensors_tensor *classes, const char *list)
{
    smallest made;
    char path[200];
    att_safetensors_tensor tensors[SMALLEST_TENSORS + 1];
    enum { TEXTS = sizeof made.metadata / sizeof *made.metadata };
    att_safetensors_pair metadata[TEXTS + 1];
    smallest_make(4, &made);
    memcpy(tensors, made.tensors, sizeof made.tensors);
    memcpy(metadata, made.metadata, sizeof made.metadata);
    tensors[SMALLEST_TENSORS] = *classes;
    metadata[TEXTS] = (att_safetensors_pair){"classes", list};
    const att_safetensors_content content = {.tensors = tensors,
                                             .tensor_count = SMALLEST_TENSORS + 1,
                                             .metadata = metadata,
                                             .metadata_count = list ? TEXTS + 1 : TEXTS};
    snprintf(path, sizeof(path), "%s/maps.safetensors", self->folder);
    CHECK(self->context, att_safetensors_write(self->context, path, &content));
    return write_page_of(self);
}

#define LISTED "[{\"label\":\"<sky>\",\"colour\":\"#0060ff\"},{\"label\":null,\"colour\":\"#ffff00\"}]"

SCRATCH_TEST(the_page_has_the_class_of_each_pixel)
{
    static const uint16_t numbers[] = {1, ATT_MASK_NONE};
    static const char *const written[] = {"AQA=", "//8="}; /* little-endian, in base64 */
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < 2; i++) {
        const att_safetensors_tensor classes = {"classes", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1), &numbers[i]};
        CHECK(self->context, write_classes(self, &classes, LISTED));
        json_t *data = page_data(self);
        const json_t *found = json_object_get(json_object_get(run_of(data, 0), "maps"), "classes");
        assert_string_equal(json_string_value(json_object_get(found, "data")), written[i]);
        const json_t *list = json_object_get(found, "list");
        assert_int_equal(json_array_size(list), 2);
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "label")), "<sky>");
        assert_true(json_is_null(json_object_get(json_array_get(list, 1), "label")));
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "colour")), "#ffff00");
        json_decref(data);
    }
}

SCRATCH_TEST(damaged_classes_of_pixels_are_refused)
{
    static const uint16_t numbers[] = {2, 0};
    static const char lists[] = "metadata classes, a JSON array with a label and a colour";
    const att_safetensors_tensor good = {"classes", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1), &numbers[1]};
    const struct {
        att_safetensors_tensor tensor;
        const char *list, *message;
    } wrong[] = {
        {{"classes", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1), numbers}, LISTED, "tensor classes has a value"},
        {{"classes", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 2), numbers}, LISTED, "classes is missing or is not U16"},
        {{"classes", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1), numbers}, LISTED, "classes is missing or is not U16"},
        {good, NULL, lists},
        {good, "{}", lists},
        {good, "[", "classes of its metadata: not valid JSON"},
        {good, "[7]", lists},
        {good, "[{\"label\":7,\"colour\":\"#0060ff\"}]", lists},
        {good, "[{\"label\":\"sky\"}]", lists},
        {good, "[{\"label\":\"sky\",\"colour\":\"red\"}]", lists},
        {good, "[{\"label\":\"sky\",\"colour\":\"#0060ff0\"}]", lists},
        {good, "[{\"label\":\"sky\",\"colour\":\"#0060f\"}]", lists},
        {good, "[]", "tensor classes has a value"},
    };
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(self->context, write_classes(self, &wrong[i].tensor, wrong[i].list), ATT_ERR_FORMAT,
                     wrong[i].message);
}

/* One tensor or text of the smallest file has a wrong value. */
SCRATCH_TEST(damaged_maps_are_refused)
{
    static const float not_finite[2 * 4] = {0, 1, 0, 1, NAN, 1, 0, 1}, negative[2 * 4] = {0, 1, 0, 1, 0, -1e-3F, 0, 1};
    static const float entropy[2 * 4] = {0, 1, 0, 1, 0.02F, 1, 0, 1}, share[2 * 4] = {0, 1, 0, 1, 0, 1.02F, 0, 1};
    static const float infinite[2 * 4] = {0, 1, 0, 1, 0, INFINITY, 0, 1}, no_entropy[2 * 4] = {-INFINITY, 1, 0, 1};
    static const int32_t outside[2] = {0, 1}, before[2] = {-1, 0};
    const struct {
        int at;
        att_safetensors_tensor tensor;
        const char *message;
    } tensors[] = {
        {0, {"picture", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1, 3), outside}, "tensor image is missing"},
        {2, {"blocks.10.attn.patches", ATT_SAFETENSORS_U8, att_shape_of(1, 1, 1, 1), outside}, "U16 [K, heads, N"},
        {2, {"blocks.10.attn.patches", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1, 2), outside}, "U16 [K, heads, N"},
        {3, {"blocks.10.attn.figure", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), not_finite}, "10.attn.figures is"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 1, 1, 4), not_finite}, "F32 [K, heads + 1"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), not_finite}, "entropy from 0 to"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), negative}, "entropy from 0 to"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), entropy}, "entropy from 0 to"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), share}, "weight from 0 to 1"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), infinite}, "weight from 0 to 1"},
        {3, {"blocks.10.attn.figures", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1, 4), no_entropy}, "entropy from 0"},
        {2, {".patches", ATT_SAFETENSORS_U16, att_shape_of(1, 1, 1, 1), outside}, "tensor .patches has no scope"},
        {4, {"blocks.10.attn.place", ATT_SAFETENSORS_F32, att_shape_of(1, 2, 1), negative}, "I32 [K, heads + 1, N]"},
        {4, {"blocks.10.attn.place", ATT_SAFETENSORS_I32, att_shape_of(1, 2, 1), outside}, "place in the grid"},
        {4, {"blocks.10.attn.place", ATT_SAFETENSORS_I32, att_shape_of(1, 2, 1), before}, "place in the grid"},
    };
    static const struct {
        int version, at;
        const char *value, *message;
    } texts[] = {
        {3, 4, "[]", "names, a JSON array of one string per image"},
        {3, 4, "[1]", "names, a JSON array of one string per image"},
        {3, 4, "[", "names of its metadata"},
        {3, 5, "[]", "captions, a JSON array of one string per image"},
        {3, 5, "[\"a\",\"b\"]", "captions, a JSON array of one string per image"},
        {3, 5, "[7]", "captions, a JSON array of one string per image"},
        {3, 5, "{}", "captions, a JSON array of one string per image"},
        {3, 5, "[\"\\ud800\"]", "captions of its metadata: not valid JSON"}, /* not a character, so not valid UTF-8 */
        {3, 5, "[\"\\u0000\"]", "captions of its metadata: not valid JSON"},
        {4, 1, "{}", "expected metadata nodes, a JSON array of objects"},
        {4, 1, "[", "nodes of its metadata: not valid JSON"},
        {4, 1, "[1,null,{}]", "metadata nodes has no object for tensor blocks.10.attn.patches"},
        {4, 1, "[" NODE("10") "]", "metadata nodes has no object for tensor blocks.11.attn.patches"},
        {4, 1, "[{\"node\":\"blocks.10.attn\"}]", "expected prefix of each node in metadata nodes, a number from 0"},
        {4, 1, "[{\"node\":\"blocks.10.attn\",\"prefix\":\"0\"}]", "expected prefix of each node"},
        {4, 1, "[{\"node\":\"blocks.10.attn\",\"prefix\":0,\"grid_h\":0}]", "expected grid_h of each node"},
        {4, 1, WITH_WINDOW("4", "4", "3", "4", "0", "0"), "windows that divide them"},
        {4, 1, WITH_WINDOW("4", "4", "4", "3", "0", "0"), "windows that divide them"},
        {4, 1, WITH_WINDOW("4", "4", "8", "4", "0", "0"), "windows that divide them"},
        {4, 1, WITH_WINDOW("4", "4", "4", "4", "4", "0"), "windows that divide them"},
        {4, 1, WITH_WINDOW("4", "4", "4", "4", "0", "4"), "windows that divide them"},
        {4, 1, WITH_WINDOW("4", "4", "2", "2", "0", "-1"), "expected shift_w of each node"},
        {4, 1, WITH_WINDOW("4096", "4096", "1", "1", "0", "0"), "grids of at most 65536 tokens"},
        {4, 1, WITH_WINDOW("1", "2", "1", "2", "0", "0"), "U16 [K, heads, N"},
    };
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < VERSIONS * sizeof(tensors) / sizeof(*tensors); i++) {
        smallest made;
        int version = versions[i % VERSIONS];
        const size_t t = i / VERSIONS;
        smallest_make(version, &made);
        made.tensors[tensors[t].at] = tensors[t].tensor;
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        assert_fails(self->context, write_page_of(self), ATT_ERR_FORMAT, tensors[t].message);
        assert_message_has(self, self->folder);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        smallest made;
        smallest_make(texts[i].version, &made);
        made.metadata[texts[i].at].value = texts[i].value;
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        assert_fails(self->context, write_page_of(self), ATT_ERR_FORMAT, texts[i].message);
        assert_message_has(self, self->folder);
    }
}

/* Without gaps between the tensors. */
enum { CUT_BYTES = 56 };
static void write_to_be_cut(scratch *self)
{
    static const char header[] =
        "{\"__metadata__\":{\"maps\":\"3\",\"grid_h\":\"1\",\"grid_w\":\"1\",\"prefix\":\"0\",\"names\":\"[\\\"a\\\"]"
        "\","
        "\"captions\":\"[\\\"\\\"]\"},"
        "\"image\":{\"dtype\":\"U8\",\"shape\":[1,2,3,1],\"data_offsets\":[0,6]},"
        "\"b.patches\":{\"dtype\":\"U16\",\"shape\":[1,1,1,1],\"data_offsets\":[6,8]},"
        "\"label\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[8,16]},"
        "\"b.figures\":{\"dtype\":\"F32\",\"shape\":[1,2,1,4],\"data_offsets\":[16,48]},"
        "\"b.place\":{\"dtype\":\"I32\",\"shape\":[1,2,1],\"data_offsets\":[48,56]}}";
    static const char zeros[CUT_BYTES];
    const uint64_t length = sizeof(header) - 1;
    snprintf(self->path, sizeof(self->path), "%s/maps.safetensors", self->folder);
    FILE *file = fopen(self->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&length, sizeof(length), 1, file), 1);
    assert_int_equal(fwrite(header, length, 1, file), 1);
    assert_int_equal(fwrite(zeros, sizeof(zeros), 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

/* Truncates the file after it was opened: first the last tensor cannot be read, then earlier ones. The complete file
 * gives no error. */
SCRATCH_TEST(maps_cut_short_while_read_are_reported)
{
    size_t before = att_context_allocations(self->context).bytes_now;
    for (off_t lost = 0; lost <= CUT_BYTES; lost++) {
        att_map_file maps;
        att_json_writer *json;
        struct stat whole;
        write_to_be_cut(self);
        assert_int_equal(stat(self->path, &whole), 0);
        CHECK(self->context, att_map_file_open(self->context, self->path, &maps));
        if (lost > 0)
            assert_int_equal(truncate(self->path, whole.st_size - lost), 0);
        CHECK(self->context, att_json_writer_create(self->context, false, &json));
        att_status status = att_map_file_write(json, &maps, (const int64_t[]){0}, 1);
        assert_int_equal(status == ATT_OK, lost == 0);
        if (lost > 0)
            assert_message_has(self, self->path);
        att_json_writer_destroy(&json);
        att_map_file_close(&maps);
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
}

/* The file has images and labels, but no attention map. */
SCRATCH_TEST(a_file_without_maps_is_refused)
{
    smallest made;
    smallest_make(4, &made);
    smallest_write(self, self->folder, &made, 2);
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    assert_fails(self->context, write_page_of(self), ATT_ERR_FORMAT, "0 tensors named <scope>.patches");
}

/* Maps of unknown versions are left out, and the report says so. */
SCRATCH_TEST(maps_of_other_versions_are_left_out)
{
    static const char *const others[] = {"2", "5", ""};
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        smallest made;
        smallest_make(4, &made);
        made.metadata[0].value = others[i];
        smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
        CHECK(self->context, write_page_of(self));
        json_t *data = page_data(self);
        assert_true(json_is_null(json_object_get(run_of(data, 0), "maps")));
        assert_string_equal(json_string_value(json_object_get(run_of(data, 0), "maps_left_out")),
                            "in an unsupported version of the format");
        json_decref(data);
    }
    smallest made;
    smallest_make(4, &made);
    made.metadata[0].key = "version";
    smallest_write(self, self->folder, &made, SMALLEST_TENSORS);
    assert_fails(self->context, write_page_of(self), ATT_ERR_FORMAT, "holds no attention maps");
}

SCRATCH_TEST(maps_are_shown_up_to_the_room_given)
{
    const char *folders[] = {self->folder};
    char path[100];
    write_text(self->folder, "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
    snprintf(path, sizeof(path), "%s/maps.safetensors", self->folder);
    CHECK(self->context, fixture_maps(self->context, path, FIXTURE_IMAGES, "2", 4));
    /* Bytes of an image's pixels, and of each layer's weight levels and query figures. */
    enum {
        pixels = FIXTURE_SIDE * FIXTURE_SIDE * 3,
        levels = FIXTURE_HEADS * FIXTURE_TOKENS * (FIXTURE_TOKENS - 1),
        figures = (FIXTURE_HEADS + 1) * FIXTURE_TOKENS * 4 * (int)sizeof(float),
        place = (FIXTURE_HEADS + 1) * FIXTURE_TOKENS * (int)sizeof(int32_t)
    };
    const size_t image = pixels + FIXTURE_DEPTH * (levels + figures + place);
    const struct {
        size_t bytes;
        int64_t shown;
    } rooms[] = {{0, 0}, {image - 1, 0}, {image, 1}, {3 * image - 1, 2}, {3 * image, 3}, {SIZE_MAX, 3}};
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        att_report_result result;
        const att_report_options options = {.map_bytes = rooms[i].bytes};
        CHECK(self->context, att_report_write(self->context, folders, 1, &options, page_path(self), &result));
        assert_int_equal(result.images, rooms[i].shown);
        assert_int_equal(result.images_wanted, FIXTURE_IMAGES);
        json_t *data = page_data(self);
        const json_t *maps = json_object_get(run_of(data, 0), "maps");
        assert_int_equal(json_integer_value(json_object_get(maps, "images")), FIXTURE_IMAGES);
        assert_int_equal(json_array_size(json_object_get(maps, "pictures")), rooms[i].shown);
        const json_t *node = json_array_get(json_object_get(maps, "nodes"), 0);
        assert_int_equal(json_string_length(json_object_get(node, "levels")), base64_length(rooms[i].shown * levels));
        assert_int_equal(json_string_length(json_object_get(node, "figures")), base64_length(rooms[i].shown * figures));
        assert_int_equal(json_string_length(json_object_get(node, "place")), base64_length(rooms[i].shown * place));
        assert_int_equal(json_string_length(json_object_get(json_object_get(maps, "image"), "data")),
                         base64_length(rooms[i].shown * pixels));
        json_decref(data);
    }
    static const char *const grids[] = {"3", "0", "-2", "x", "99999999999999999999", "1000000"};
    for (size_t i = 0; i < sizeof(grids) / sizeof(*grids); i++) {
        for (int v = 0; v < VERSIONS; v++) {
            CHECK(self->context, fixture_maps(self->context, path, FIXTURE_IMAGES, grids[i], versions[v]));
            assert_fails(self->context, att_report_write(self->context, folders, 1, NULL, page_path(self), NULL),
                         ATT_ERR_FORMAT, "maps.safetensors");
        }
    }
    write_text(self->folder, "maps.safetensors", "nonsense");
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
    const att_safetensors_content empty = {0};
    CHECK(self->context, att_safetensors_write(self->context, path, &empty));
    assert_int_equal(att_report_write(self->context, folders, 1, NULL, page_path(self), NULL), ATT_ERR_FORMAT);
}

/* Checks the names of the images with maps in the report, "a b" for each run. */
static void assert_pictures(scratch *self, const char *const *wanted, int runs)
{
    json_t *data = page_data(self);
    for (int r = 0; r < runs; r++) {
        const json_t *pictures = json_object_get(json_object_get(run_of(data, r), "maps"), "pictures");
        char names[200] = "";
        for (size_t i = 0; i < json_array_size(pictures); i++) {
            const char *name = json_string_value(json_object_get(json_array_get(pictures, i), "name"));
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i > 0 ? " " : "", name);
        }
        assert_string_equal(names, wanted[r]);
    }
    json_decref(data);
}

/* If several runs show the same images, those of all runs come first, as many as there is room for. */
SCRATCH_TEST(runs_share_the_room_for_maps)
{
    enum { RUNS = 3, PIXEL = 3, LAYER = 1 + 2 * (4 + 1) * 4, IMAGE = PIXEL + LAYERS * LAYER };
    static const char *const names[RUNS] = {"[\"a\",\"b\",\"c\",\"d\"]", "[\"d\",\"b\",\"e\",\"a\"]",
                                            "[\"f\",\"b\",\"a\",\"g\"]"};
    static const uint8_t bytes[4 * PIXEL];
    static const uint16_t level[4];
    static const int64_t label[4];
    static const float figures[4 * 2 * 4];
    static const int32_t place[4 * 2];
    char folders[RUNS][100];
    for (int r = 0; r < RUNS; r++) {
        smallest made;
        smallest_make(4, &made);
        for (int t = 0; t < SMALLEST_TENSORS; t++)
            made.tensors[t].shape.dims[0] = 4;
        made.tensors[0].data = bytes, made.tensors[1].data = label;
        for (int t = 2; t < SMALLEST_TENSORS; t += 3)
            made.tensors[t].data = level, made.tensors[t + 1].data = figures, made.tensors[t + 2].data = place;
        made.metadata[4].value = names[r];
        made.metadata[5].value = "[\"\",\"\",\"\",\"\"]";
        snprintf(folders[r], sizeof(folders[r]), "%.80s/run%d", self->folder, r);
        mkdir(folders[r], 0700);
        write_text(folders[r], "metrics.jsonl", "{\"event\":\"run_begin\"}\n");
        smallest_write(self, folders[r], &made, SMALLEST_TENSORS);
    }
    static const struct {
        size_t images; /* that fit */
        const char *shown[RUNS];
    } rooms[] = {
        {0, {"", "", ""}},
        {2, {"a", "a", ""}}, /* there is room for the first image of some runs only */
        {3, {"a", "a", "a"}},
        {5, {"a", "a", "a"}},
        {6, {"a b", "a b", "a b"}},
        {7, {"a b", "a b", "a b"}},
        {8, {"a b d", "a b d", "a b"}},
        {9, {"a b d", "a b d", "a b f"}},
        {10, {"a b d c", "a b d", "a b f"}},
        {99, {"a b d c", "a b d e", "a b f g"}},
    };
    const char *runs[RUNS] = {folders[0], folders[1], folders[2]};
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        const att_report_options options = {.map_bytes = rooms[i].images * IMAGE};
        CHECK(self->context, att_report_write(self->context, runs, RUNS, &options, page_path(self), NULL));
        assert_pictures(self, rooms[i].shown, RUNS);
    }
    /* The last run has other images, although some have the same names. */
    static const char *const begins[RUNS] = {"\"data\":\"x\"", "\"data\":\"y\",\"contents\":\"1\"",
                                             "\"data\":\"z\",\"contents\":\"2\""};
    for (int same = 0; same < 2; same++) {
        for (int r = 0; r < RUNS; r++) {
            char event[100];
            snprintf(event, sizeof(event), "{\"event\":\"run_begin\",%s%s}\n", begins[r],
                     r > 0  ? ""
                     : same ? ",\"contents\":\"1\""
                            : "");
            write_text(folders[r], "measure.jsonl", event);
        }
        const att_report_options options = {.map_bytes = 7 * IMAGE};
        CHECK(self->context, att_report_write(self->context, runs, RUNS, &options, page_path(self), NULL));
        assert_pictures(
            self, same ? (const char *const[]){"a d b", "a d b", "f"} : (const char *const[]){"a b", "d b", "f b a"},
            RUNS);
    }
}
