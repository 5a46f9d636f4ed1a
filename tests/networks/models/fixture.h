/* models/fixture.h - for tests of networks: golden files, and weights and images computed by the formula of
 * tools/goldens. */
#ifndef TESTS_MODELS_FIXTURE_H
#define TESTS_MODELS_FIXTURE_H

#include <attscope/models.h>

#include "formula.h"
#include "golden_path.h"
#include "networks/models/family.h"

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

static inline bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Returns element `index` of a parameter: around 1 for the weights of norms and running variances, around 0 for others.
 */
static inline float formula_weight(const att_parameter_info *parameter, int64_t index)
{
    const char *name = parameter->name;
    bool norm = strstr(name, "norm") || strstr(name, ".bn.");
    bool gain = (norm && ends_in(name, "weight")) || ends_in(name, "running_var");
    double wide = parameter->shape.rank > 1 ? 0.4 : 0.2;
    return (float)((gain ? 1 : 0) + wide * formula(name, (uint32_t)index));
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
    if (*end || att_family_option(key)->kind == ATT_OPTION_TEXT)
        att_options_set_text(options, key, value);
    else
        att_options_set(options, key, number);
}

#endif
