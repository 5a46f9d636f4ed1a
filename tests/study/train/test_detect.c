/* Training of a detector on photographs of two sizes, of which some have no objects and one has a crowd: the same bits
 * for any number of threads and processes, and after a resume; frozen batch norms; what is refused. */
#include "study/train/fixture.h"

#include "base/comm/threads.h"
#include "base/core/error.h"
#include "data/picture.h"
#include "sanitized.h"
#include "test.h"

enum { PHOTOGRAPHS = 10, DETECT_BATCH = 4, SAMPLES = 16 };
static const int sides[2][2] = {{64, 96}, {96, 64}};

static void write_photograph(const char *folder, int index)
{
    char path[256];
    void *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/boxes/images/%02d.png", folder, index);
    picture_make_sized(40 + 20 * index, sides[index % 2][0], sides[index % 2][1], &bytes, &size);
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, size, file) == size);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

/* Every third photograph has no box, the others have two; those of the second one are a crowd and an object. */
static void write_boxes(const char *folder)
{
    char path[256];
    snprintf(path, sizeof path, "%s/boxes", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/boxes/images", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/boxes/annotations.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":2,\"name\":\"b\"}],\"images\":[");
    for (int i = 0; i < PHOTOGRAPHS; i++) {
        write_photograph(folder, i);
        fprintf(file, "%s{\"id\":%d,\"file_name\":\"%02d.png\",\"width\":%d,\"height\":%d}", i ? "," : "", i, i,
                sides[i % 2][0], sides[i % 2][1]);
    }
    fprintf(file, "],\"annotations\":[");
    for (int i = 0, id = 1; i < PHOTOGRAPHS; i++)
        for (int b = 0; b < 2 && i % 3 != 2; b++, id++)
            fprintf(
                file,
                "%s{\"id\":%d,\"image_id\":%d,\"category_id\":%d,\"bbox\":[%d,%d,%d,30],\"area\":600,\"iscrowd\":%d}",
                id > 1 ? "," : "", id, i, 1 + (i + b) % 2, 4 * b + i, 3 * i, 20 + 5 * b, i == 1 && b == 0);
    fprintf(file, "]}");
    assert_int_equal(fclose(file), 0);
}

/* What one process does. */
typedef struct process {
    const char *folder;
    att_train_options options;
    att_option_values task;
    att_status expected;
    int stops_at, calls; /* of progress; stops_at 0: never */
    char message[512];
    char digest[ATT_WEIGHTS_DIGEST];
    double running_mean; /* of a norm in the backbone, its first element */
} process;

static bool count_calls(void *user, const att_progress *progress)
{
    process *p = user;
    (void)progress;
    return ++p->calls != p->stops_at;
}

static att_option_values detector(void)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "in_chans", 1), att_options_set(&options, "num_classes", 2);
    att_options_set_sides(&options, "img_size", 96, 96);
    att_options_set_text(&options, "layers", "1,1,1,1"), att_options_set(&options, "width", 4);
    att_options_set_text(&options, "task", "detect");
    att_options_set(&options, "head_channels", 8), att_options_set(&options, "box_channels", 8);
    att_options_set(&options, "anchor_size", 8);
    return options;
}

static att_status train(att_context *context, process *p, att_dataset *data, att_model *model, att_weights *weights)
{
    att_transform_options transform = att_transform_options_defaults(0, 0, 1);
    att_train_options options = p->options;
    att_train_result result;
    transform.crop = ATT_CROP_KEEP;
    transform.longer = 96, transform.shorter = 64, transform.divisor = 32;
    transform.flip = 0.5;
    options.progress = count_calls, options.progress_user = p;
    options.task_options = &p->task;
    const att_train_data all = {data, NULL, &transform, &transform};
    ATT_TRY(att_train(model, weights, &all, &options, &result));
    ATT_TRY(att_weights_digest(weights, p->digest));
    float *mean = calloc(4, sizeof *mean);
    att_status status = att_weights_get(weights, -1, att_weights_find(weights, "layer1.0.bn1.running_mean"), mean, 4);
    p->running_mean = (double)mean[0];
    free(mean);
    (void)context;
    return status;
}

