/* Runs of a network on texts: vectors, and figures of instruments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/encoder.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/family.h"
#include "study/measure/measure.h"
#include "study/network/network.h"

enum { PADDED_TO = 8 };

att_texts_options att_texts_options_defaults(void)
{
    return (att_texts_options){.output = "mean", .batch_size = 32};
}

/* Index of the input "tokens" of the network; -1: it has none. */
static int tokens_input(const att_network *network)
{
    for (int i = 0; att_model_input_at(network->model, i).field.name; i++)
        if (strcmp(att_model_input_at(network->model, i).field.name, ATT_TOKENS) == 0)
            return i;
    return -1;
}

int att_network_most_tokens(const att_network *network)
{
    return tokens_input(network) < 0 ? 0
                                     : (int)att_options_number(att_model_options(network->model), "max_positions", 0);
}

/* --- batches of texts of one length ------------------------------------------------------------------------------- */

typedef struct reader {
    att_network *network;
    const att_token_ids *texts;
    int64_t count;
    const att_texts_options *options;
    int most;           /* tokens of a text */
    int multiple;       /* lengths are padded to multiples of this */
    int64_t *order;     /* indices of texts, the shortest first */
    int32_t *numbers;   /* room for the inputs of a batch */
    int64_t first, end; /* the batch: texts order[first .. end - 1] */
    int length;         /* its padded length */
    att_field fields[ATT_MAX_INPUTS];
    const void *data[ATT_MAX_INPUTS];
    att_batch batch;
    double started;
} reader;

static int padded(const reader *r, int64_t text)
{
    const int count = r->texts[text].count, length = (count + r->multiple - 1) / r->multiple * r->multiple;
    return length < r->most ? length : r->most;
}

static att_status check(const reader *r)
{
    att_context *context = r->network->context;
    char inputs[ATT_INPUTS_TEXT];
    if (r->most == 0)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s takes no tokens of texts; its inputs are: %s",
                        att_model_name(r->network->model), att_model_inputs_describe(r->network->model, inputs));
    if (r->count < 1 || r->options->batch_size < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "%lld texts in batches of %d, expected at least 1 of both",
                        (long long)r->count, r->options->batch_size);
    return att_require(context, r->texts, "the texts of a run");
}

static att_status check_lengths(const att_network *network, const att_token_ids *texts, int64_t count)
{
    const int most = att_network_most_tokens(network);
    for (int64_t i = 0; i < count; i++) {
        ATT_TRY(att_require(network->context, texts[i].tokens, "the tokens of a text"));
        if (texts[i].count < 1 || texts[i].count > most)
            return att_fail(network->context, ATT_ERR_ARGUMENT,
                            "text %lld has %d tokens; %s takes 1 to %d: shorten or divide longer texts", (long long)i,
                            texts[i].count, att_model_name(network->model), most);
    }
    return ATT_OK;
}

/* A counting sort, since there are few lengths. */
att_status att_network_order_texts(const att_network *network, const att_token_ids *texts, int64_t count,
                                   int64_t **order)
{
    const int most = att_network_most_tokens(network);
    int64_t *starts, at = 0;
    ATT_TRY(check_lengths(network, texts, count));
    ATT_TRY(att_new(network->context, order, (size_t)count, "the order of texts"));
    ATT_TRY(att_new(network->context, &starts, (size_t)most + 2, "the order of texts"));
    for (int64_t i = 0; i < count; i++)
        starts[texts[i].count + 1]++;
    for (int length = 0; length <= most; length++)
        starts[length + 1] += starts[length];
    for (; at < count; at++)
        (*order)[starts[texts[at].count]++] = at;
    att_free(network->context, starts);
    return ATT_OK;
}

static att_status begin(reader *r)
{
    ATT_TRY(check(r));
    ATT_TRY(att_network_order_texts(r->network, r->texts, r->count, &r->order));
    const size_t most = (size_t)r->most * (size_t)r->options->batch_size * ATT_MAX_INPUTS;
    ATT_TRY(att_new(r->network->context, &r->numbers, most, "the tokens of texts"));
    r->started = att_seconds_now();
    return ATT_OK;
}

static void end(reader *r)
{
    att_free(r->network->context, r->order);
    att_free(r->network->context, r->numbers);
}

/* Writes the row of an input for a text; padding is 0. */
static void fill_row(const reader *r, const char *name, const att_token_ids *text, int32_t *row)
{
    const int32_t *from = strcmp(name, ATT_TOKENS) == 0 ? text->tokens : text->types;
    if (strcmp(name, ATT_TOKEN_COUNT) == 0) {
        *row = text->count;
        return;
    }
    memset(row, 0, (size_t)r->length * sizeof *row);
    if (from)
        memcpy(row, from, (size_t)text->count * sizeof *row);
}

