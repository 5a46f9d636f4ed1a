/* seeds FOLDER - writes the binary seeds of the fuzz targets, FOLDER/<target>/<name>, and their dictionaries,
 * FOLDER/<target>.dict. */
#include <archive.h>
#include <archive_entry.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/io/npz.h"
#include "base/io/png_write.h"
#include "commands.h"
#include "help.h"
#include "lab/report/fixture.h"
#include "tiny.h"

static const char *root;

static FILE *create(const char *target, const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", root, target);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL, path);
    return file;
}

static void keep(const char *target, const char *name, const void *bytes, size_t size)
{
    FILE *file = create(target, name);
    fuzz_require(fwrite(bytes, 1, size, file) == size && fclose(file) == 0, name);
}

static char *read_file(const char *name, size_t *size)
{
    static char bytes[1 << 20];
    char path[600];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    FILE *file = fopen(path, "rb");
    fuzz_require(file != NULL, path);
    *size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return bytes;
}

static void make_safetensors(void)
{
    static const float values[6] = {0, 1, -1, 0.5f, 2, 1e-3f};
    static const uint8_t halves[4] = {0, 0x3c, 0, 0xbc};
    const att_safetensors_tensor tensors[] = {
        {"head.weight", ATT_SAFETENSORS_F32, {2, {2, 3}}, values}, {"head.bias", ATT_SAFETENSORS_F16, {1, {2}}, halves},
        {"scale", ATT_SAFETENSORS_BF16, {0, {0}}, halves},         {"count", ATT_SAFETENSORS_I64, {1, {1}}, values},
        {"empty", ATT_SAFETENSORS_U8, {1, {0}}, values},
    };
    const att_safetensors_pair metadata[] = {{"format", "pt"}};
    const att_safetensors_content content = {
        .tensors = tensors, .tensor_count = 5, .metadata = metadata, .metadata_count = 1};
    char path[600];
    snprintf(path, sizeof path, "%s/small.safetensors", fuzz_folder());
    fuzz_require(att_safetensors_write(fuzz_context(), path, &content) == ATT_OK, att_context_message(fuzz_context()));
    size_t size;
    char *bytes = read_file("small.safetensors", &size);
    keep("safetensors", "small", bytes, size);
}

static void make_arrays(void)
{
    static const float values[6] = {0, 1, -1, 0.5f, 2, 1e-3f};
    char path[600];
    att_npz *npz;
    snprintf(path, sizeof path, "%s/small.npz", fuzz_folder());
    fuzz_require(att_npz_open(fuzz_context(), path, &npz) == ATT_OK &&
                     att_npz_add(npz, "head/kernel", "<f4", att_shape_of(2, 3), values, sizeof values) == ATT_OK &&
                     att_npz_add(npz, "step", "<i8", att_shape_of(1), values, 8) == ATT_OK &&
                     att_npz_add(npz, "names", "<U1", att_shape_of(1), values, 4) == ATT_OK &&
                     att_npz_commit(&npz) == ATT_OK,
                 att_context_message(fuzz_context()));
    size_t size;
    char *bytes = read_file("small.npz", &size);
    keep("torch", "arrays", bytes, size);
}

static void make_checkpoint(void)
{
    char path[600];
    size_t size;
    tiny_train();
    char *bytes = read_file("last.safetensors", &size);
    keep("safetensors", "checkpoint", bytes, size);
    snprintf(path, sizeof path, "%s/last.safetensors", fuzz_folder());
    att_tensors *file = NULL;
    fuzz_require(att_tensors_open(fuzz_context(), path, &file) == ATT_OK, path);
    FILE *lines = create("checkpoint", "metadata");
    snprintf(path, sizeof path, "%s/checkpoint.dict", root);
    FILE *dictionary = fopen(path, "w");
    fuzz_require(dictionary != NULL, path);
    for (int i = 0; i < att_tensors_metadata_count(file); i++) {
        const char *key = att_tensors_metadata_key(file, i);
        fprintf(lines, "%s=%s\n", key, att_tensors_metadata(file, key));
        fprintf(dictionary, "\"%s=\"\n", key);
    }
    fclose(dictionary);
    fclose(lines);
    att_tensors_close(&file);
}

/* {"w": a transposed tensor of 2 x 2, "p": a parameter}, an OrderedDict, an object of unknown type; and the names that
 * a pickle may use. */