static const char *train_rank(att_context *context, att_comm *comm, void *user)
{
    process *p = user;
    char path[160];
    att_dataset *data = NULL;
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_dataset_options opening = att_dataset_options_defaults();
    const att_option_values network = detector();
    p->options.comm = comm;
    opening.annotations = ATT_ANNOTATION_BOXES;
    snprintf(path, sizeof path, "%s/boxes", p->folder);
    att_status status = att_dataset_open(context, path, &opening, &data);
    if (status == ATT_OK)
        status = att_model_create(context, "resnet18", &network, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_weights_initialise(weights, 1);
    if (status == ATT_OK)
        status = train(context, p, data, model, weights);
    snprintf(p->message, sizeof p->message, "%s", att_context_message(context));
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_dataset_close(&data);
    return status == p->expected ? NULL : status == ATT_OK ? "the training succeeded" : p->message;
}

/* Runs the same in `count` processes of `threads` threads. */
static process run_all(const process *same, int count, int threads)
{
    process ranks[MOST_RANKS];
    for (int i = 0; i < count; i++)
        ranks[i] = *same;
    run_ranks(count, threads, train_rank, ranks, sizeof *ranks);
    return ranks[count - 1];
}

static process process_in(const fixture *f, const char *folder, char output[160])
{
    process p = {.folder = f->folder, .options = small_training(), .task = att_options_none()};
    p.options.batch_size = DETECT_BATCH;
    p.options.sync_bn = true;
    p.options.lanes = 4;
    p.options.output = folder ? path_in(f, folder, output) : NULL;
    att_options_set(&p.task, "anchor_samples", SAMPLES), att_options_set(&p.task, "box_samples", SAMPLES);
    att_options_set(&p.task, "train_proposals", 60), att_options_set(&p.task, "train_level_proposals", 40);
    att_options_set(&p.task, "most_boxes", 2);
    write_boxes(f->folder);
    return p;
}

FIXTURE_TEST(threads_and_processes_change_no_bit_of_a_detector)
{
    const process whole = process_in(f, NULL, NULL);
    const process first = run_all(&whole, 1, 2);
    assert_string_equal(run_all(&whole, 1, 1).digest, first.digest);
    assert_string_equal(run_all(&whole, 1, 4).digest, first.digest);
    assert_string_equal(run_all(&whole, 2, 1).digest, first.digest);
    process other = whole;
    other.options.seed++;
    assert_string_not_equal(run_all(&other, 1, 2).digest, first.digest);
}

FIXTURE_TEST(a_stopped_training_of_a_detector_continues_to_the_same_bits)
{
    char output[160], last[160];
    const process whole = process_in(f, "whole", output);
    const process first = run_all(&whole, 1, 2);
    process stopped = whole;
    stopped.options.output = path_in(f, "stopped", output);
    stopped.stops_at = first.calls / 2;
    stopped.expected = ATT_ERR_STOPPED;
    run_all(&stopped, 1, 2);
    stopped.options.resume = path_in(f, "stopped/last.safetensors", last);
    stopped.stops_at = 0;
    stopped.expected = ATT_OK;
    assert_string_equal(run_all(&stopped, 1, 1).digest, first.digest);
}

/* As torchvision's FrozenBatchNorm2d: weights, biases and running statistics stay. */
FIXTURE_TEST(batch_norms_can_be_frozen_alone)
{
    process p = process_in(f, NULL, NULL);
    assert_true(run_all(&p, 1, 2).running_mean != 0);
    p.options.freeze = "*bn?.*,*.downsample.1.*";
    assert_true(run_all(&p, 1, 2).running_mean == 0);
    p.options.batch_size = 1; /* which batch norm in training refuses */
    run_all(&p, 1, 2);
}

static void expect_refusal(const process *p, att_status status, const char *part)
{
    process refused = *p;
    refused.expected = status;
    refused = run_all(&refused, 1, 1);
    if (!strstr(refused.message, part))
        fail_msg("%s", refused.message);
}

FIXTURE_TEST(data_that_do_not_fit_a_detector_are_refused)
{
    process p = process_in(f, NULL, NULL);
    att_options_set(&p.task, "most_boxes", 1);
    expect_refusal(&p, ATT_ERR_MISMATCH, "an image has 2 boxes, but --most-boxes (most_boxes) is 1");
    p = process_in(f, NULL, NULL);
    att_options_set_text(&p.task, "anchor_best", "none");
    expect_refusal(&p, ATT_ERR_ARGUMENT, "anchor_best");
    p = process_in(f, NULL, NULL);
    p.options.mixup = 0.5;
    expect_refusal(&p, ATT_ERR_UNSUPPORTED, "(\"image_size\") cannot be mixed");
}
