/* Files of a training run: their content, who can read them, and what happens if they cannot be written. */
#include "study/train/fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/core/names.h"
#include "study/train/checkpoint.h"

static att_train_options training_in(const fixture *f, char output[160])
{
    att_train_options options = small_training();
    options.output = path_in(f, "run", output);
    return options;
}

static att_tensors *open_file(const fixture *f, const char *name)
{
    char path[160];
    att_tensors *file = NULL;
    assert_int_equal(att_tensors_open(f->context, path_in(f, name, path), &file), ATT_OK);
    return file;
}

/* Loads the weights of `name`, or their moving average, into a network built from the file's metadata. */
static float *load(const fixture *f, const char *name, bool average, int64_t *count)
{
    char path[160];
    att_identity identity;
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_tensors *file = open_file(f, name);
    assert_int_equal(att_model_identify(f->context, file, path_in(f, name, path), NULL, NULL, &identity), ATT_OK);
    assert_string_equal(identity.name, "vit_tiny_patch16_224");
    assert_int_equal(att_model_create(f->context, identity.name, &identity.options, ATT_F32, &model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(model), "cpu", &weights), ATT_OK);
    att_status status = average ? att_checkpoint_load_ema(model, file, weights) : att_model_load(model, file, weights);
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
    float *values = values_of(weights, NULL, count);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    return values;
}

static void assert_loads(const fixture *f, const char *name, const char *slot)
{
    int64_t count, loaded_count;
    float *expected = values_of(f->weights, slot, &count), *loaded = load(f, name, slot != NULL, &loaded_count);
    assert_int_equal(count, loaded_count);
    assert_memory_equal(expected, loaded, (size_t)count * sizeof *expected);
    free(expected);
    free(loaded);
}

FIXTURE_TEST(checkpoints_load_as_networks)
{
    char output[160];
    att_train_options options = training_in(f, output);
    assert_trains(f, &options);
    assert_loads(f, "run/last.safetensors", NULL);
    assert_loads(f, "run/last.safetensors", "ema");
    assert_true(exists(f, "run/checkpoint-0.safetensors"));
    assert_same_file(f, "run/last.safetensors", "run/checkpoint-1.safetensors");
}

/* Returns the source of the class names for a file with these metadata and that many classes. */
static const char *classes_of(const fixture *f, const att_safetensors_pair *metadata, int count, int classes)
{
    static const float weight = 0;
    const att_safetensors_tensor tensor = {
        .name = "w", .dtype = ATT_SAFETENSORS_F32, .shape = att_shape_of(1), .data = &weight};
    att_safetensors_content content = {
        .tensors = &tensor, .tensor_count = 1, .metadata = metadata, .metadata_count = count};
    char path[160];
    assert_int_equal(att_safetensors_write(f->context, path_in(f, "foreign.safetensors", path), &content), ATT_OK);
    att_tensors *file = open_file(f, "foreign.safetensors");
    const att_known_classes *known = att_checkpoint_known_classes(file, classes);
    att_tensors_close(&file);
    return known ? known->name : "nobody's";
}

