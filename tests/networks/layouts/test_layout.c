/* Layouts: what becomes of tensors that fit a table, or do not, and of side files of any content. */
#include "base/io/scratch.h"
#include "base/io/tensors.h"
#include "golden_path.h"
#include "networks/layouts/layout.h"

/* --- a table ------------------------------------------------------------------------------------------------------ */

static const att_layout_row rows[] = {
    {"often", .to = "once"},
    {"often", .to = "twice"},
    {"often", .to = "thrice"},
    {"often", .to = "four_times"},
    {"q.@", .to = "qkv.@", .part = 0},
    {"k.@", .to = "qkv.@", .part = 1},
    {"v.@", .to = "qkv.@", .part = 2},
    {"layer.#.fc.@", .also = "layers.#.dense.@", .to = "blocks.#.mlp.@"},
    {"stages.#.down.#.@", .to = "layers.+.down.#.@"},
    {"top", .to = "first_rows", .end = 2},
    {"both", .to = "upper", .end = 1, .of = 2},
    {"both", .to = "lower", .first = 1, .of = 2},
    {"base", .to = "sum"},
    {"more", .to = "sum", .add = true},
    {"probe", .to = "latent", .rank = 3},
    {"text.*", .to = NULL},
    {"logit", .to = NULL},
    {"maybe", .to = "with_probe", .when = "probe"},
    {"maybe", .to = "without_probe", .when = "!probe"},
    {"maybe", .to = "with_layer", .when = "layer.0.fc.weight"},
    {"lacks_bias.weight", .to = "bias", .zeros = true},
    {"patches.weight", .to = "proj.weight", .patches = true},
    {"transposed", .to = "turned", .first = 1},
    {"every_third", .to = "thirds", .rank = 2},
    {"lacks_gain.bias", .to = "gain", .ones = true},
    {"merge.weight", .to = "merged", .unfolded = true},
    {"deep.*", .to = "shallow.*"},
    {"kernel", .to = "weight", .axes = "10"},
    {"kernel", .to = "outputs", .axes = "10", .zeros = true},
    {"filter", .to = "conv", .axes = "3201"},
    {"heads", .to = "q", .axes = "(12)0"},
    {"mixed", .to = "proj", .axes = "2(01)"},
};
static const att_layout toy = {.name = "a toy", .prefixes = "toy. doll.", ATT_LAYOUT_ROWS(rows)};

enum { MOST_TENSORS = 8, MOST_VALUES = 64 };

static float counted[MOST_VALUES]; /* 0, 1, 2, ... */

static att_safetensors_tensor tensor(const char *name, att_shape shape)
{
    for (int i = 0; i < MOST_VALUES; i++)
        counted[i] = (float)i;
    return (att_safetensors_tensor){.name = name, .dtype = ATT_SAFETENSORS_F32, .shape = shape, .data = counted};
}

#define T(name, ...) tensor(name, att_shape_of(__VA_ARGS__))

static att_status apply(scratch *self, const att_safetensors_tensor *tensors, int count, att_tensors **file)
{
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = count};
    CHECK(self->context, att_safetensors_write(self->context, self->path, &content));
    CHECK(self->context, att_tensors_open(self->context, self->path, file));
    return att_layout_apply(&toy, *file);
}

/* Applies the table to the tensors given, as *file. */
#define APPLY(file, ...)                                       \
    apply(self, (const att_safetensors_tensor[]){__VA_ARGS__}, \
          sizeof(const att_safetensors_tensor[]){__VA_ARGS__} / sizeof(att_safetensors_tensor), &(file))

#define REFUSES(part, ...)                                                              \
    do {                                                                                \
        att_tensors *refused = NULL;                                                    \
        assert_fails(self->context, APPLY(refused, __VA_ARGS__), ATT_ERR_FORMAT, part); \
        att_tensors_close(&refused);                                                    \
    } while (0)

