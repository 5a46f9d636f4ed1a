/* report/fixture.h - for tests: folders of runs, with figures measured by the library on a small network. */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <attscope/attscope.h>
#include <attscope/lab.h>

#include "base/io/yaml.h"
#include "study/measure/measure.h"

enum {
    FIXTURE_SIDE = 8,
    FIXTURE_PATCH = 4,
    FIXTURE_TOKENS = 5, /* the class token and 2 x 2 patches */
    FIXTURE_HEADS = 2,
    FIXTURE_DEPTH = 3,
    FIXTURE_CLASSES = 7,
    FIXTURE_BATCH = 9,
    FIXTURE_SAMPLES = 6,  /* kept for each figure of NSI */
    FIXTURE_MEASURES = 4, /* during the training */
    FIXTURE_EPOCHS = 3,
    FIXTURE_STEPS = 10, /* per epoch */
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
    /* Instruments by name, so that a new instrument changes no test of the report. */
    static const char with[] = "accuracy,entropy,distance,jacobian,nsi:dt=all,tns:dt=all,residual";
    att_status status = att_measure_create(graph, with, "*", &f->measure);
    if (status == ATT_OK)
        status = att_measure_keep_samples(f->measure, FIXTURE_SAMPLES);
    if (status == ATT_OK)
        status = att_plan_compile(graph, &options, &f->plan);
    if (status == ATT_OK)
        status = att_weights_create(graph, "cpu", &f->weights);
    if (status == ATT_OK)
        status = att_weights_initialise(f->weights, seed);
    if (status == ATT_OK)
        status = att_session_create(f->plan, f->weights, FIXTURE_BATCH, &f->session);
    return status;
}

/* Creates a network with all these instruments. The caller frees it, also after an error. */
static inline att_status fixture_make(att_context *context, uint64_t seed, fixture *f)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", FIXTURE_SIDE), att_options_set(&options, "patch_size", FIXTURE_PATCH),
        att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "embed_dim", 16), att_options_set(&options, "num_heads", FIXTURE_HEADS),
        att_options_set(&options, "depth", FIXTURE_DEPTH);
    att_options_set(&options, "num_classes", FIXTURE_CLASSES),
        att_options_set(&options, "init_values", 0.3); /* counted as dt, so that NSI's readings differ */
    *f = (fixture){0};
    att_status status = att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &f->model);
    return status == ATT_OK ? fixture_make_session(f, seed) : status;
}

/* Measures a batch of artificial images. */
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
    att_session_observe(f->session, true);
    att_status status = att_session_bind(f->session, "image", images);
    if (status == ATT_OK)
        status = att_session_run(f->session, FIXTURE_BATCH);
    return status == ATT_OK ? att_measure_observe(f->measure, f->session, FIXTURE_BATCH, labels) : status;
}

static inline att_status fixture_emit(const att_sink *sink, att_event_kind kind, int64_t epoch, int64_t step,
                                      const att_event_field *fields, int count, att_measure *measure)
{
    att_event event = {.kind = kind, .epoch = epoch, .step = step, .fields = fields, .field_count = count};
    if (measure) {
        event.measurements = att_measure_all(measure);
        event.measurement_count = att_measure_count(measure);
    }
    return sink->emit(sink->user, &event);
}
#define FIXTURE_FIELDS(...)                 \
    (const att_event_field[]){__VA_ARGS__}, \
        (int)(sizeof((const att_event_field[]){__VA_ARGS__}) / sizeof(att_event_field))

/* Emits the events of a training run: losses fall as 1 / (1 + step), with one NaN. */
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

/* Writes a measurement of the checkpoint as measure.jsonl (the store names its file metrics.jsonl). The figures stay in
 * f->measure. */
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

/* Returns the weight of a query and key in the map of a head, before the weights of a query are divided by their sum.
 * Query 0 attends almost only to the class token; of the patches, (query + head) % 4 has the largest weight. */
static inline int fixture_weight(int image, int head, int query, int key)
{
    if (key == 0)
        return query == 0 ? 100000 : 1 + image;
    return (query + head) % (FIXTURE_TOKENS - 1) == key - 1 ? 8 : key - 1;
}

/* Returns the normalised weight; head FIXTURE_HEADS is the mean of all heads. */
static inline double fixture_share(int image, int head, int query, int key)
{
    double share = 0;
    int first = head < FIXTURE_HEADS ? head : 0, count = head < FIXTURE_HEADS ? 1 : FIXTURE_HEADS;
    for (int h = first; h < first + count; h++) {
        int sum = 0;
        for (int k = 0; k < FIXTURE_TOKENS; k++)
            sum += fixture_weight(image, h, query, k);
        share += (double)fixture_weight(image, h, query, key) / sum / count;
    }
    return share;
}

typedef struct fixture_map {
    uint16_t patches[FIXTURE_IMAGES][FIXTURE_HEADS][FIXTURE_TOKENS][FIXTURE_TOKENS - 1];
    float prefix[FIXTURE_IMAGES][FIXTURE_HEADS][FIXTURE_TOKENS];
    float figures[FIXTURE_IMAGES][FIXTURE_HEADS + 1][FIXTURE_TOKENS][4];
    int32_t place[FIXTURE_IMAGES][FIXTURE_HEADS + 1][FIXTURE_TOKENS];
} fixture_map;

