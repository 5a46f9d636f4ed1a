/* An ablation as JSON and as a .npz file, and how its numbers are to be read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/npz.h"
#include "lab/runs/ablation/ablation.h"

static const att_ablation_method methods[] = {
    {"accuracy", "change of 100 mean_i r_i; r_i = 1 if no class comes before y_i by its logit, else 0",
     "in percentage points; below 0: without the part fewer answers are right"},
    {"loss", "mean_i (L'_i - L_i); L_i = -ln softmax(z_i)_{y_i}; ' without the part",
     "in nats; above 0: the network needs the part"},
    {"p_class", "mean_i (p'_i - p_i); p_i = softmax(z_i)_{y_i}",
     "of the right class; below 0: without the part the network is less sure of it"},
    {"interval", "mean(d) -/+ t s / sqrt(n) of the n differences d_i; t: 0.975 quantile of Student's t, n - 1 degrees",
     "95 %, paired over images or texts (Student 1908); of one part, not corrected for the number of parts"},
    {"rho", "Pearson's correlation of the ranks of the figure and of the change of the loss (Spearman 1904)",
     "over heads or branches; p: share of permutations with a correlation at least as large; above 0: parts with a "
     "larger figure are needed more"},
};

/* Of a network without classes. */
static const att_ablation_method distance = {
    "distance", "mean_i (1 - u_i . v_i / (|u_i| |v_i|)); u_i: the vector of text i without the part, v_i: with it",
    "0: the same direction, 1: orthogonal"};

att_ablation_method att_ablation_method_at(const att_ablation *a, int index)
{
    enum { OF_CLASSES = 3 }; /* which a network without classes does not have */
    const int count = sizeof methods / sizeof *methods, at = a->vector ? index + OF_CLASSES - 1 : index;
    if (a->vector && index == 0)
        return distance;
    return at >= 0 && at < count ? methods[at] : (att_ablation_method){0};
}

static const char *const kinds[] = {
    [ATT_ABLATED_HEADS] = "head", [ATT_ABLATED_BRANCHES] = "branch", [ATT_ABLATED_TOKENS] = "token"};

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void put_paired(att_json_writer *writer, const char *key, const att_paired *paired)
{
    att_json_put_object(writer, key);
    att_json_put_number(writer, "mean", paired->mean);
    att_json_put_number(writer, "low", paired->low);
    att_json_put_number(writer, "high", paired->high);
    att_json_end_object(writer);
}

static void put_answers(att_json_writer *writer, const att_ablation_change *c)
{
    put_paired(writer, "accuracy", &c->accuracy);
    put_paired(writer, "loss", &c->loss);
    put_paired(writer, "p_class", &c->probability);
    att_json_put_integer(writer, "lost", c->lost);
    att_json_put_integer(writer, "gained", c->gained);
}

static void put_change(att_json_writer *writer, const att_ablation *a, int number)
{
    const att_ablation_change *c = &a->changes[number];
    att_json_begin_object(writer);
    att_json_put_string(writer, "name", c->name);
    att_json_put_string(writer, "kind", kinds[c->kind]);
    if (c->part >= 0)
        att_json_put_integer(writer, c->kind == ATT_ABLATED_HEADS ? "layer" : kinds[c->kind], c->part);
    if (c->head >= 0)
        att_json_put_integer(writer, "head", c->head);
    att_json_put_integer(writer, "rank", c->rank);
    if (a->vector)
        put_paired(writer, "distance", &c->loss);
    else
        put_answers(writer, c);
    for (int f = 0; f < a->figure_count; f++)
        if (!isnan(a->figures[f].values[number]))
            att_json_put_number(writer, a->figures[f].name, a->figures[f].values[number]);
    att_json_end_object(writer);
}

static void put_correlation(att_json_writer *writer, const att_ablation_correlation *c)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "kind", kinds[c->kind]);
    att_json_put_string(writer, "figure", c->figure);
    att_json_put_integer(writer, "count", c->count);
    att_json_put_number(writer, "rho", c->spearman.value);
    att_json_put_number(writer, "low", c->spearman.low);
    att_json_put_number(writer, "high", c->spearman.high);
    att_json_put_number(writer, "p", c->spearman.p);
    att_json_end_object(writer);
}

static void put_method(att_json_writer *writer, const att_ablation_method *method)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "name", method->name);
    att_json_put_string(writer, "formula", method->formula);
    att_json_put_string(writer, "reading", method->reading);
    att_json_end_object(writer);
}