static void check_values(const att_tensors *file, const char *name, att_shape shape, const float *expected)
{
    const int index = att_tensors_find(file, name);
    float values[MOST_VALUES];
    if (index < 0)
        fail_msg("there is no tensor %s", name);
    assert_true(att_shape_equal(att_tensors_at(file, index).shape, shape));
    const int64_t count = att_shape_count(shape);
    assert_int_equal(att_tensors_read_f32(file, index, values, count), ATT_OK);
    for (int64_t i = 0; i < count; i++)
        if (values[i] != expected[i])
            fail_msg("%s: element %d is %g instead of %g", name, (int)i, values[i], expected[i]);
}

#define HAS(file, name, shape, ...) check_values(file, name, shape, (const float[]){__VA_ARGS__})

/* --- names -------------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(names_are_changed_behind_any_prefix)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("toy.layer.3.fc.weight", 2), T("doll.layer.12.fc.bias", 1),
                               T("stages.1.down.7.a", 1), T("other.thing", 1), T("layer.123456.fc.a", 1)));
    HAS(file, "blocks.3.mlp.weight", att_shape_of(2), 0, 1);
    HAS(file, "blocks.12.mlp.bias", att_shape_of(1), 0);
    HAS(file, "layers.2.down.7.a", att_shape_of(1), 0);
    HAS(file, "blocks.123456.mlp.a", att_shape_of(1), 0);
    HAS(file, "other.thing", att_shape_of(1), 0); /* without a row: kept, for the loader to refuse */
    assert_int_equal(att_tensors_count(file), 5);
    att_tensors_close(&file);
}

SCRATCH_TEST(a_tensor_may_have_the_other_name_of_its_row)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("toy.layers.0.dense.weight", 2), T("layer.1.fc.weight", 1), T("maybe", 1)));
    HAS(file, "blocks.0.mlp.weight", att_shape_of(2), 0, 1);
    HAS(file, "blocks.1.mlp.weight", att_shape_of(1), 0);
    HAS(file, "with_layer", att_shape_of(1), 0); /* a condition names the first one */
    att_tensors_close(&file);
    CHECK(self->context, APPLY(file, T("layers.1.dense.weight", 1), T("maybe", 1)));
    assert_true(att_tensors_find(file, "with_layer") < 0);
    att_tensors_close(&file);
    REFUSES("of a toy is there twice", T("layer.1.fc.a", 1), T("layers.1.dense.a", 1));
}

SCRATCH_TEST(names_that_only_resemble_a_row_are_kept)
{
    static const char *const names[] = {"layer..fc.weight", "layer.-1.fc.weight", "layer.1234567.fc.weight",
                                        "layer.1.fc.",      "layer.1.fc.a.b",     "layer.1.fc",
                                        "xlayer.1.fc.a",    "toy.toy.q.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        att_tensors *file;
        CHECK(self->context, APPLY(file, T(names[i], 1)));
        assert_string_equal(att_tensors_at(file, 0).name, names[i]);
        att_tensors_close(&file);
    }
}

SCRATCH_TEST(the_rest_of_a_name_is_kept)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("toy.deep.a.1.b", 2)));
    HAS(file, "shallow.a.1.b", att_shape_of(2), 0, 1);
    att_tensors_close(&file);
}

SCRATCH_TEST(a_weight_that_the_file_lacks_is_made_of_ones)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("lacks_gain.bias", 3)));
    HAS(file, "gain", att_shape_of(3), 1, 1, 1);
    att_tensors_close(&file);
}

/* Place c, y, x of a row of two channels has the number 4 c + 2 y + x. */
SCRATCH_TEST(unfolded_patches_become_those_of_timm)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("merge.weight", 2, 8)));
    HAS(file, "merged", att_shape_of(2, 8), 0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15);
    att_tensors_close(&file);
    CHECK(self->context, APPLY(file, T("merge.weight", 4)));
    HAS(file, "merged", att_shape_of(4), 0, 2, 1, 3);
    att_tensors_close(&file);
    REFUSES("does not hold patches of 2 x 2 places", T("merge.weight", 2, 6));
}

