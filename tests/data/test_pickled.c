/* CIFAR's version for Python, with pickles built by hand. */
#include <attscope/data.h>

#include "base/io/pack.h"
#include "base/io/torch_file.h"
#include "data/dataset.h"

enum { SIDE = 32, ROW = 3 * SIDE * SIDE, IMAGES = 2 };

/* The value of byte `at` of an image's planes. */
static uint8_t value_at(int image, int at)
{
    return (uint8_t)(at % 251 + 90 * image);
}

/* --- pickles ------------------------------------------------------------------------------------------------------ */

/* Appends a Python 2 str with SHORT_BINSTRING. */
static void str2(bytes *to, const char *value)
{
    ops(to, "U");
    put_number(to, strlen(value), 1);
    ops(to, value);
}

static void small(bytes *to, int value)
{
    ops(to, "K");
    put_number(to, (uint64_t)value, 1);
}

static void labels(bytes *to, const char *key, int first, int count)
{
    str2(to, key);
    ops(to, "](");
    for (int i = 0; i < count; i++)
        small(to, first + i);
    ops(to, "e");
}

static void pixels(bytes *to, int first)
{
    for (int image = first; image < first + IMAGES; image++)
        for (int i = 0; i < ROW; i++)
            put_number(to, value_at(image, i), 1);
}

/* Appends the same bytes as Latin-1 characters encoded in UTF-8. */
static void pixels_as_text(bytes *to, int first)
{
    bytes *text = calloc(1, sizeof *text);
    for (int image = first; image < first + IMAGES; image++)
        for (int i = 0; i < ROW; i++) {
            uint8_t value = value_at(image, i);
            if (value >= 0x80)
                put_number(text, 0xc0U | value >> 6, 1);
            put_number(text, value >= 0x80 ? 0x80U | (value & 0x3f) : value, 1);
        }
    ops(to, "X");
    put_number(to, text->size, 4);
    put(to, text->data, text->size);
    free(text);
}

static void type(bytes *to, const char *name)
{
    global(to, "numpy", "dtype");
    str2(to, name);
    small(to, 0);
    small(to, 1);
    ops(to, "\x87R");
}

typedef struct form {
    const char *type, *module; /* u1, numpy.core.multiarray */
    int rows, columns, by_columns, missing, labels;
    bool as_text, from_buffer;
} form;
static const form plain_form = {"u1", "numpy.core.multiarray", IMAGES, ROW, 0, 0, IMAGES, false, false};

static void shape(bytes *to, const form *f)
{
    integer(to, f->rows);
    integer(to, f->columns);
    ops(to, "\x86");
}

static void content(bytes *to, const form *f, int first)
{
    if (f->as_text) {
        global(to, "_codecs", "encode");
        pixels_as_text(to, first);
        text(to, "latin1");
        ops(to, "\x86R");
        return;
    }
    size_t length = to->size + 1;
    ops(to, "T");
    put_number(to, (uint64_t)(IMAGES * ROW - f->missing), 4);
    pixels(to, first);
    to->size -= (size_t)f->missing;
    assert_int_equal(to->size, length + 4 + (size_t)(IMAGES * ROW - f->missing));
}

static void array(bytes *to, const form *f, int first)
{
    if (f->from_buffer) {
        global(to, "numpy._core.numeric", "_frombuffer");
        ops(to, "(");
        content(to, f, first);
        type(to, f->type);
        shape(to, f);
        text(to, f->by_columns ? "F" : "C");
        ops(to, "tR");
        return;
    }
    global(to, f->module, "_reconstruct");
    global(to, "numpy", "ndarray");
    small(to, 0);
    ops(to, "\x85");
    str2(to, "b");
    ops(to, "\x87R(");
    small(to, 1);
    shape(to, f);
    type(to, f->type);
    ops(to, f->by_columns ? "\x88" : "\x89");
    content(to, f, first);
    ops(to, "tb");
}

/* Appends {'batch_label': ..., 'labels': [first, ...], 'data': array} as Python 2 wrote it. */
static void batch(bytes *to, const form *f, int first)
{
    to->size = 0;
    ops(to, "\x80\x02}(");
    str2(to, "batch_label");
    str2(to, "batch 1 of 5");
    labels(to, "labels", first, f->labels);
    str2(to, "data");
    array(to, f, first);
    ops(to, "u.");
}

static void names(bytes *to, const char *key, const char *const *list, int count)
{
    str2(to, key);
    ops(to, "](");
    for (int i = 0; i < count; i++)
        str2(to, list[i]);
    ops(to, "e");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void write_file(const scratch *self, const char *folder, const char *name, const bytes *from)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->folder, folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", self->folder, folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(from->data, 1, from->size, file), from->size);
    fclose(file);
}

static const char ten_folder[] = "cifar-10-batches-py";
static const char *const ten_files[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                        "data_batch_4", "data_batch_5", "test_batch"};
static const char *const ten_names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                        "dog",      "frog",       "horse", "ship", "truck"};