static void put_methods(att_json_writer *writer, const att_ablation *a)
{
    att_ablation_method method;
    att_json_put_array(writer, "methods");
    for (int i = 0; (method = att_ablation_method_at(a, i)).name; i++)
        put_method(writer, &method);
    att_json_end_array(writer);
}

static void put_unchanged(att_json_writer *writer, const att_ablation_facts *facts)
{
    att_json_put_object(writer, "unchanged");
    att_json_put_number(writer, "accuracy", facts->accuracy);
    att_json_put_number(writer, "loss", facts->loss);
    att_json_put_number(writer, "p_class", facts->probability);
    att_json_end_object(writer);
}

static void put_layers(att_json_writer *writer, const att_ablation *a)
{
    att_json_put_array(writer, "layers");
    for (int l = 0; l < a->layer_count; l++) {
        att_json_begin_object(writer);
        att_json_put_string(writer, "node", a->layers[l].scope);
        att_json_put_integer(writer, "heads", a->layers[l].heads);
        att_json_put_integer(writer, "prefix", a->layers[l].prefix);
        att_json_put_integer(writer, "grid_h", a->layers[l].grid_h);
        att_json_put_integer(writer, "grid_w", a->layers[l].grid_w);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

void att_ablation_write_json(const att_ablation *a, att_json_writer *writer)
{
    const att_ablation_facts facts = att_ablation_describe(a);
    att_json_put_integer(writer, facts.texts ? "texts" : "images", facts.images);
    att_json_put_integer(writer, "unlabelled", facts.unlabelled);
    if (facts.vector)
        att_json_put_string(writer, "vector", facts.vector);
    else
        put_unchanged(writer, &facts);
    att_json_put_string(writer, "change", a->uniform ? "uniform" : "removed");
    att_json_put_bool(writer, "greedy", a->greedy);
    if (a->greedy)
        att_json_put_number(writer, "bound", a->bound);
    put_layers(writer, a);
    att_json_put_array(writer, "parts");
    for (int p = 0; p < att_ablation_count(a); p++)
        put_change(writer, a, p);
    att_json_end_array(writer);
    att_json_put_array(writer, "correlations");
    for (int f = 0; f < a->figure_count; f++)
        put_correlation(writer, &a->figures[f].correlation);
    att_json_end_array(writer);
    put_methods(writer, a);
}

/* --- npz ---------------------------------------------------------------------------------------------------------- */

static const char *part_name(const void *user, int64_t index)
{
    return ((const att_ablation *)user)->changes[index].name;
}

static const char *image_name(const void *user, int64_t index)
{
    return ((const att_ablation *)user)->images[index].name;
}

/* A number of a change. */
typedef double number_of(const att_ablation_change *change);
/* clang-format off */
static double layer_of(const att_ablation_change *c) { return c->part; }
static double head_of(const att_ablation_change *c) { return c->head; }
static double accuracy(const att_ablation_change *c) { return c->accuracy.mean; }
static double accuracy_low(const att_ablation_change *c) { return c->accuracy.low; }
static double accuracy_high(const att_ablation_change *c) { return c->accuracy.high; }
static double loss(const att_ablation_change *c) { return c->loss.mean; }
static double loss_low(const att_ablation_change *c) { return c->loss.low; }
static double loss_high(const att_ablation_change *c) { return c->loss.high; }
static double probability(const att_ablation_change *c) { return c->probability.mean; }
static double probability_low(const att_ablation_change *c) { return c->probability.low; }
static double probability_high(const att_ablation_change *c) { return c->probability.high; }
/* clang-format on */
static const struct {
    const char *name;
    number_of *of;
    const char *of_vector; /* name for a network without classes; NULL: it does not have the number */
} columns[] = {{"part.number", layer_of, "part.number"},
               {"part.head", head_of, "part.head"},
               {"change.accuracy", accuracy, NULL},
               {"change.accuracy.low", accuracy_low, NULL},
               {"change.accuracy.high", accuracy_high, NULL},
               {"change.loss", loss, "change.distance"},
               {"change.loss.low", loss_low, "change.distance.low"},
               {"change.loss.high", loss_high, "change.distance.high"},
               {"change.p_class", probability, NULL},
               {"change.p_class.low", probability_low, NULL},
               {"change.p_class.high", probability_high, NULL}};

static att_status add_changes(const att_ablation *a, att_npz *npz)
{
    double *values;
    att_status status = att_npz_add_texts(npz, "part.name", att_ablation_count(a), part_name, a);
    ATT_TRY(status);
    ATT_TRY(att_new(a->context, &values, (size_t)att_ablation_count(a), "the changes of an ablation"));
    for (size_t c = 0; status == ATT_OK && c < sizeof columns / sizeof *columns; c++) {
        const char *name = a->vector ? columns[c].of_vector : columns[c].name;
        if (!name)
            continue;
        for (int p = 0; p < att_ablation_count(a); p++)
            values[p] = columns[c].of(&a->changes[p]);
        status = att_npz_add(npz, name, "<f8", att_shape_of(att_ablation_count(a)), values,
                             (size_t)att_ablation_count(a) * sizeof *values);
    }
    att_free(a->context, values);
    for (int f = 0; status == ATT_OK && f < a->figure_count; f++) {
        char name[96];
        snprintf(name, sizeof name, "figure %s %s", kinds[a->figures[f].kind], a->figures[f].name);
        status = att_npz_add(npz, name, "<f8", att_shape_of(att_ablation_count(a)), a->figures[f].values,
                             (size_t)att_ablation_count(a) * sizeof *a->figures[f].values);
    }
    return status;
}

/* An array [1 + changes, images] of numbers of 8 bytes. */
static att_status add_answers(const att_ablation *a, att_npz *npz, const char *name, double *room,
                              double (*of)(const att_ablation *a, int change, int64_t image))
{
    const int64_t rows = 1 + att_ablation_count(a);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < a->image_count; i++)
            room[r * a->image_count + i] = of(a, (int)r - 1, i);
    return att_npz_add(npz, name, "<f8", att_shape_of(rows, a->image_count), room,
                       (size_t)(rows * a->image_count) * sizeof *room);
}

static double loss_of(const att_ablation *a, int change, int64_t image)
{
    return att_ablation_losses(a, change)[image];
}

static double right_of(const att_ablation *a, int change, int64_t image)
{
    return att_ablation_right(a, change)[image];
}

static double probability_of(const att_ablation *a, int change, int64_t image)
{
    return exp(-att_ablation_losses(a, change)[image]);
}

static double label_of(const att_ablation *a, int change, int64_t image)
{
    (void)change;
    return a->images[image].label;
}

static double index_of(const att_ablation *a, int change, int64_t image)
{
    (void)change;
    return (double)a->images[image].index;
}

/* An array [images]. */
static att_status add_row(const att_ablation *a, att_npz *npz, const char *name, double *room,
                          double (*of)(const att_ablation *a, int change, int64_t image))
{
    for (int64_t i = 0; i < a->image_count; i++)
        room[i] = of(a, -1, i);
    return att_npz_add(npz, name, "<f8", att_shape_of(a->image_count), room, (size_t)a->image_count * sizeof *room);
}

static att_status add_images(const att_ablation *a, att_npz *npz, double *room)
{
    ATT_TRY(att_npz_add_texts(npz, a->reads_texts ? "text.name" : "image.name", a->image_count, image_name, a));
    ATT_TRY(add_row(a, npz, a->reads_texts ? "text.index" : "image.index", room, index_of));
    if (a->vector)
        return add_answers(a, npz, "distance", room, loss_of);
    ATT_TRY(add_row(a, npz, a->reads_texts ? "text.class" : "image.class", room, label_of));
    ATT_TRY(add_answers(a, npz, "loss", room, loss_of));
    ATT_TRY(add_answers(a, npz, "right", room, right_of));
    return add_answers(a, npz, "p_class", room, probability_of);
}

static att_status fill(const att_ablation *a, att_npz *npz)
{
    double *room;
    ATT_TRY(add_changes(a, npz));
    ATT_TRY(att_new(a->context, &room, (size_t)(1 + att_ablation_count(a)) * (size_t)a->image_count,
                    "the answers of an image"));
    att_status status = add_images(a, npz, room);
    att_free(a->context, room);
    return status;
}

att_status att_ablation_write_npz(const att_ablation *a, const char *path)
{
    att_npz *npz = NULL;
    ATT_TRY(att_require(a->context, path, "the path of a .npz file"));
    ATT_TRY(att_npz_open(a->context, path, &npz));
    att_status status = fill(a, npz);
    if (status == ATT_OK)
        return att_npz_commit(&npz);
    att_npz_abort(&npz);
    return status;
}