SCRATCH_TEST(two_names_of_one_tensor_are_refused)
{
    REFUSES("of a toy is there twice", T("layer.1.fc.a", 1), T("layer.01.fc.a", 1));
    REFUSES("is there twice", T("layer.1.fc.a", 1), T("toy.layer.1.fc.a", 1));
    REFUSES("is there twice", T("layer.1.fc.a", 1), T("blocks.1.mlp.a", 1)); /* the second has timm's name */
}

SCRATCH_TEST(rows_may_leave_out_tensors)
{
    att_tensors *file;
    CHECK(self->context,
          APPLY(file, T("text.a", 1), T("toy.text.b.c", 1), T("logit", 1), T("layer.0.fc.none", 0), T("top", 0, 2)));
    assert_int_equal(att_tensors_count(file), 0);
    assert_string_equal(att_tensors_skipped(file), "text.* (2), logit");
    att_tensors_close(&file);
}

SCRATCH_TEST(many_rows_may_use_a_tensor)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("often", 1)));
    assert_int_equal(att_tensors_count(file), 4);
    assert_true(att_tensors_find(file, "once") >= 0 && att_tensors_find(file, "four_times") >= 0);
    att_tensors_close(&file);
}

SCRATCH_TEST(rows_may_depend_on_another_tensor)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("maybe", 1), T("toy.probe", 1)));
    assert_true(att_tensors_find(file, "with_probe") >= 0 && att_tensors_find(file, "without_probe") < 0);
    att_tensors_close(&file);
    CHECK(self->context, APPLY(file, T("maybe", 1)));
    assert_true(att_tensors_find(file, "with_probe") < 0 && att_tensors_find(file, "without_probe") >= 0);
    att_tensors_close(&file);
}

/* --- joined and added tensors ------------------------------------------------------------------------------------- */

SCRATCH_TEST(parts_are_joined_in_their_order)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("v.weight", 1, 2), T("q.weight", 2, 2), T("k.weight", 1, 2)));
    HAS(file, "qkv.weight", att_shape_of(4, 2), 0, 1, 2, 3, 0, 1, 0, 1);
    assert_int_equal(att_tensors_count(file), 1);
    att_tensors_close(&file);
}

SCRATCH_TEST(parts_that_do_not_fit_are_refused)
{
    REFUSES("\"k.weight\" of a toy lacks those it is joined to", T("k.weight", 2, 2), T("v.weight", 2, 2));
    REFUSES("\"v.weight\" of a toy lacks those it is joined to", T("q.weight", 2, 2), T("v.weight", 2, 2));
    REFUSES("\"v.weight\" of a toy lacks those it is joined to", T("v.weight", 2, 2));
    REFUSES("\"q.weight\" of a toy lacks those it is joined to", T("q.weight", 2, 2));
    REFUSES("\"q.weight\" of a toy lacks those it is joined to", T("q.weight", 2, 2), T("k.weight", 2, 2));
    REFUSES("\"toy.k.weight\" of a toy is there twice", T("q.weight", 2, 2), T("k.weight", 2, 2),
            T("toy.k.weight", 2, 2), T("v.weight", 2, 2));
    REFUSES("\"k.weight\" of a toy has another type or width", T("q.weight", 2, 2), T("k.weight", 2, 3));
    REFUSES("\"k.weight\" of a toy has another type or width", T("q.weight", 2, 2), T("k.weight", 2));
    att_safetensors_tensor half = T("k.weight", 2, 2);
    half.dtype = ATT_SAFETENSORS_F16;
    REFUSES("\"k.weight\" of a toy has another type or width", T("q.weight", 2, 2), half);
    REFUSES("has another type or width", tensor("q.weight", (att_shape){.rank = 0}),
            tensor("k.weight", (att_shape){.rank = 0}));
}

