/* models/checkpoints.h - for tests of checkpoints: writes checkpoints into a temporary folder of the test. */
#ifndef TESTS_MODELS_CHECKPOINTS_H
#define TESTS_MODELS_CHECKPOINTS_H

#include <unistd.h>

#include "networks/models/fixture.h"

typedef struct place {
    att_context *context;
    char folder[64], weights[96];
} place;

static inline void path_in(const place *p, const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", p->folder, name);
}

static inline void write_beside(const place *p, const char *name, const char *text)
{
    char path[128];
    path_in(p, name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* --- writing checkpoints ------------------------------------------------------------------------------------------ */

enum { MOST = 400 };

typedef struct tensors {
    att_safetensors_tensor items[MOST];
    int count;
} tensors;

/* Returns element i of FcaNet's constant [16, 7, 7], the cosines of its "top16" frequencies. */
static inline double cosines_at(size_t i)
{
    static const int rows[] = {0, 0, 6, 0, 0, 1, 1, 4, 5, 1, 3, 0, 0, 0, 3, 2},
                     columns[] = {0, 1, 0, 5, 2, 0, 2, 0, 0, 6, 0, 4, 6, 3, 5, 2};
    const double pi = 3.14159265358979323846;
    int row = rows[i / 49], column = columns[i / 49];
    return cos(pi * row * ((double)(i / 7 % 7) + 0.5) / 7) * cos(pi * column * ((double)(i % 7) + 0.5) / 7) / 7 *
           (row ? sqrt(2) : 1) * (column ? sqrt(2) : 1);
}

/* Fills tensor i with the formula's numbers for its name, or with FcaNet's cosines. */
static inline att_status fill_formula(void *user, int index, void *out, size_t bytes)
{
    const att_safetensors_tensor *tensor = &((const tensors *)user)->items[index];
    bool cosines = strstr(tensor->name, ".att.dct_layer.") || strstr(tensor->name, ".attention_module.dct_layer.");
    float *values = out;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = (float)(cosines ? cosines_at(i) : formula(tensor->name, (uint32_t)i));
    return ATT_OK;
}

static inline tensors tensors_of(const att_model *model)
{
    tensors made = {0};
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        made.items[made.count++] =
            (att_safetensors_tensor){.name = parameter.name, .dtype = ATT_SAFETENSORS_F32, .shape = parameter.shape};
    }
    return made;
}

static inline void add_tensor(tensors *t, const char *name, att_shape shape)
{
    t->items[t->count++] = (att_safetensors_tensor){.name = name, .dtype = ATT_SAFETENSORS_F32, .shape = shape};
}

static inline void write_tensors(const place *p, tensors *t, const char *identity)
{
    att_safetensors_pair metadata[] = {{"format", "pt"}, {ATT_IDENTITY_KEY, identity}};
    att_safetensors_content content = {.tensors = t->items,
                                       .tensor_count = t->count,
                                       .metadata = metadata,
                                       .metadata_count = identity ? 2 : 1,
                                       .fill = fill_formula,
                                       .fill_user = t};
    CHECK(p->context, att_safetensors_write(p->context, p->weights, &content));
}

/* Options of a small ViT: width 32, depth 2, 2 heads, patches of 8 in images of 32. */
static inline att_option_values small(void)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 32), att_options_set(&options, "patch_size", 8),
        att_options_set(&options, "embed_dim", 32), att_options_set(&options, "depth", 2),
        att_options_set(&options, "num_heads", 2);
    att_options_set(&options, "num_classes", 7);
    return options;
}

static inline att_model *make(const place *p, const char *name, const att_option_values *options)
{
    att_model *model;
    CHECK(p->context, att_model_create(p->context, name, options, ATT_F32, &model));
    return model;
}