FIXTURE_TEST(classes_are_those_of_the_data_set_that_a_training_names)
{
    static const struct {
        const char *options;
        int classes;
        const char *expected;
    } cases[] = {
        {"{}", 1000, "imagenet-1k"},
        {"{}", 21843, "imagenet-21k"},
        {"{}", 21841, "imagenet-22k"},
        {"{}", 11821, "imagenet-12k"},
        {"{}", 11221, "imagenet-21k-p"},
        {"{}", 10450, "imagenet-21k-p-w21"},
        {"{}", 80, "nobody's"},
        {"{}", 150, "nobody's"},
        {"{\"data_dir\": \"/data/coco\"}", 80, "coco"},
        {"{\"data_dir\": \"/data/imagenet21k\"}", 21843, "imagenet-21k"},
        {"{\"model\": \"resnet18\", \"dataset\": \"\", \"data_dir\": null}", 1000, "imagenet-1k"},
        {"{\"dataset\": \"\", \"data_dir\": \"/data/flowers1000\"}", 1000, "nobody's"},
        {"{\"dataset\": \"\", \"data_dir\": \"/data/ImageNet/train/\"}", 1000, "imagenet-1k"},
        {"{\"dataset\": \"hfds/timm/imagenet-1k-wds\"}", 1000, "imagenet-1k"},
        {"{\"data\": \"/mnt/ILSVRC2012/Data/CLS-LOC\"}", 1000, "imagenet-1k"},
        {"{\"data_dir\": \"/data/imagenet21k\"}", 1000, "nobody's"},
        {"{\"data_dir\": \"/home/u/not_imagenet\"}", 1000, "nobody's"},
        {"{\"data_dir\": \"/data/imagenet-sketch/train\"}", 1000, "nobody's"},
        {"{\"data_dir\": \"/data/my-imagenet-1k\"}", 1000, "nobody's"},
        {"{\"dataset\": \"tfds/imagenet2012:5.1.0\"}", 1000, "imagenet-1k"},
        {"{\"data_dir\": \"imagenet\"}", 1000, "imagenet-1k"},
        {"{\"data_set\": \"IMNET\", \"data_path\": \"/d\"}", 1000, "imagenet-1k"},
        {"{\"data_dir\": \"/data/imagenet\"}", 10, "nobody's"},
        {"{\"dataset\": \"torch/cifar10\"}", 10, "cifar10"},
        {"{\"dataset\": \"torch/cifar100\"}", 10, "nobody's"},
        {"no object", 1000, "imagenet-1k"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const att_safetensors_pair metadata[] = {{"args", cases[i].options}, {"arch", "resnet18"}};
        assert_string_equal(classes_of(f, metadata, 2, cases[i].classes), cases[i].expected);
        assert_string_equal(classes_of(f, metadata, 1, cases[i].classes), cases[i].expected);
    }
    const att_safetensors_pair own[] = {{ATT_IDENTITY_KEY, "{}"}, {ATT_CLASSES_KEY, "cifar100"}};
    assert_string_equal(classes_of(f, own, 1, 1000), "nobody's");
    assert_string_equal(classes_of(f, own, 2, 1000), "nobody's");
    assert_string_equal(classes_of(f, own, 2, 100), "cifar100");
}

FIXTURE_TEST(checkpoints_tell_where_the_training_stood)
{
    char output[160];
    att_train_options options = training_in(f, output);
    att_train_result result;
    options.seed = UINT64_MAX;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    att_tensors *file = open_file(f, "run/last.safetensors");
    att_checkpoint_info info;
    assert_int_equal(att_checkpoint_describe(f->context, file, &info), ATT_OK);
    assert_true(info.training && info.ema);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.batch, 0);
    assert_int_equal(info.update, 10);
    assert_true(info.seed == UINT64_MAX);
    assert_true(info.metric == result.eval[TOP1]);
    assert_true(info.best_metric == result.best_metric);
    assert_int_equal(info.best_epoch, result.best_epoch);
    assert_int_equal(info.best_update, -1);
    assert_false(info.unevaluated);
    att_tensors_close(&file);
}

static bool stop_after(void *user, const att_progress *progress)
{
    return progress->update < *(const int64_t *)user;
}

/* Stopped within an interval between evaluations. */
FIXTURE_TEST(checkpoints_of_updates_are_numbered_by_them)
{
    char output[160];
    int64_t end = 8;
    att_train_options options = training_in(f, output);
    options.updates = 9;
    options.eval_every = 3;
    options.progress = stop_after;
    options.progress_user = &end;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED);
    assert_true(exists(f, "run/checkpoint-3.safetensors") && exists(f, "run/checkpoint-6.safetensors"));
    att_tensors *file = open_file(f, "run/last.safetensors");
    att_checkpoint_info info;
    CHECK(f->context, att_checkpoint_describe(f->context, file, &info));
    assert_int_equal(info.update, 8);
    assert_int_equal(info.epoch, 1);
    assert_int_equal(info.batch, 3);
    assert_true(info.unevaluated);
    assert_int_equal(info.best_epoch, -1);
    assert_true(info.best_update == 3 || info.best_update == 6);
    att_tensors_close(&file);
}