static void make_pickles(void)
{
    static const char storage[] =
        "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
        "0"
        "X\3\0\0\0cpuK\4tQ";
    static const char rest[] = "K\0(K\2K\2t(K\1K\2t\x89Nt";
    FILE *seed = create("pickle", "state");
    fputs("\x80\2}(", seed);
    fwrite("X\1\0\0\0w", 1, 6, seed);
    fputs("ctorch._utils\n_rebuild_tensor_v2\nq\1(", seed);
    fwrite(storage, 1, sizeof storage - 1, seed);
    fwrite(rest, 1, sizeof rest - 1, seed);
    fputs("Rq\2", seed);
    fwrite("X\1\0\0\0p", 1, 6, seed);
    fputs("ctorch._utils\n_rebuild_parameter\n(h\2\x88Nt", seed);
    fputs("RU\1accollections\nOrderedDict\n)R}bU\1bcargparse\nNamespace\n)\x81}bU\1c](K\1G", seed);
    fwrite("\x40\0\0\0\0\0\0\0eu.", 1, 11, seed);
    fclose(seed);
    char path[600];
    snprintf(path, sizeof path, "%s/pickle.dict", root);
    FILE *dictionary = fopen(path, "w");
    fuzz_require(dictionary != NULL, path);
    static const char *const words[] = {"ctorch._utils\\x0a_rebuild_tensor\\x0a",
                                        "ctorch._utils\\x0a_rebuild_tensor_v2\\x0a",
                                        "ctorch._utils\\x0a_rebuild_tensor_v3\\x0a",
                                        "ctorch._utils\\x0a_rebuild_parameter\\x0a",
                                        "ctorch._utils\\x0a_rebuild_parameter_with_state\\x0a",
                                        "ctorch._utils\\x0a_rebuild_qtensor\\x0a",
                                        "ctorch._tensor\\x0a_rebuild_from_type_v2\\x0a",
                                        "ctorch\\x0aFloatStorage\\x0a",
                                        "ctorch\\x0aHalfStorage\\x0a",
                                        "ctorch.storage\\x0aUntypedStorage\\x0a",
                                        "ctorch\\x0afloat32\\x0a",
                                        "ctorch\\x0aSize\\x0a",
                                        "ccollections\\x0aOrderedDict\\x0a",
                                        "cargparse\\x0aNamespace\\x0a",
                                        "U\\x0astate_dict",
                                        "U\\x0estate_dict_ema",
                                        "U\\x07module."};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(dictionary, "\"%s\"\n", words[i]);
    fclose(dictionary);
}

static void make_maps(int version, const char *name)
{
    char path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/maps.safetensors", fuzz_folder());
    fuzz_require(fixture_maps(fuzz_context(), path, 1, "2", version) == ATT_OK, att_context_message(fuzz_context()));
    char *bytes = read_file("maps.safetensors", &size);
    keep("maps", name, bytes, size);
}

/* A database with one run. It has small pages, because tools/fuzz uses inputs of at most 8 KiB. */
static void make_runs(void)
{
    char folder[300], database[300];
    size_t size;
    snprintf(folder, sizeof folder, "%s/run", fuzz_folder());
    snprintf(database, sizeof database, "%s/runs.sqlite", fuzz_folder());
    const att_event_field fields[] = {{"model", 0, "vit"}, {"lr", 0.1, NULL}};
    att_event event = {.kind = ATT_EVENT_RUN_BEGIN, .fields = fields, .field_count = 2};
    att_sink sink;
    fuzz_require(att_store_open(fuzz_context(), folder, &(att_store_options){.database = database}, &sink) == ATT_OK &&
                     sink.emit(sink.user, &event) == ATT_OK,
                 att_context_message(fuzz_context()));
    for (event.step = 1, event.kind = ATT_EVENT_STEP; event.step < 9; event.step++)
        fuzz_require(sink.emit(sink.user, &event) == ATT_OK, att_context_message(fuzz_context()));
    sink.close(sink.user);
    sqlite3 *connection = NULL;
    fuzz_require(sqlite3_open(database, &connection) == SQLITE_OK &&
                     sqlite3_exec(connection, "PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM", NULL, NULL,
                                  NULL) == SQLITE_OK,
                 database);
    sqlite3_close(connection);
    char *bytes = read_file("runs.sqlite", &size);
    fuzz_require(size <= 8192, "the database is small");
    keep("runs", "one", bytes, size);
}