static inline void fixture_fill(fixture_map *map, int image, int head, int query)
{
    float *figures = map->figures[image][head][query];
    double entropy = 0, largest = 0;
    for (int key = 0; key < FIXTURE_TOKENS; key++) {
        double share = fixture_share(image, head, query, key);
        entropy -= share > 0 ? share * log(share) : 0;
        if (key > 0 && share > largest) {
            largest = share;
            map->place[image][head][query] = key - 1;
        }
    }
    figures[0] = (float)entropy;
    figures[1] = (float)fixture_share(image, head, query, query);
    figures[2] = (float)fixture_share(image, head, query, 0);
    figures[3] = (float)largest;
    if (head == FIXTURE_HEADS)
        return;
    map->prefix[image][head][query] = figures[2];
    for (int key = 1; key < FIXTURE_TOKENS; key++)
        map->patches[image][head][query][key - 1] =
            (uint16_t)lround(65535 * fixture_share(image, head, query, key) / largest);
}

#define FIXTURE_CAPTION_0 "cat, recognised (90 %). Next: <b>dog</b> 10 %."
#define FIXTURE_CAPTION_1 "<b>dog</b>, predicted: cat (51.2 %). Next: <b>dog</b> 25 %."
#define FIXTURE_CAPTION_2 "predicted: class 6 (50 %). Next: cat 30 %."

/* Metadata `nodes` of version 4, with a grid of `height` x 2 in every layer. */
static inline void fixture_nodes(const char *height, size_t size, char *nodes)
{
    size_t length = 0;
    for (int i = 0; i < FIXTURE_DEPTH; i++)
        length += (size_t)snprintf(nodes + length, size - length,
                                   "%s{\"node\":\"blocks.%d.attn\",\"prefix\":1,\"grid_h\":%s,\"grid_w\":2,"
                                   "\"window_h\":%s,\"window_w\":2,\"shift_h\":0,\"shift_w\":0}%s",
                                   i == 0 ? "[" : ",", i, height, height, i + 1 == FIXTURE_DEPTH ? "]" : "");
}

/* Writes maps of fixture_weight(), the same in every layer. version: of the format, 3 or 4, which the report shows in
 * the same way. */
static inline att_status fixture_maps(att_context *context, const char *path, int images, const char *grid, int version)
{
    enum { N = FIXTURE_TOKENS, H = FIXTURE_HEADS, K = FIXTURE_IMAGES, SIDE = FIXTURE_SIDE, OWN = 4, EACH = 4 };
    static const char *const names[K] = {"[\"cat/a.png\"]", "[\"cat/a.png\",\"dog/<b>.png\"]",
                                         "[\"cat/a.png\",\"dog/<b>.png\",\"c.png\"]"};
    static const char *const captions[K] = {
        "[\"" FIXTURE_CAPTION_0 "\"]", "[\"" FIXTURE_CAPTION_0 "\",\"" FIXTURE_CAPTION_1 "\"]",
        "[\"" FIXTURE_CAPTION_0 "\",\"" FIXTURE_CAPTION_1 "\",\"" FIXTURE_CAPTION_2 "\"]"};
    static uint8_t pixels[K * SIDE * SIDE * 3];
    static fixture_map map;
    static const int64_t label[K] = {0, 1, -1};
    static const float probability[K][2] = {{0.9F, 0.1F}, {0.51234F, 0.25F}, {0.5F, 0.3F}};
    for (int i = 0; i < K * SIDE * SIDE * 3; i++)
        pixels[i] = (uint8_t)(i * 5);
    for (int i = 0; i < K * (H + 1) * N; i++)
        fixture_fill(&map, i / N / (H + 1), i / N % (H + 1), i % N);
    char scopes[FIXTURE_DEPTH][EACH][32];
    att_safetensors_tensor tensors[OWN + EACH * FIXTURE_DEPTH] = {
        {"image", ATT_SAFETENSORS_U8, att_shape_of(images, SIDE, SIDE, 3), pixels},
        {"label", ATT_SAFETENSORS_I64, att_shape_of(images), label},
        {"output.logits", ATT_SAFETENSORS_F32, att_shape_of(images, 2), probability},
        {"output.patches", ATT_SAFETENSORS_F32, att_shape_of(images, 2), probability}, /* no attention node */
    };
    const att_safetensors_tensor each[EACH] = {
        {"patches", ATT_SAFETENSORS_U16, att_shape_of(images, H, N, N - 1), map.patches},
        {"prefix", ATT_SAFETENSORS_F32, att_shape_of(images, H, N, 1), map.prefix},
        {"figures", ATT_SAFETENSORS_F32, att_shape_of(images, H + 1, N, 4), map.figures},
        {"place", ATT_SAFETENSORS_I32, att_shape_of(images, H + 1, N), map.place},
    };
    for (int t = 0; t < FIXTURE_DEPTH * EACH; t++) {
        char *name = scopes[t / EACH][t % EACH];
        snprintf(name, sizeof scopes[0][0], "blocks.%d.attn.%s", t / EACH, each[t % EACH].name);
        tensors[OWN + t] = each[t % EACH];
        tensors[OWN + t].name = name;
    }
    char nodes[FIXTURE_DEPTH * 200];
    fixture_nodes(grid, sizeof nodes, nodes);
    const att_safetensors_pair metadata[] = {{"maps", version == 4 ? "4" : "3"},
                                             {version == 4 ? "nodes" : "grid_h", version == 4 ? nodes : grid},
                                             {version == 4 ? "unused" : "grid_w", "2"},
                                             {version == 4 ? "also unused" : "prefix", "1"},
                                             {"names", names[images - 1]},
                                             {"captions", captions[images - 1]}};
    att_safetensors_content content = {.tensors = tensors,
                                       .tensor_count = sizeof tensors / sizeof *tensors,
                                       .metadata = metadata,
                                       .metadata_count = sizeof metadata / sizeof *metadata};
    return att_safetensors_write(context, path, &content);
}

/* Writes the complete folder of a run; the measured figures stay in f->measure. */
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
    return status == ATT_OK ? fixture_maps(context, path, FIXTURE_IMAGES, "2", 4) : status;
}

#endif