SCRATCH_TEST(tensors_are_added)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("more", 3), T("base", 1, 3)));
    HAS(file, "sum", att_shape_of(1, 3), 0, 2, 4);
    assert_int_equal(att_tensors_count(file), 1);
    att_tensors_close(&file);
    REFUSES("\"more\" of a toy lacks what it is added to", T("more", 3));
    REFUSES("\"more\" of a toy has another size than what it is added to", T("more", 2), T("base", 3));
    REFUSES("is there twice", T("base", 2), T("toy.base", 2), T("more", 2));
}

/* --- parts and shapes --------------------------------------------------------------------------------------------- */

SCRATCH_TEST(rows_of_a_tensor_are_taken)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("top", 1, 3, 2), T("both", 4)));
    HAS(file, "first_rows", att_shape_of(1, 2, 2), 0, 1, 2, 3);
    HAS(file, "upper", att_shape_of(2), 0, 1);
    HAS(file, "lower", att_shape_of(2), 2, 3);
    att_tensors_close(&file);
}

SCRATCH_TEST(rows_that_a_tensor_lacks_are_refused)
{
    REFUSES("\"top\" of a toy has too few rows", T("top", 1, 1));
    REFUSES("\"toy.both\" of a toy has too few rows", T("toy.both", 3, 2));
    REFUSES("\"top\" of a toy has no elements", tensor("top", (att_shape){.rank = 0}));
}

SCRATCH_TEST(shapes_are_changed)
{
    att_tensors *file;
    CHECK(self->context, APPLY(file, T("probe", 2), T("lacks_bias.weight", 2, 1), T("patches.weight", 1, 12)));
    HAS(file, "latent", att_shape_of(1, 1, 2), 0, 1);
    HAS(file, "bias", att_shape_of(2), 0, 0);
    att_tensors_close(&file);
    CHECK(self->context, APPLY(file, T("patches.weight", 1, 3, 2, 2), T("probe", 1, 1, 1, 2)));
    HAS(file, "latent", att_shape_of(1, 1, 1, 2), 0, 1);
    assert_true(att_tensors_find(file, "proj.weight") >= 0);
    att_tensors_close(&file);
    REFUSES("\"patches.weight\" of a toy is no layer for patches of square sides", T("patches.weight", 1, 6));
}

/* kernel: [inputs][outputs]; filter: [h][w][inputs][outputs]; heads: [inputs][heads][channels]. */
SCRATCH_TEST(dimensions_are_reordered_and_joined)
{
    att_tensors *file;
    CHECK(self->context,
          APPLY(file, T("kernel", 2, 3), T("filter", 1, 2, 1, 2), T("heads", 2, 2, 2), T("mixed", 2, 2, 2)));
    HAS(file, "weight", att_shape_of(3, 2), 0, 3, 1, 4, 2, 5);
    HAS(file, "outputs", att_shape_of(3), 0, 0, 0);
    HAS(file, "conv", att_shape_of(2, 1, 1, 2), 0, 2, 1, 3);
    HAS(file, "q", att_shape_of(4, 2), 0, 4, 1, 5, 2, 6, 3, 7);
    HAS(file, "proj", att_shape_of(2, 4), 0, 2, 4, 6, 1, 3, 5, 7);
    att_tensors_close(&file);
    REFUSES("\"kernel\" of a toy has too few dimensions", T("kernel", 2));
    REFUSES("\"kernel\" of a toy has too many dimensions", T("kernel", 2, 2, 2));
}

/* The same of tensors in the caller's memory. */
SCRATCH_TEST(dimensions_of_tensors_in_memory_are_reordered)
{
    const att_safetensors_tensor tensors[] = {T("kernel", 2, 3), T("both", 4)};
    att_tensors *file;
    CHECK(self->context, att_tensors_borrow(self->context, tensors, 2, &file));
    CHECK(self->context, att_layout_apply(&toy, file));
    HAS(file, "weight", att_shape_of(3, 2), 0, 3, 1, 4, 2, 5);
    HAS(file, "lower", att_shape_of(2), 2, 3);
    att_tensors_close(&file);
}