static void ten_meta(bytes *to)
{
    to->size = 0;
    ops(to, "\x80\x02}(");
    names(to, "label_names", ten_names, 10);
    ops(to, "u.");
}

static void write_ten(const scratch *self, const char *folder)
{
    bytes *made = calloc(1, sizeof *made);
    for (int i = 0; i < 6; i++) {
        batch(made, &plain_form, i == 5 ? 0 : i * IMAGES);
        write_file(self, folder, ten_files[i], made);
    }
    ten_meta(made);
    write_file(self, folder, "batches.meta", made);
    free(made);
}

static att_status open_as(scratch *self, const char *path, const char *split, bool coarse, att_dataset **dataset)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.coarse = coarse;
    return att_dataset_open(self->context, path, &options, dataset);
}

static att_dataset *open_set(scratch *self, const char *path, const char *split, bool coarse)
{
    att_dataset *dataset = NULL;
    if (open_as(self, path, split, coarse, &dataset) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return dataset;
}

static void assert_pixels(scratch *self, const att_dataset *dataset, int64_t index, int image)
{
    att_image read;
    assert_int_equal(att_dataset_read(dataset, self->context, index, 3, &read), ATT_OK);
    assert_int_equal(read.width, SIDE);
    assert_int_equal(read.height, SIDE);
    for (int at = 0; at < ROW; at++)
        assert_int_equal(read.pixels[at % (SIDE * SIDE) * 3 + at / (SIDE * SIDE)], value_at(image, at));
    att_image_free(self->context, &read);
}

static void assert_ten(scratch *self, const char *path)
{
    att_dataset *dataset = open_set(self, path, "train", false);
    assert_string_equal(dataset->kind, "cifar10");
    assert_int_equal(att_dataset_count(dataset), 10);
    assert_int_equal(att_dataset_class_count(dataset), 10);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_LABELS);
    assert_string_equal(att_dataset_class_name(dataset, 3), "cat");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(att_dataset_label(dataset, i), i);
        assert_pixels(self, dataset, i, i);
    }
    char name[512];
    assert_non_null(strstr(att_dataset_name(dataset, 3, name, sizeof name), "/data_batch_2[1]"));
    att_dataset_close(&dataset);
    dataset = open_set(self, path, "test", false);
    assert_string_equal(att_dataset_split(dataset), "test");
    assert_int_equal(att_dataset_count(dataset), IMAGES);
    assert_pixels(self, dataset, 1, 1);
    att_dataset_close(&dataset);
}

static void pack_ten(const char *path, const char *kind)
{
    bytes *made = calloc(1, sizeof *made);
    pack archive = pack_open(path, kind);
    pack_entry(&archive, "notes/test_batch", AE_IFREG, NULL, "none", 4); /* in another folder, the name means nothing */
    for (int i = 0; i < 7; i++) {
        char name[64];
        if (i < 6)
            batch(made, &plain_form, i == 5 ? 0 : i * IMAGES);
        else
            ten_meta(made);
        snprintf(name, sizeof name, "%s/%s", ten_folder, i < 6 ? ten_files[i] : "batches.meta");
        pack_entry(&archive, name, AE_IFREG, NULL, made->data, made->size);
    }
    pack_close(&archive);
    free(made);
}

SCRATCH_TEST(cifar10_is_read_from_its_folders)
{
    char path[256];
    write_ten(self, "plain"); /* the file with the names decides */
    snprintf(path, sizeof path, "%s/plain", self->folder);
    assert_ten(self, path);
    write_ten(self, ten_folder);
    assert_ten(self, self->folder); /* the root folder of torchvision */
    snprintf(path, sizeof path, "%s/%s", self->folder, ten_folder);
    assert_ten(self, path);
}

SCRATCH_TEST(cifar10_is_read_from_archives)
{
    char path[256];
    pack_ten(self->path, "ustar.gz");
    assert_ten(self, self->path);
    pack_ten(self->path, "zip");
    assert_ten(self, self->path);
    assert_int_equal(remove(self->path), 0);
    snprintf(path, sizeof path, "%s/cifar-10-python.tar.gz", self->folder);
    pack_ten(path, "ustar.gz");
    assert_ten(self, self->folder);
}

