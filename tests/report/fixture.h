/* report/fixture.h - for tests: folders of runs, with figures that the library measured on a small network. */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <attscope/attscope.h>

enum {
    FIXTURE_SIDE = 8,
    FIXTURE_PATCH = 4,
    FIXTURE_TOKENS = 5, /* the class token and 2 x 2 patches */
    FIXTURE_HEADS = 2,
    FIXTURE_DEPTH = 3,
    FIXTURE_CLASSES = 7,
    FIXTURE_BATCH = 9,
    FIXTURE_SAMPLES = 6,  /* kept of each figure of NSI */
    FIXTURE_MEASURES = 4, /* of the training */
    FIXTURE_EPOCHS = 3,
    FIXTURE_STEPS = 10, /* an epoch */
    FIXTURE_IMAGES = 3, /* with maps */
};

typedef struct fixture {
    att_model *model;
    att_measure *measure;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
} fixture;

static inline void fixture_free(fixture *f)
{
    att_session_destroy(&f->session);
    att_plan_destroy(&f->plan);
    att_weights_destroy(&f->weights);
    att_measure_destroy(&f->measure);
    att_model_destroy(&f->model);
}

static inline att_status fixture_make_session(fixture *f, uint64_t seed)
{
    att_graph *graph = att_model_graph(f->model);
    att_plan_options options = att_plan_options_defaults();
    att_status status = att_measure_create(graph, "all", "*", &f->measure);
    if (status == ATT_OK)
        status = att_measure_keep_samples(f->measure, FIXTURE_SAMPLES);
    if (status == ATT_OK)
        status = att_plan_compile(graph, &options, &f->plan);
    if (status == ATT_OK)
        status = att_weights_create(graph, &f->weights);
    if (status == ATT_OK)
        status = att_weights_initialise(f->weights, seed);
    if (status == ATT_OK)
        status = att_session_create(f->plan, f->weights, FIXTURE_BATCH, &f->session);
    return status;
}

/* A network with every instrument on; to be freed whatever comes back. */
static inline att_status fixture_make(att_context *context, uint64_t seed, fixture *f)
{
    att_model_options options = att_model_options_defaults();
    options.img_size = FIXTURE_SIDE, options.patch_size = FIXTURE_PATCH, options.in_chans = 1;
    options.embed_dim = 16, options.num_heads = FIXTURE_HEADS, options.depth = FIXTURE_DEPTH;
    options.num_classes = FIXTURE_CLASSES, options.init_values = 0.3; /* gates: NSI's readings differ */
    *f = (fixture){0};
    att_status status = att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &f->model);
    return status == ATT_OK ? fixture_make_session(f, seed) : status;
}

/* Measures a batch of made images. */
static inline att_status fixture_observe(fixture *f, int variant)
{
    static float images[FIXTURE_BATCH][FIXTURE_SIDE * FIXTURE_SIDE];
    int32_t labels[FIXTURE_BATCH];
    for (int i = 0; i < FIXTURE_BATCH; i++) {
        labels[i] = (i + variant) % FIXTURE_CLASSES;
        for (int p = 0; p < FIXTURE_SIDE * FIXTURE_SIDE; p++)
            images[i][p] = (float)((i * 7919 + p * 104729 + variant * 31) % 1009) / 504.5f - 1;
    }
    att_measure_clear(f->measure);
    att_session_watch(f->session, true);
    att_status status = att_session_bind(f->session, "image", images);
    if (status == ATT_OK)
        status = att_session_run(f->session, FIXTURE_BATCH);
    return status == ATT_OK ? att_measure_observe(f->measure, f->session, FIXTURE_BATCH, labels) : status;
}

static inline att_status fixture_emit(const att_sink *sink, att_event_kind kind, int64_t epoch, int64_t step,
                                      const att_field *fields, int count, att_measure *measure)
{
    att_event event = {.kind = kind, .epoch = epoch, .step = step, .fields = fields, .field_count = count};
    if (measure) {
        event.measurements = att_measure_all(measure);
        event.measurement_count = att_measure_count(measure);
    }
    return sink->emit(sink->user, &event);
}
#define FIXTURE_FIELDS(...) \
    (const att_field[]){__VA_ARGS__}, (int)(sizeof((const att_field[]){__VA_ARGS__}) / sizeof(att_field))