static char *quoted(const char *text, char out[64])
{
    snprintf(out, 64, "%s", text);
    for (char *at = out; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return out;
}

/* Replaces a text of the header by another of the same length. */
static void edit(const fixture *f, const char *from_text, const char *to_text)
{
    size_t size;
    char path[160], from[64], to[64], *bytes = read_all(f, "run/last.safetensors", &size), *at = NULL;
    quoted(from_text, from);
    quoted(to_text, to);
    for (size_t i = 0; i + strlen(from) < size && !at; i++)
        at = memcmp(bytes + i, from, strlen(from)) == 0 ? bytes + i : NULL;
    if (!at)
        fail_msg("the header lacks %s", from);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    FILE *file = fopen(path_in(f, "run/edited.safetensors", path), "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
}

FIXTURE_TEST(checkpoints_tell_the_options_of_the_task)
{
    char output[160];
    att_train_options options = training_in(f, output);
    att_option_values trained = att_options_none(), found = att_options_none();
    att_options_set(&trained, "smoothing", 0.25);
    options.task_options = &trained;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_OK);
    att_task_info task = att_model_task(f->model);
    att_tensors *file = open_file(f, "run/last.safetensors");
    assert_int_equal(att_checkpoint_task_options(f->context, file, &task, &found), ATT_OK);
    assert_true(att_options_number(&found, "smoothing", -1) == 0.25);
    found = att_options_none();
    task.name = "another";
    assert_int_equal(att_checkpoint_task_options(f->context, file, &task, &found), ATT_OK);
    assert_int_equal(found.count, 0);
    att_tensors_close(&file);
    edit(f, "'attscope.train.task.smoothing':'0.25'", "'attscope.train.task.smoothing':'2.25'");
    file = open_file(f, "run/edited.safetensors");
    task = att_model_task(f->model);
    assert_fails(
        f->context, att_checkpoint_task_options(f->context, file, &task, &found), ATT_ERR_FORMAT,
        "edited.safetensors: the option smoothing of its training is \"2.25\", expected a number from 0 to 0.999999");
    att_tensors_close(&file);
}

/* Training runs of versions that had fewer options of the task are continued with the defaults of the others. */
FIXTURE_TEST(an_option_that_a_checkpoint_lacks_has_its_default)
{
    char output[160], resume[160];
    att_train_options options = training_in(f, output);
    att_option_values other = att_options_none();
    assert_trains(f, &options);
    edit(f, "'attscope.train.task.bce_loss'", "'attscope.train.task.bce_none'");
    options.resume = path_in(f, "run/edited.safetensors", resume);
    assert_trains(f, &options);
    att_options_set(&other, "bce_loss", 1);
    options.task_options = &other;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MISMATCH,
                 "it was trained with bce_loss \"false\", not \"true\"");
}

FIXTURE_TEST(exports_hold_weights_only)
{
    char path[160];
    att_train_options options = small_training();
    assert_trains(f, &options);
    assert_int_equal(att_checkpoint_export(f->model, f->weights, path_in(f, "out.safetensors", path)), ATT_OK);
    att_tensors *file = open_file(f, "out.safetensors");
    assert_int_equal(att_tensors_count(file), att_weights_count(f->weights));
    att_checkpoint_info info;
    assert_int_equal(att_checkpoint_describe(f->context, file, &info), ATT_OK);
    assert_false(info.training || info.ema);
    assert_int_equal(att_checkpoint_load_ema(f->model, file, f->weights), ATT_ERR_NOT_FOUND);
    att_tensors_close(&file);
    assert_loads(f, "out.safetensors", NULL);
}

/* The fixture's weights together with one more parameter, "more", are exported: the file holds the network. Exporting
 * "more" alone, or weights of another shape or type, is refused. */
