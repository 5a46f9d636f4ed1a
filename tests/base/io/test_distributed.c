/* Folders of torch.distributed.checkpoint: a table of tensors, built by hand, and files of chunks beside it. The file
 * of PyTorch is tests/goldens/checkpoints/distributed. */
#include "base/io/safetensors_file.h"
#include "base/io/torch_file.h"
#include "golden_path.h"

/* A chunk in the table. */
typedef struct listed {
    const char *name, *path;
    int64_t offset[2], size[2]; /* size: of the whole tensor */
    int rank;
    int64_t begin, length; /* of the chunk's file */
    bool packed;
} listed;

static void begin_object(bytes *to, const char *module, const char *class)
{
    global(to, module, class);
    ops(to, ")\x81}(");
}

#define MODULE "torch.distributed.checkpoint.metadata"

static void put_place(bytes *to, const listed *l)
{
    begin_object(to, MODULE, "MetadataIndex");
    text(to, "fqn");
    text(to, l->name);
    if (l->rank >= 0) {
        text(to, "offset");
        numbers(to, l->offset, l->rank);
    }
    ops(to, "ub");
    begin_object(to, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
    text(to, "relative_path");
    text(to, l->path);
    text(to, "offset");
    integer(to, l->begin);
    text(to, "length");
    integer(to, l->length);
    if (l->packed) {
        text(to, "transform_descriptors");
        ops(to, "](");
        text(to, "zstd");
        ops(to, "e");
    }
    ops(to, "ub");
}

/* Writes the table as the test's main file. */
static void write_table(const scratch *self, const listed *chunks, int count)
{
    bytes *to = calloc(1, sizeof *to);
    assert_non_null(to);
    ops(to, "\x80\x02");
    begin_object(to, MODULE, "Metadata");
    text(to, "state_dict_metadata");
    ops(to, "}(");
    for (int i = 0; i < count; i++) {
        text(to, chunks[i].name);
        begin_object(to, MODULE, chunks[i].rank < 0 ? "BytesStorageMetadata" : "TensorStorageMetadata");
        text(to, "size");
        numbers(to, chunks[i].size, chunks[i].rank < 0 ? 0 : chunks[i].rank);
        ops(to, "ub");
    }
    ops(to, "u");
    text(to, "storage_data");
    ops(to, "}(");
    for (int i = 0; i < count; i++)
        put_place(to, &chunks[i]);
    ops(to, "uub.");
    scratch_write(self, to->data, to->size);
    free(to);
}

/* Appends a file of torch.save() with a tensor of F32, first, first + 1, ... Returns its length. */
static int64_t put_chunk(bytes *to, float first, int64_t rows, int64_t columns)
{
    float values[16];
    bytes *pickle = calloc(1, sizeof *pickle), *chunk = calloc(1, sizeof *chunk);
    const described t = {"FloatStorage", "0", rows * columns, 0, {rows, columns}, {columns, 1}, 2, 2};
    assert_non_null(pickle);
    assert_non_null(chunk);
    for (int i = 0; i < rows * columns; i++)
        values[i] = first + (float)i;
    ops(pickle, "\x80\x02");
    tensor(pickle, &t);
    ops(pickle, ".");
    const zipped files[] = {{"archive/data.pkl", pickle->data, pickle->size, 0, 0, 0, 0, 0},
                            {"archive/data/0", values, (size_t)(rows * columns) * sizeof *values, 0, 0, 0, 0, 0}};
    zip_file(chunk, files, 2); /* its offsets are those in the chunk */
    put(to, chunk->data, chunk->size);
    const int64_t length = (int64_t)chunk->size;
    free(chunk);
    free(pickle);
    return length;
}

static void write_beside(const scratch *self, const char *name, const bytes *content)
{
    scratch other = *self;
    snprintf(other.path, sizeof other.path, "%s/%s", self->folder, name);
    scratch_write(&other, content->data, content->size);
}

/* Two files: the first holds 2 x 2 numbers from 0 on and 1 x 2 from 100 on, the second 1 x 2 from 4 on. Sets the
 * lengths of these chunks. */
static void write_chunks(const scratch *self, int64_t lengths[3])
{
    bytes *first = calloc(1, sizeof *first), *second = calloc(1, sizeof *second);
    assert_non_null(first);
    assert_non_null(second);
    lengths[0] = put_chunk(first, 0, 2, 2);
    lengths[1] = put_chunk(first, 100, 1, 2);
    lengths[2] = put_chunk(second, 4, 1, 2);
    write_beside(self, "__0_0.distcp", first);
    write_beside(self, "__1_0.distcp", second);
    free(first);
    free(second);
}

SCRATCH_TEST(rows_of_several_processes_are_joined)
{
    int64_t n[3];
    write_chunks(self, n);
    const listed chunks[] = {
        {"model.module.w", "__1_0.distcp", {2, 0}, {3, 2}, 2, 0, n[2], false},
        {"model.module.w", "__0_0.distcp", {0, 0}, {3, 2}, 2, 0, n[0], false},
        {"model.module.b", "__0_0.distcp", {0, 0}, {1, 2}, 2, n[0], n[1], false},
        {"optim.state.w", "__0_0.distcp", {0, 0}, {1, 2}, 2, n[0], n[1], false},
        {"optim.state.x", "__0_0.distcp", {0, 0}, {1, 2}, 2, n[0], n[1], false},
        {"epoch", "__0_0.distcp", {0}, {0}, -1, 0, 1, false},
    };
    write_table(self, chunks, 6);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 2);
    assert_f32(file, "w", att_shape_of(3, 2), (const double[]){0, 1, 2, 3, 4, 5});
    assert_f32(file, "b", att_shape_of(1, 2), (const double[]){100, 101});
    assert_string_equal(att_tensors_origin(file),
                        "torch.distributed.checkpoint's model without the prefix module.; "
                        "left out: optim (2 tensors)");
    att_tensors_close(&file);
    /* A part of it. */
    char part[200];
    snprintf(part, sizeof part, "%s#optim.state", self->path);
    file = open_path(self, part);
    assert_int_equal(att_tensors_count(file), 2);
    assert_f32(file, "x", att_shape_of(1, 2), (const double[]){100, 101});
    att_tensors_close(&file);
}