/* Losses fall as 1 / (1 + step), with a NaN on the way. */
static inline att_status fixture_train(fixture *f, const att_sink *sink, const char *model, const char *seed)
{
    att_status status = fixture_emit(
        sink, ATT_EVENT_RUN_BEGIN, 0, 0,
        FIXTURE_FIELDS({"model", 0, model}, {"parameters", 12345, NULL}, {"seed", 0, seed}, {"epochs", 0, "3"}), NULL);
    for (int step = 1; step <= FIXTURE_EPOCHS * FIXTURE_STEPS && status == ATT_OK; step++) {
        int epoch = (step - 1) / FIXTURE_STEPS;
        double loss = step == 7 ? NAN : 2.0 / (1 + step);
        status = fixture_emit(sink, ATT_EVENT_STEP, epoch, step,
                              FIXTURE_FIELDS({"loss", loss, NULL}, {"lr", 0.1 / step, NULL}), NULL);
        if (status == ATT_OK && step % (FIXTURE_EPOCHS * FIXTURE_STEPS / FIXTURE_MEASURES) == 0) {
            status = fixture_observe(f, step);
            if (status == ATT_OK)
                status =
                    fixture_emit(sink, ATT_EVENT_MEASURE, epoch, step,
                                 FIXTURE_FIELDS({"split", 0, "train"}, {"images", FIXTURE_BATCH, NULL}), f->measure);
        }
        if (status == ATT_OK && step % FIXTURE_STEPS == 0)
            status = fixture_emit(sink, ATT_EVENT_EPOCH, epoch, step,
                                  FIXTURE_FIELDS({"train_loss", loss + 0.1, NULL}, {"eval_loss", loss + 0.05, NULL},
                                                 {"eval_top1", 40.0 + 10 * epoch, NULL}, {"eval_top5", 90, NULL},
                                                 {"lr", 0.1 / step, NULL}),
                                  NULL);
    }
    if (status == ATT_OK)
        status = fixture_emit(sink, ATT_EVENT_RUN_END, 2, 30, FIXTURE_FIELDS({"status", 0, "OK"}), NULL);
    return status;
}

/* What a measurement of the checkpoint would be, as measure.jsonl: the store calls its file metrics.jsonl. The figures
 * stay in f->measure. */
static inline att_status fixture_measure(att_context *context, fixture *f, const char *folder, const char *model)
{
    char made[600], from[700], to[700];
    snprintf(made, sizeof made, "%s/made", folder);
    snprintf(from, sizeof from, "%s/metrics.jsonl", made);
    snprintf(to, sizeof to, "%s/measure.jsonl", folder);
    att_sink sink;
    att_status status = att_store_open(context, made, NULL, &sink);
    if (status != ATT_OK)
        return status;
    status = fixture_observe(f, 0);
    if (status == ATT_OK)
        status = fixture_emit(&sink, ATT_EVENT_RUN_BEGIN, 0, 0,
                              FIXTURE_FIELDS({"model", 0, model}, {"images", FIXTURE_BATCH, NULL}), NULL);
    if (status == ATT_OK)
        status = fixture_emit(&sink, ATT_EVENT_MEASURE, 0, 0,
                              FIXTURE_FIELDS({"split", 0, "validation"}, {"images", FIXTURE_BATCH, NULL}), f->measure);
    if (status == ATT_OK)
        status = fixture_emit(&sink, ATT_EVENT_RUN_END, 0, 0, FIXTURE_FIELDS({"status", 0, "OK"}), NULL);
    sink.close(sink.user);
    if (status == ATT_OK && rename(from, to) != 0)
        status = ATT_ERR_IO;
    return status;
}