static void make_idx(void)
{
    size_t size;
    char *bytes = read_file("train-images-idx3-ubyte", &size);
    keep("idx", "images", bytes, size);
    char path[600];
    snprintf(path, sizeof path, "%s/idx/images.gz", root);
    gzFile packed = gzopen(path, "wb");
    fuzz_require(packed && gzwrite(packed, bytes, (unsigned)size) == (int)size && gzclose(packed) == Z_OK, path);
    bytes = read_file("train-labels-idx1-ubyte", &size);
    keep("idx", "labels", bytes, size);
}

/* One image of CIFAR-10, one of CIFAR-100, and a label of STL-10. */
static void make_packed(void)
{
    static const char names[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    static char bytes[2 + sizeof names + 2 + 32 * 32 * 3];
    memcpy(bytes + 2, names, sizeof names - 1);
    bytes[1] = sizeof names - 1;
    keep("packed", "cifar10", bytes, 2 + sizeof names - 1 + 1 + 32 * 32 * 3);
    bytes[0] = 2;
    bytes[2 + sizeof names - 1] = 10;
    keep("packed", "stl10", bytes, 2 + sizeof names - 1 + 1);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = 1;
    keep("packed", "cifar100", bytes, 2 + 2 + 32 * 32 * 3);
}

static void add_bytes(struct archive *to, const char *name, unsigned type, const char *target, const char *bytes,
                      size_t size)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, type == AE_IFREG ? (la_int64_t)size : 0);
    if (type == AE_IFLNK)
        archive_entry_set_symlink(entry, target);
    fuzz_require(archive_write_header(to, entry) == ARCHIVE_OK, name);
    if (type == AE_IFREG)
        archive_write_data(to, bytes, size);
    archive_entry_free(entry);
}

static void add_file(struct archive *to, const char *name, unsigned type, const char *target, const char *bytes)
{
    add_bytes(to, name, type, target, bytes, strlen(bytes));
}

static void make_archive(const char *name, const char *format, bool packed)
{
    char path[600];
    fclose(create("archive", name));
    snprintf(path, sizeof path, "%s/archive/%s", root, name);
    struct archive *to = archive_write_new();
    if (packed && strcmp(format, "zip") != 0)
        archive_write_add_filter_gzip(to);
    archive_write_set_format_by_name(to, format);
    if (!packed && strcmp(format, "zip") == 0)
        archive_write_zip_set_compression_store(to);
    fuzz_require(archive_write_open_filename(to, path) == ARCHIVE_OK, path);
    add_file(to, "train/cat/1.png", AE_IFREG, NULL, "\x89PNG\r\n\x1a\n and no picture");
    add_file(to, "train/dog/2.jpg", AE_IFREG, NULL, "\xff\xd8\xff and no picture");
    add_file(to, "val/images/1.png", AE_IFREG, NULL, "\x89PNG\r\n\x1a\n and no picture");
    add_file(to, "val/val_annotations.txt", AE_IFREG, NULL, "1.png\tcat\t0\t0\t1\t1\n");
    add_file(to, "../up.png", AE_IFREG, NULL, "outside");
    add_file(to, "train/dog/link.png", AE_IFLNK, "../../../etc/passwd", "");
    fuzz_require(archive_write_close(to) == ARCHIVE_OK, path);
    archive_write_free(to);
}

/* The entries of an index of two tars, as fuzz_index.c reads them. */
static void make_index(void)
{
    static const char entries[] =
        "\1\0\1\1a\0\0\2\0\x80\4\x64\0\0\0\7cat/0.x\1\x80\4\x64\3\2no\4\3"
        "1.x";
    keep("index", "entries", entries, sizeof entries - 1);
}

static struct archive *open_tar(const char *name)
{
    char path[600];
    fclose(create("archive", name));
    snprintf(path, sizeof path, "%s/archive/%s", root, name);
    struct archive *to = archive_write_new();
    archive_write_set_format_ustar(to);
    fuzz_require(archive_write_open_filename(to, path) == ARCHIVE_OK, path);
    return to;
}