SCRATCH_TEST(dimensions_that_do_not_follow_each_other_are_not_joined)
{
    static const int64_t strides[] = {1, 2, 4}; /* the first index varies fastest */
    const att_safetensors_tensor heads = T("heads", 2, 2, 2);
    const att_safetensors_content content = {.tensors = &heads, .tensor_count = 1};
    att_tensors *file;
    CHECK(self->context, att_safetensors_write(self->context, self->path, &content));
    CHECK(self->context, att_tensors_open(self->context, self->path, &file));
    file->items[0].strides = strides;
    assert_fails(self->context, att_layout_apply(&toy, file), ATT_ERR_FORMAT, "stored in another order");
    att_tensors_close(&file);
}

/* Of a file whose first bytes alone are there. */
SCRATCH_TEST(names_and_shapes_need_no_elements)
{
    enum { MOST = 4096 };
    const att_safetensors_tensor tensors[] = {T("base", 2), T("more", 2), T("merge.weight", 1, 8)};
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = 3};
    char bytes[MOST], path[512];
    uint64_t header;
    att_tensors *file;
    CHECK(self->context, att_safetensors_write(self->context, self->path, &content));
    FILE *whole = fopen(self->path, "rb");
    assert_non_null(whole);
    const size_t size = fread(bytes, 1, sizeof bytes, whole);
    fclose(whole);
    memcpy(&header, bytes, sizeof header);
    scratch_write_as(self, "part", bytes, sizeof header + header);
    CHECK(self->context,
          att_tensors_open_part(self->context, scratch_path(self, "part", path), self->path, size, &file));
    CHECK(self->context, att_layout_apply(&toy, file));
    assert_true(att_tensors_find(file, "sum") >= 0 && att_tensors_find(file, "merged") >= 0);
    att_tensors_close(&file);
}

/* The numbers of a row lie two apart, rows one. */
SCRATCH_TEST(patches_with_strides_become_a_convolution)
{
    static const int64_t strides[] = {1, 2};
    const att_safetensors_tensor patches = T("patches.weight", 2, 12);
    const att_safetensors_content content = {.tensors = &patches, .tensor_count = 1};
    att_tensors *file;
    CHECK(self->context, att_safetensors_write(self->context, self->path, &content));
    CHECK(self->context, att_tensors_open(self->context, self->path, &file));
    file->items[0].strides = strides;
    CHECK(self->context, att_layout_apply(&toy, file));
    HAS(file, "proj.weight", att_shape_of(2, 3, 2, 2), 0, 6, 12, 18, 2, 8, 14, 20, 4, 10, 16, 22, 1, 7, 13, 19, 3, 9,
        15, 21, 5, 11, 17, 23);
    att_tensors_close(&file);
}

/* transposed: [3, 2], the rows 0 3, 1 4, 2 5; every_third: 2 5 8 11 (tools/goldens/checkpoints.py). */
SCRATCH_TEST(rows_of_tensors_with_strides_are_taken)
{
    static const char *const files[] = {"checkpoints/kinds_zip.pth", "checkpoints/kinds_old.pth"};
    for (int i = 0; i < 2; i++) {
        char path[4096];
        att_tensors *file;
        golden_path(files[i], path, sizeof path);
        CHECK(self->context, att_tensors_open(self->context, path, &file));
        CHECK(self->context, att_layout_apply(&toy, file));
        HAS(file, "turned", att_shape_of(2, 2), 1, 4, 2, 5);
        HAS(file, "thirds", att_shape_of(1, 4), 2, 5, 8, 11);
        att_tensors_close(&file);
    }
}