/* Maps whose query i of head h puts most on key (i + h) % N: byte 255, the others 10 key + image. */
static inline att_status fixture_maps(att_context *context, const char *path, int images, const char *grid)
{
    enum { N = FIXTURE_TOKENS, H = FIXTURE_HEADS, K = FIXTURE_IMAGES, SIDE = FIXTURE_SIDE };
    static uint8_t pixels[K * SIDE * SIDE * 3], map[K * H * N * N];
    static float max[K * H * N];
    static int64_t label[K], prediction[K];
    for (int i = 0; i < K * SIDE * SIDE * 3; i++)
        pixels[i] = (uint8_t)(i * 5);
    for (int i = 0; i < K * H * N * N; i++) {
        int key = i % N, query = i / N % N, head = i / N / N % H, image = i / N / N / H;
        map[i] = (uint8_t)(key == (query + head) % N ? 255 : 10 * key + image);
        max[i / N] = 0.25f + (float)query / 16;
    }
    for (int i = 0; i < K; i++)
        label[i] = i, prediction[i] = i % 2;
    char names[FIXTURE_DEPTH][2][32];
    att_safetensors_tensor tensors[3 + 2 * FIXTURE_DEPTH] = {
        {"image", ATT_SAFETENSORS_U8, att_shape_of(images, SIDE, SIDE, 3), pixels},
        {"label", ATT_SAFETENSORS_I64, att_shape_of(images), label},
        {"prediction", ATT_SAFETENSORS_I64, att_shape_of(images), prediction},
    };
    for (int layer = 0; layer < FIXTURE_DEPTH; layer++) {
        snprintf(names[layer][0], sizeof names[layer][0], "blocks.%d.attn.map", layer);
        snprintf(names[layer][1], sizeof names[layer][1], "blocks.%d.attn.max", layer);
        tensors[3 + 2 * layer] =
            (att_safetensors_tensor){names[layer][0], ATT_SAFETENSORS_U8, att_shape_of(images, H, N, N), map};
        tensors[4 + 2 * layer] =
            (att_safetensors_tensor){names[layer][1], ATT_SAFETENSORS_F32, att_shape_of(images, H, N), max};
    }
    const att_safetensors_pair metadata[] = {
        {"grid_h", grid}, {"grid_w", "2"}, {"prefix", "1"}, {"classes", "[\"cat\",\"<b>dog</b>\"]"}};
    att_safetensors_content content = {.tensors = tensors,
                                       .tensor_count = sizeof tensors / sizeof *tensors,
                                       .metadata = metadata,
                                       .metadata_count = sizeof metadata / sizeof *metadata};
    return att_safetensors_write(context, path, &content);
}

/* A whole run's folder; the measured figures stay in f->measure. */
static inline att_status fixture_run(att_context *context, fixture *f, const char *folder, const char *model,
                                     const char *seed, const char *broadcast)
{
    char path[600];
    att_sink sink;
    att_status status = att_store_open(context, folder, NULL, &sink);
    if (status != ATT_OK)
        return status;
    status = fixture_train(f, &sink, model, seed);
    sink.close(sink.user);
    if (status == ATT_OK)
        status = fixture_measure(context, f, folder, model);
    static const char *const mean[] = {"0.485", "0.456", "0.406"};
    const att_yaml_entry entries[] = {
        {.key = "mean", .kind = ATT_YAML_LIST, .values = mean, .value_count = 3},
        {.key = "broadcast", .kind = ATT_YAML_SCALAR, .values = &broadcast, .value_count = 1},
        {.key = "seed", .kind = ATT_YAML_SCALAR, .values = &seed, .value_count = 1}};
    snprintf(path, sizeof path, "%s/args.yaml", folder);
    if (status == ATT_OK)
        status = att_yaml_write(context, path, entries, 3);
    snprintf(path, sizeof path, "%s/maps.safetensors", folder);
    return status == ATT_OK ? fixture_maps(context, path, FIXTURE_IMAGES, "2") : status;
}

#endif