SCRATCH_TEST(cifar100_has_fine_and_coarse_labels)
{
    static const char folder[] = "cifar-100-python";
    bytes *made = calloc(1, sizeof *made);
    char text[100][8];
    const char *list[100];
    for (int i = 0; i < 100; i++) {
        snprintf(text[i], sizeof text[i], "c%d", i);
        list[i] = text[i];
    }
    ops(made, "\x80\x02}(");
    labels(made, "coarse_labels", 18, IMAGES);
    labels(made, "fine_labels", 98, IMAGES);
    str2(made, "data");
    array(made, &plain_form, 0);
    ops(made, "u.");
    write_file(self, folder, "train", made);
    att_dataset *dataset = open_set(self, self->folder, "train", false); /* the folder's name decides */
    assert_string_equal(att_dataset_class_name(dataset, 99), "99");
    att_dataset_close(&dataset);
    made->size = 0;
    ops(made, "\x80\x02}(");
    names(made, "fine_label_names", list, 100);
    names(made, "coarse_label_names", list, 20);
    ops(made, "u.");
    write_file(self, folder, "meta", made);
    for (int coarse = 0; coarse < 2; coarse++) {
        int last = coarse ? 19 : 99;
        dataset = open_set(self, self->folder, "train", coarse);
        assert_string_equal(dataset->kind, "cifar100");
        assert_int_equal(att_dataset_class_count(dataset), last + 1);
        assert_string_equal(att_dataset_class_name(dataset, last), list[last]);
        assert_int_equal(att_dataset_label(dataset, 1), last);
        assert_pixels(self, dataset, 1, 1);
        att_dataset_close(&dataset);
    }
    free(made);
}

/* --- other writers, and files that are not batches ---------------------------------------------------------------- */

SCRATCH_TEST(batches_of_python_3_and_numpy_2_are_read)
{
    bytes *made = calloc(1, sizeof *made);
    form forms[3] = {plain_form, plain_form, plain_form};
    forms[0].as_text = true;
    forms[1].module = "numpy._core.multiarray";
    forms[2].from_buffer = true;
    write_ten(self, ten_folder);
    for (int i = 0; i < 3; i++) {
        batch(made, &forms[i], 0);
        write_file(self, ten_folder, "test_batch", made);
        assert_ten(self, self->folder);
    }
    made->size = 0;
    ops(made, "\x80\x02}("); /* keys of type bytes */
    global(made, "_codecs", "encode");
    text(made, "labels");
    text(made, "latin1");
    ops(made, "\x86R](");
    small(made, 0);
    small(made, 1);
    ops(made, "e");
    text(made, "data");
    array(made, &plain_form, 0);
    ops(made, "u.");
    write_file(self, ten_folder, "test_batch", made);
    assert_ten(self, self->folder);
    free(made);
}

static void expect_failure(scratch *self, const bytes *made, att_status status, const char *part)
{
    att_dataset *dataset = NULL;
    write_file(self, ten_folder, "test_batch", made);
    size_t allocated = att_context_allocations(self->context).bytes_now;
    assert_fails(self->context, open_as(self, self->folder, "test", false, &dataset), status, part);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

SCRATCH_TEST(malformed_batches_are_refused_with_the_reason)
{
    static const char expected[] = "test_batch in ";
    static const char *const damaged[] = {"type", "rows", "columns", "order", "bytes", "text", "buffer", "labels"};
    bytes *made = calloc(1, sizeof *made);
    form forms[8];
    for (int i = 0; i < 8; i++)
        forms[i] = plain_form;
    forms[0].type = "i1", forms[1].rows = 1, forms[2].columns = ROW - 1, forms[3].by_columns = 1, forms[4].missing = 1;
    forms[5].as_text = true, forms[5].rows = forms[5].labels = 1;
    forms[6].from_buffer = true, forms[6].by_columns = 1;
    forms[7].labels = 3;
    write_ten(self, ten_folder);
    for (int i = 0; i < 8; i++) {
        print_message("%s\n", damaged[i]);
        batch(made, &forms[i], 0);
        expect_failure(self, made, ATT_ERR_FORMAT,
                       "a numpy uint8 matrix with one row of 3072 bytes per image, and \"labels\", a list");
        assert_message_has(self, expected);
    }
    batch(made, &plain_form, 9);
    expect_failure(self, made, ATT_ERR_FORMAT, "image 1 has label 10, expected 0 to 9");
    made->size = 0;
    ops(made,
        "\x80\x02"
        "cos\nsystem\n(");
    text(made, "ls");
    ops(made, "tR.");
    expect_failure(self, made, ATT_ERR_UNSUPPORTED, "the file uses os.system; attscope never runs code");
    made->size = 0;
    ops(made, "\x80\x02}.");
    expect_failure(self, made, ATT_ERR_FORMAT, "expected a Python dictionary with \"data\"");
    write_file(self, ten_folder, "batches.meta", made);
    batch(made, &plain_form, 0);
    expect_failure(self, made, ATT_ERR_FORMAT, "with \"label_names\", a list of names");
    made->size = 0;
    ops(made, "\x80\x02}(");
    names(made, "label_names", ten_names, 9);
    ops(made, "u.");
    write_file(self, ten_folder, "batches.meta", made);
    batch(made, &plain_form, 0);
    expect_failure(self, made, ATT_ERR_MISMATCH, "batches.meta in ");
    free(made);
}

static att_status open_and_close(scratch *self)
{
    att_dataset *dataset = NULL;
    att_status status = open_as(self, self->folder, "test", false, &dataset);
    att_dataset_close(&dataset);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    write_ten(self, ten_folder);
    assert_survives_lack_of_memory(self, open_and_close);
}