FIXTURE_TEST(exports_hold_what_the_network_has)
{
    char path[160];
    assert_int_equal(att_weights_initialise(f->weights, 5), ATT_OK);
    att_weights *more[3], *covered;
    for (int i = 0; i < 3; i++) {
        att_graph *graph;
        att_dtype dtype = i == 2 ? ATT_F64 : ATT_F32;
        assert_int_equal(att_graph_create(f->context, dtype, &graph), ATT_OK);
        att_graph_parameter(graph, i == 0 ? "more" : att_weights_at(f->weights, 0).name, att_shape_of(7),
                            (att_init){ATT_INIT_CONSTANT, 0}, false);
        assert_int_equal(att_weights_create(graph, "cpu", &more[i]), ATT_OK);
        att_graph_destroy(&graph);
    }
    assert_int_equal(att_weights_overlay(f->weights, more[0], &covered), ATT_OK);
    assert_int_equal(att_checkpoint_export(f->model, covered, path_in(f, "out.safetensors", path)), ATT_OK);
    assert_loads(f, "out.safetensors", NULL);
    path_in(f, "refused.safetensors", path);
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_checkpoint_export(f->model, more[i], path), ATT_ERR_MISMATCH);
    assert_false(exists(f, "refused.safetensors"));
    att_weights_destroy(&covered);
    for (int i = 0; i < 3; i++)
        att_weights_destroy(&more[i]);
}

FIXTURE_TEST(as_many_checkpoints_are_kept_as_asked)
{
    char output[160];
    att_train_options options = training_in(f, output);
    options.epochs = 6;
    options.checkpoint_hist = 2;
    f->data.eval = NULL;
    assert_trains(f, &options);
    for (int epoch = 0; epoch < 6; epoch++) {
        char name[64];
        snprintf(name, sizeof name, "run/checkpoint-%d.safetensors", epoch);
        assert_int_equal(exists(f, name), epoch >= 4);
    }
    assert_false(exists(f, "run/model_best.safetensors"));
}

/* Quotation marks in the texts are those of JSON. */
FIXTURE_TEST(contradicting_checkpoints_are_refused)
{
    char output[160], path[160];
    att_train_options options = training_in(f, output);
    assert_trains(f, &options);
    options.resume = path_in(f, "run/edited.safetensors", path);
    static const struct {
        const char *from, *to, *message;
    } edits[] = {
        {"train.epoch':'2'", "train.epoch':'1'", "history"},
        {"train.epoch':'2'", "train.epoch':'x'", "epoch"},
        {"train.batch':'0'", "train.batch':'9'", "contradict"},
        {"train.lanes':'2'", "train.lanes':'0'", "lanes"},
        {"train.history'", "train.histori'", "history"},
        {"loss_sum':'0", "loss_sum':'-", "loss_sum"},
        {"train.loss_count':'0'", "train.loss_count':'8'", "contradict"},
        {"train.update'", "train.updat3'", "update"},
        {"train.history':'0:", "train.history':'2:", "history"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        edit(f, edits[i].from, edits[i].to);
        assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_FORMAT,
                     edits[i].message);
    }
    /* An epoch whose checkpoint a resume would remove. */
    edit(f, "train.evicted':'-1'", "train.evicted':'99'");
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_FORMAT,
                 "attscope.train.evicted");
    edit(f, "'ema.cls_token'", "'emo.cls_token'");
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MISMATCH,
                 "ema.cls_token");
}

typedef struct full_disk {
    const fixture *f;
    char *bytes;
    size_t size;
} full_disk;

/* Limits files to a kilobyte after the first epoch. */
static bool fill_disk(void *user, const att_progress *progress)
{
    full_disk *disk = user;
    if (progress->epoch == 1 && !disk->bytes) {
        disk->bytes = read_all(disk->f, "run/last.safetensors", &disk->size);
        struct rlimit limit;
        getrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = 1024;
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    return true;
}

FIXTURE_TEST(a_full_disk_keeps_the_old_checkpoint)
{
    char output[160];
    full_disk disk = {.f = f};
    struct rlimit before;
    att_train_options options = training_in(f, output);
    options.progress = fill_disk;
    options.progress_user = &disk;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    att_status status = att_train(f->model, f->weights, &f->data, &options, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, ATT_ERR_IO);
    assert_message_has(f, "last.safetensors");
    size_t size;
    char *bytes = read_all(f, "run/last.safetensors", &size);
    assert_int_equal(size, disk.size);
    assert_memory_equal(bytes, disk.bytes, size);
    assert_false(exists(f, "run/last.safetensors.tmp"));
    free(bytes);
    free(disk.bytes);
}