/* {"app": {"model": ..., "optim": ...}}, as in PyTorch's tutorial; and weights without a key. */
SCRATCH_TEST(the_network_is_found_by_its_key)
{
    int64_t n[3];
    write_chunks(self, n);
    listed chunks[] = {
        {"app.model.w", "__0_0.distcp", {0, 0}, {2, 2}, 2, 0, n[0], false},
        {"app.optim.w", "__1_0.distcp", {0, 0}, {1, 2}, 2, 0, n[2], false},
    };
    write_table(self, chunks, 2);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 1);
    assert_f32(file, "w", att_shape_of(2, 2), (const double[]){0, 1, 2, 3});
    assert_string_equal(att_tensors_origin(file),
                        "torch.distributed.checkpoint's app.model; left out: app.optim (1 tensor)");
    att_tensors_close(&file);
    chunks[0].name = "w";
    chunks[1].name = "layer.w";
    write_table(self, chunks, 2);
    file = open_file(self);
    assert_int_equal(att_tensors_count(file), 2);
    assert_string_equal(att_tensors_origin(file), "torch.distributed.checkpoint's tensors");
    att_tensors_close(&file);
}

SCRATCH_TEST(damaged_tables_are_refused)
{
    int64_t n[3];
    write_chunks(self, n);
#define FIRST                                                  \
    {                                                          \
        "w", "__0_0.distcp", {0, 0}, {3, 2}, 2, 0, n[0], false \
    }
    const struct {
        listed chunks[2];
        const char *why;
        att_status status;
    } all[] = {
        {{FIRST, {"w", "__1_0.distcp", {2, 0}, {4, 2}, 2, 0, n[2], false}},
         "tensor w has another size",
         ATT_ERR_FORMAT},
        {{FIRST, {"w", "__1_0.distcp", {3, 0}, {3, 2}, 2, 0, n[2], false}}, "do not fit together", ATT_ERR_FORMAT},
        {{FIRST, {"w", "__1_0.distcp", {0, 0}, {3, 2}, 2, 0, n[2], false}}, "do not fit together", ATT_ERR_FORMAT},
        {{FIRST, {"w", "__1_0.distcp", {0, 2}, {3, 4}, 2, 0, n[2], false}}, "another dimension", ATT_ERR_UNSUPPORTED},
        {{FIRST, {"w", "__1_0.distcp", {2, 0}, {3, 2}, 2, 0, n[2], true}}, "is compressed", ATT_ERR_UNSUPPORTED},
        {{FIRST, {"w", "__1_0.distcp", {2, 0}, {3, 2}, 2, 0, n[2] + 1, false}}, "is truncated", ATT_ERR_FORMAT},
        {{FIRST, {"w", "__1_0.distcp", {2, 0}, {3, 2}, 2, n[2] + 1, 0, false}}, "is truncated", ATT_ERR_FORMAT},
        {{FIRST, {"w", "__1_0.distcp", {2, 0}, {3, 2}, 2, 0, n[2] - 30, false}}, "__1_0.distcp: ", ATT_ERR_FORMAT},
        {{FIRST, {"w", "__1_0.distcp", {2, 0}, {3, 2}, 2, -1, n[2], false}}, "a place that cannot", ATT_ERR_FORMAT},
        {{FIRST, {"w", "__2_0.distcp", {2, 0}, {3, 2}, 2, 0, n[2], false}}, "no such file", ATT_ERR_NOT_FOUND},
        {{FIRST, {"w", "../__1_0.distcp", {2, 0}, {3, 2}, 2, 0, n[2], false}}, "in the same folder", ATT_ERR_FORMAT},
        {{{"w", "a", {0}, {0}, -1, 0, 0, false}, {"v", "a", {0}, {0}, -1, 0, 0, false}},
         "without tensors",
         ATT_ERR_FORMAT},
    };
#undef FIRST
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        att_tensors *file = NULL;
        write_table(self, all[i].chunks, 2);
        assert_fails(self->context, att_tensors_open(self->context, self->path, &file), all[i].status, all[i].why);
    }
}

