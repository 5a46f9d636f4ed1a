/* models/fixture.h - for tests of networks: golden files, and weights and images computed by the formula of
 * tools/goldens. */
#ifndef TESTS_MODELS_FIXTURE_H
#define TESTS_MODELS_FIXTURE_H

#include <attscope/models.h>

#include "formula.h"
#include "golden_path.h"

/* Opens the golden file `name` (see golden_path()) for reading. */
static inline FILE *golden_open(const char *name)
{
    char path[4096];
    golden_path(name, path, sizeof path);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    return file;
}

/* Returns element `index` of a parameter: around 1 for the weights of norms, around 0 for others. */
static inline float formula_weight(const att_parameter_info *parameter, int64_t index)
{
    size_t length = strlen(parameter->name);
    bool gain = strstr(parameter->name, "norm") && length > 6 && strcmp(parameter->name + length - 6, "weight") == 0;
    double wide = parameter->shape.rank > 1 ? 0.4 : 0.2;
    return (float)((gain ? 1 : 0) + wide * formula(parameter->name, (uint32_t)index));
}

/* Fills all parameters by the formula. The graph computes in f32 or f64. */
static inline void formula_fill(att_context *of, const att_graph *graph, att_weights *weights)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int64_t count = att_shape_count(parameter.shape);
        double *wide = malloc((size_t)count * sizeof *wide);
        float *narrow = malloc((size_t)count * sizeof *narrow);
        for (int64_t e = 0; e < count; e++)
            wide[e] = narrow[e] = formula_weight(&parameter, e);
        const void *host = att_graph_dtype(graph) == ATT_F64 ? (const void *)wide : (const void *)narrow;
        CHECK(of, att_weights_set(weights, -1, i, host, count));
        free(wide);
        free(narrow);
    }
}

/* Takes "depth=2" or "depths=2,2". */
static inline void take_option(const char *text, att_option_values *options)
{
    char key[64], *end;
    const char *value = strchr(text, '=');
    assert_non_null(value);
    snprintf(key, sizeof key, "%.*s", (int)(value - text), text);
    double number = strtod(++value, &end);
    if (*end || strcmp(key, "window_size") == 0 || strcmp(key, "depths") == 0 || strcmp(key, "stage_heads") == 0)
        att_options_set_text(options, key, value);
    else
        att_options_set(options, key, number);
}

#endif