/* Fills the batch of the next texts of one padded length; returns false after the last. */
static bool next(reader *r)
{
    int32_t *at = r->numbers;
    r->first = r->end;
    if (r->first >= r->count)
        return false;
    r->length = padded(r, r->order[r->first]);
    while (r->end < r->count && r->end - r->first < r->options->batch_size && padded(r, r->order[r->end]) == r->length)
        r->end++;
    r->batch = (att_batch){.count = (int)(r->end - r->first), .fields = r->fields, .data = r->data};
    for (att_field own; (own = att_model_input_at(r->network->model, r->batch.field_count).field).name;) {
        att_field *field = &r->fields[r->batch.field_count];
        *field = own;
        if (own.shape.rank > 0)
            field->shape = att_shape_of(r->length);
        r->data[r->batch.field_count++] = at;
        for (int64_t i = r->first; i < r->end; i++, at += att_shape_count(field->shape))
            fill_row(r, own.name, &r->texts[r->order[i]], at);
    }
    return true;
}

static att_status report(const reader *r, const char *stage)
{
    const double seconds = att_seconds_now() - r->started, done = (double)r->end, all = (double)r->count;
    const att_progress progress = {.stage = stage,
                                   .images_per_second = seconds > 0 ? done / seconds : NAN,
                                   .seconds_left = seconds * (all - done) / done,
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .others_share = NAN,
                                   .done = r->end,
                                   .total = r->count,
                                   .unit = "texts"};
    if (!r->options->progress || r->options->progress(r->options->progress_user, &progress))
        return ATT_OK;
    return att_fail(r->network->context, ATT_ERR_STOPPED, "stopped after %lld of %lld texts", (long long)r->end,
                    (long long)r->count);
}

/* --- vectors ------------------------------------------------------------------------------------------------------ */

/* Allocates the vectors after the first batch, which shows their length. */
static att_status make_room(const reader *r, const att_batch *answers, att_embedding *found)
{
    att_context *context = r->network->context;
    if (answers->field_count != 1 || answers->fields[0].dtype != ATT_F32 || answers->fields[0].shape.rank != 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "\"%s\" is not one vector for each text, such as mean or class",
                        r->options->output);
    found->shape = answers->fields[0].shape;
    ATT_TRY(att_new(context, &found->values, (size_t)(r->count * found->shape.dims[0]), "the vectors of texts"));
    return att_new(context, &found->indices, (size_t)r->count, "the vectors of texts");
}

static void divide(float *vector, int64_t width)
{
    double squares = 0;
    for (int64_t i = 0; i < width; i++)
        squares += (double)vector[i] * vector[i];
    for (int64_t i = 0; squares > 0 && i < width; i++)
        vector[i] = (float)(vector[i] / sqrt(squares));
}

static att_status keep(const reader *r, const att_batch *answers, att_embedding *found)
{
    if (!found->values)
        ATT_TRY(make_room(r, answers, found));
    const int64_t width = found->shape.dims[0];
    const float *from = answers->data[0];
    for (int64_t i = r->first; i < r->end; i++, from += width) {
        float *to = found->values + r->order[i] * width;
        memcpy(to, from, (size_t)width * sizeof *to);
        if (r->options->unit)
            divide(to, width);
    }
    return ATT_OK;
}

static att_status encode(reader *r, att_embedding *found)
{
    att_batch answers;
    ATT_TRY(att_require(r->network->context, r->options->output, "the name of the vectors"));
    ATT_TRY(begin(r));
    ATT_TRY(att_network_select_outputs(r->network, r->options->output));
    while (next(r)) {
        ATT_TRY(att_network_run(r->network, &r->batch, &answers));
        ATT_TRY(keep(r, &answers, found));
        ATT_TRY(report(r, "embed"));
    }
    found->count = r->count;
    for (int64_t i = 0; i < r->count; i++)
        found->indices[i] = i;
    const double seconds = att_seconds_now() - r->started;
    found->images_per_second = seconds > 0 ? (double)r->count / seconds : 0;
    return ATT_OK;
}

static reader reader_of(att_network *network, const att_token_ids *texts, int64_t count,
                        const att_texts_options *options, int multiple)
{
    return (reader){.network = network,
                    .texts = texts,
                    .count = count,
                    .options = options,
                    .most = att_network_most_tokens(network),
                    .multiple = multiple};
}