/* The same rows again and again, of a tensor that is larger than the files. */
SCRATCH_TEST(a_tensor_larger_than_its_files_is_refused)
{
    enum { CHUNKS = 60 };
    static listed chunks[CHUNKS];
    int64_t n[3];
    write_chunks(self, n);
    for (int i = 0; i < CHUNKS; i++)
        chunks[i] = (listed){"w", "__0_0.distcp", {2 * (int64_t)i, 0}, {2 * CHUNKS, 2}, 2, 0, n[0], false};
    write_table(self, chunks, CHUNKS);
    refuse(self, ATT_ERR_FORMAT, "tensor w is larger than the files that hold it");
}

/* Written by two processes of PyTorch (tools/goldens/checkpoints.py). */
SCRATCH_TEST(pytorchs_folder_is_read)
{
    static const double rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, turned[] = {0, 2, 4, 1, 3, 5};
    char path[4096];
    golden_path("checkpoints/distributed/.metadata", path, sizeof path);
    att_tensors *file = open_path(self, path);
    assert_int_equal(att_tensors_count(file), 4);
    assert_f32(file, "rows", att_shape_of(5, 2), rows);
    assert_f32(file, "turned", att_shape_of(2, 3), turned);
    assert_f32(file, "half", att_shape_of(3), (const double[]){0, 0.5, 1});
    assert_int_equal(att_tensors_at(file, att_tensors_find(file, "count")).dtype, ATT_SAFETENSORS_I64);
    assert_string_equal(att_tensors_origin(file),
                        "torch.distributed.checkpoint's model without the prefix module.; "
                        "left out: optim (1 tensor)");
    att_tensors_close(&file);
}