/* Writes a checkpoint of the model. with_identity: with attscope's metadata; otherwise as timm writes it. */
static inline void write_model(const place *p, const char *name, const att_option_values *options, bool with_identity)
{
    att_model *model = make(p, name, options);
    tensors t = tensors_of(model);
    char text[ATT_IDENTITY_TEXT];
    att_identity identity = att_model_identity(model);
    CHECK(p->context, att_model_identity_text(p->context, &identity, text, sizeof text));
    write_tensors(p, &t, with_identity ? text : NULL);
    att_model_destroy(&model);
}

static inline att_status identify(const place *p, const char *name, const att_option_values *flags,
                                  att_identity *identity)
{
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    att_status status = att_model_identify(p->context, file, p->weights, name, flags, identity);
    att_tensors_close(&file);
    return status;
}

static inline void says(const char *text, const char *words)
{
    if (!text || !strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text ? text : "", words);
}

/* Checks that the option "modules" names the module and, unless it is NULL, these blocks of a residual network. */
static inline void has_module(const att_option_values *options, const char *module, const char *places)
{
    const char *text = att_options_text(options, "modules");
    char expected[256];
    int whole = places && strcmp(places, "all") != 0;
    snprintf(expected, sizeof expected, "%s%s%s", module, whole ? "@after_branch:" : "", whole ? places : "");
    size_t length = places ? strlen(text) : strcspn(text, "@");
    if (strlen(expected) != length || strncmp(text, expected, length) != 0)
        fail_msg("modules are \"%s\", not \"%s\"", text, expected);
}

/* Checks that the file is refused with a message that contains these words, and that nothing is written. */
static inline void refused(const place *p, const char *name, att_status status, const char *words)
{
    att_identity identity = {.name = "untouched"};
    assert_int_equal(identify(p, name, NULL, &identity), status);
    assert_string_equal(identity.name, "untouched");
    says(att_context_message(p->context), words);
}

static inline int setup(void **state)
{
    place *p = calloc(1, sizeof *p);
    strcpy(p->folder, "/tmp/att_models_XXXXXX");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->weights, sizeof p->weights, "%s/model.safetensors", p->folder);
    *state = p;
    return att_context_create(NULL, &p->context) != ATT_OK;
}

static inline int teardown(void **state)
{
    place *p = *state;
    static const char *const names[] = {"model.safetensors", "config.json", "args.yaml"};
    for (int i = 0; i < 3; i++) {
        char path[128];
        path_in(p, names[i], path);
        unlink(path);
    }
    rmdir(p->folder);
    att_context_destroy(&p->context);
    free(p);
    return 0;
}

/* The messages of a context. */
typedef struct logged {
    char text[4096];
} logged;

static inline void keep_message(void *user, att_log_level level, const char *line)
{
    logged *log = user;
    size_t length = strlen(log->text);
    (void)level;
    snprintf(log->text + length, sizeof log->text - length, "%s\n", line);
}

/* Gives the place a context that keeps its messages in *log. */
static inline void keep_messages(place *p, logged *log)
{
    att_settings settings = att_settings_defaults();
    memset(log, 0, sizeof *log);
    settings.log = keep_message;
    settings.log_user = log;
    att_context_destroy(&p->context);
    CHECK(NULL, att_context_create(&settings, &p->context));
}

/* A test with a place, `p`. */
#define PLACE_TEST(name) TEST_WITH(name, place *p, setup, teardown)

static inline att_parameter_info parameter_of(const att_model *model, const char *name)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0)
            return att_graph_parameter_at(graph, i);
    fail_msg("there is no parameter %s", name);
    return (att_parameter_info){0};
}

static inline void has_shape(const att_model *model, const char *name, att_shape shape)
{
    assert_true(att_shape_equal(parameter_of(model, name).shape, shape));
}

/* The written file must load into the model, which is destroyed. */
static inline void load_and_destroy(const place *p, att_model *model)
{
    att_weights *weights;
    att_tensors *file;
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_model_load(model, file, weights));
    att_weights_destroy(&weights);
    att_tensors_close(&file);
    att_model_destroy(&model);
}

#endif