att_status att_network_embed_texts(att_network *network, const att_token_ids *texts, int64_t count,
                                   const att_texts_options *options, att_embedding *vectors)
{
    const att_texts_options defaults = att_texts_options_defaults();
    reader r = reader_of(network, texts, count, options ? options : &defaults, PADDED_TO);
    att_embedding found = {0};
    const att_status status = encode(&r, &found);
    end(&r);
    if (status == ATT_OK)
        *vectors = found;
    else
        att_embedding_free(network->context, &found);
    return status;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* The network with probes, for texts of one length. */
typedef struct probed {
    att_reshaped reshaped;
    att_measure *measure;
    att_inference inference;
    int length;
} probed;

static void release(probed *p)
{
    att_inference_free(&p->inference);
    att_measure_destroy(&p->measure);
    att_reshaped_free(&p->reshaped);
    *p = (probed){0};
}

static bool have_one_length(const reader *r)
{
    return r->texts[r->order[0]].count == r->texts[r->order[r->count - 1]].count;
}

/* Why these texts cannot have an instrument; NULL: they can. */
static const char *obstacle(const reader *r, const att_active_instrument *active)
{
    return active->instrument->info.needs_labels                   ? "it needs classes, and texts have none"
           : active->instrument->state.size && !have_one_length(r) ? "it needs texts of one length"
                                                                   : NULL;
}

/* Leaves instruments that these texts cannot have out of "all", and refuses those that were named. */
static att_status leave_out(const reader *r, const att_measure *measure, att_text *with)
{
    for (int i = 0; i < measure->active.count; i++) {
        const att_active_instrument *active = &measure->active.items[i];
        const char *reason = obstacle(r, active), *name = active->instrument->info.name;
        if (reason && active->named)
            return att_fail(r->network->context, ATT_ERR_UNSUPPORTED, "%s cannot be measured on these texts: %s", name,
                            reason);
        if (!reason)
            continue;
        att_log(r->network->context, ATT_LOG_INFO, "%s is left out: %s", name, reason);
        att_text_append(with, ",-%s", name);
    }
    return ATT_OK;
}

/* The instruments on a graph; those that the texts cannot have are left out of `with` the first time. */
static att_status choose(const reader *r, const att_graph *graph, att_text *with, const char *nodes)
{
    att_measure *tried;
    att_graph *copy = att_graph_copy(graph);
    if (!copy)
        return att_fail_memory(r->network->context, sizeof(void *), "a network's graph");
    att_status status = att_measure_create(copy, with->data, nodes, &tried);
    if (status == ATT_OK) {
        status = leave_out(r, tried, with);
        att_measure_destroy(&tried);
    }
    att_graph_destroy(&copy);
    ATT_TRY(status);
    return with->failed ? att_fail_memory(r->network->context, with->length, "a list of instruments") : ATT_OK;
}

static att_status probe(const reader *r, att_text *with, const char *nodes, probed *p)
{
    const bool first = r->first == 0;
    att_network *network = r->network;
    att_shapes shapes = {.count = r->batch.field_count};
    for (int i = 0; i < shapes.count; i++)
        shapes.of[i] = r->fields[i].shape;
    p->length = r->length;
    ATT_TRY(att_network_reshape(network, &shapes, &p->reshaped));
    if (!p->reshaped.model) /* the network's own graph stays without probes */
        ATT_TRY(att_model_rebuild(network->model, NULL, &p->reshaped.model));
    att_graph *graph = att_model_graph(p->reshaped.model);
    if (first)
        ATT_TRY(choose(r, graph, with, nodes));
    ATT_TRY(att_measure_create(graph, with->data, nodes, &p->measure));
    const att_inference_options options = {.backend = network->backend,
                                           .precision = network->precision,
                                           .max_batch = r->options->batch_size,
                                           .probes = "*",
                                           .stops = true};
    return att_inference_create(graph, att_reshaped_weights(network, &p->reshaped), &options, &p->inference);
}

/* Adds the figures of one length to those of all. */
static att_status finish(probed *p, att_measure **all)
{
    att_status status = ATT_OK;
    if (!*all) {
        *all = p->measure;
        p->measure = NULL;
    } else if (p->measure)
        status = att_measure_merge(*all, p->measure);
    release(p);
    return status;
}

static att_status observe(const reader *r, probed *p)
{
    att_batch given, answers;
    att_shapes shapes;
    ATT_TRY(att_network_take_inputs(r->network, &r->batch, &given, &shapes));
    ATT_TRY(att_inference_run(&p->inference, &given, given.rows, &answers));
    return att_measure_observe(p->measure, p->inference.session, given.count, NULL);
}

static att_status measure_all(reader *r, att_text *with, const char *nodes, probed *p, att_measure **all)
{
    ATT_TRY(begin(r));
    while (next(r)) {
        if (p->length != r->length) {
            if (p->length > 0)
                ATT_TRY(finish(p, all));
            ATT_TRY(probe(r, with, nodes, p));
        }
        ATT_TRY(observe(r, p));
        ATT_TRY(report(r, "measure"));
    }
    return finish(p, all);
}

att_status att_network_measure_texts(att_network *network, const att_token_ids *texts, int64_t count, const char *with,
                                     const char *nodes, const att_texts_options *options, att_measure **measure)
{
    const att_texts_options defaults = att_texts_options_defaults();
    reader r = reader_of(network, texts, count, options ? options : &defaults, 1);
    probed p = {0};
    att_measure *all = NULL;
    att_text list = {.context = network->context};
    att_text_append(&list, "%s", with ? with : "all");
    const att_status status = measure_all(&r, &list, nodes, &p, &all);
    att_text_free(&list);
    release(&p);
    end(&r);
    if (status == ATT_OK)
        *measure = all;
    else
        att_measure_destroy(&all);
    return status;
}