/* A tar of a class tar, and a shard. */
static void make_tars(void)
{
    static char inner[1 << 14];
    size_t used;
    struct archive *to = archive_write_new();
    archive_write_set_format_ustar(to);
    archive_write_set_bytes_in_last_block(to, 1);
    fuzz_require(archive_write_open_memory(to, inner, sizeof inner, &used) == ARCHIVE_OK, "a tar in memory");
    add_file(to, "1.jpg", AE_IFREG, NULL, "\xff\xd8\xff and no picture");
    fuzz_require(archive_write_close(to) == ARCHIVE_OK, "a tar in memory");
    archive_write_free(to);
    to = open_tar("nested");
    add_bytes(to, "cat.tar", AE_IFREG, NULL, inner, used);
    add_bytes(to, "dog.tar", AE_IFREG, NULL, inner, used);
    fuzz_require(archive_write_close(to) == ARCHIVE_OK, "nested");
    archive_write_free(to);
    to = open_tar("shard");
    add_file(to, "0.jpg", AE_IFREG, NULL, "\xff\xd8\xff and no picture");
    add_file(to, "0.cls", AE_IFREG, NULL, "1");
    add_file(to, "1.jpg", AE_IFREG, NULL, "\xff\xd8\xff and no picture");
    add_file(to, "1.json", AE_IFREG, NULL, "{\"label\": 0}");
    fuzz_require(archive_write_close(to) == ARCHIVE_OK, "shard");
    archive_write_free(to);
}

enum { MOST_CHOICES = 8 };

static void put_option(const att_flag *flag, FILE *dictionary, FILE *seed)
{
    fprintf(dictionary, "\"--%s\"\n", flag->name);
    fprintf(seed, "--%s\n1\n", flag->name);
    for (int choice = 0; choice < MOST_CHOICES && att_flag_choice(flag, choice); choice++)
        fprintf(dictionary, "\"%s\"\n", att_flag_choice(flag, choice));
}

/* Writes one seed for each group of flags. */
static void put_options(int number, const att_flags *flags, FILE *dictionary)
{
    FILE *seed = NULL;
    const att_flag_group *group = NULL;
    for (int i = 0; i < att_flags_count(flags); i++) {
        att_flag_place place = att_flags_at(flags, i);
        if (!seed || group != place.group) {
            char name[48];
            if (seed)
                fclose(seed);
            snprintf(name, sizeof name, "%s%d", cli_command_at(number)->name, i);
            seed = create("options", name);
            fputc(number, seed);
        }
        group = place.group;
        put_option(place.flag, dictionary, seed);
    }
    if (seed)
        fclose(seed);
}

/* Writes every flag, and every value that an option can have. */
static void make_options(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/options.dict", root);
    FILE *dictionary = fopen(path, "w");
    fuzz_require(dictionary != NULL, path);
    for (int c = 0; cli_command_at(c); c++) {
        att_flags *flags = NULL;
        fuzz_require(cli_flags_create(fuzz_context(), cli_command_at(c), &flags) == ATT_OK, "a table of flags");
        put_options(c, flags, dictionary);
        att_flags_destroy(&flags);
    }
    fclose(dictionary);
}

/* A mask and a photograph with EXIF data, for fuzz_masks.c, which takes the first byte for their kind. */
static void make_masks(void)
{
    enum { MASK = 3, PHOTOGRAPH = 4 };
    static const uint8_t photograph[] = {
        PHOTOGRAPH, 0xff, 0xd8, 0xff, 0xe1, 0, 30, 'E', 'x', 'i', 'f', 0, 0,    'M',  'M', 0, 42, 0, 0, 0, 8, 0, 1,
        1,          0x12, 0,    3,    0,    0, 0,  1,   0,   6,   0,   0, 0xff, 0xc0, 0,   8, 8,  0, 1, 0, 2, 0};
    uint8_t pixels[2] = {1, 2}, bytes[512] = {MASK};
    const att_image image = {2, 1, 1, pixels};
    att_text text = {.context = fuzz_context()};
    fuzz_require(att_png_write(fuzz_context(), &image, &text) == ATT_OK && text.length < sizeof bytes, "a PNG");
    memcpy(bytes + 1, text.data, text.length);
    keep("masks", "mask", bytes, 1 + text.length);
    keep("masks", "photograph", photograph, sizeof photograph);
    att_text_free(&text);
}

int main(int count, char **arguments)
{
    fuzz_require(count == 2, "the folder argument is given");
    root = arguments[1];
    mkdir(root, 0755);
    make_safetensors();
    make_arrays();
    make_checkpoint();
    make_pickles();
    make_maps(4, "small");
    make_maps(3, "one_grid");
    make_runs();
    make_idx();
    make_packed();
    make_archive("plain", "ustar", false);
    make_archive("gzipped", "pax", true);
    make_archive("stored", "zip", false);
    make_archive("packed", "zip", true);
    make_tars();
    make_index();
    make_options();
    make_masks();
    return 0;
}
