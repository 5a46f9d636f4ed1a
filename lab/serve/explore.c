/* The pages about checkpoints, and what they ask: networks, images, predictions, rows of maps, figures. */
#include <stdio.h>
#include <string.h>

#include <attscope/hub.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "lab/serve/engine.h"
#include "lab/serve/list.h"

enum { MOST_LAYERS = 1024, MOST_IMAGES = 100000 };

/* Whether a model is a network's name, for random weights, in place of a checkpoint. */
static bool is_random(const char *model)
{
    return !att_tensors_exist(model) && !att_hub_is_name(model);
}

/* Opens each checkpoint that was named itself, and warns of those that cannot be opened: they may be replaced while the
 * server runs. Fails with the last one's message, which is then no warning, if nothing else is there to be served.
 * Networks with random weights have no file that can be damaged, and their weights take long to draw. */
static att_status try_models(att_context *context, const att_site *site, att_engine *engine)
{
    const int count = att_site_model_count(site);
    bool useful = count == 0 || att_site_has_runs(site);
    for (int i = 0; i < count; i++) {
        const att_site_model model = att_site_model_at(site, i);
        att_status status = att_engine_name_network(engine, context, model.path, model.network);
        if (status == ATT_OK && !is_random(model.path))
            status = att_engine_open(engine, context, model.path);
        useful |= status == ATT_OK;
        if (status == ATT_ERR_STOPPED || (!useful && i == count - 1))
            return status;
        if (status != ATT_OK)
            att_log(context, ATT_LOG_WARNING, "%s", att_context_message(context));
    }
    return ATT_OK;
}

static att_status open_explore(att_context *context, att_site *site, void **state)
{
    att_engine *engine = NULL;
    const att_engine_options options = {.images = att_site_images(site),
                                        .texts = att_site_texts(site),
                                        .tokenizer = att_site_tokenizer(site),
                                        .network = att_site_network(site),
                                        .labels = att_site_labels(site)};
    ATT_TRY(att_engine_create(context, &options, &engine));
    const att_status status = try_models(context, site, engine);
    if (status == ATT_OK)
        *state = engine;
    else
        att_engine_destroy(&engine);
    return status;
}

static void close_explore(void *state)
{
    att_engine *engine = state;
    att_engine_destroy(&engine);
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

/* The texts of a view. */
typedef struct asked {
    char path[ATT_RUN_PATH], image[ATT_ENGINE_INPUT], changes[ATT_ENGINE_CHANGES];
} asked;

static att_status read_model(const att_request *request, char path[static ATT_RUN_PATH])
{
    char name[ATT_RUN_PATH];
    ATT_TRY(att_request_text(request, "model", name, sizeof name));
    return att_site_find_model(request->site, request->context, name, path);
}

static att_status read_view(const att_request *request, asked *texts, att_engine_view *view)
{
    ATT_TRY(read_model(request, texts->path));
    ATT_TRY(att_request_text(request, "image", texts->image, sizeof texts->image));
    ATT_TRY(att_request_text(request, "changes", texts->changes, sizeof texts->changes));
    *view = (att_engine_view){texts->path, texts->image, texts->changes};
    return ATT_OK;
}

/* Reads one of the words, which end in NULL; *index is its place. */
static att_status read_word(const att_request *request, const char *name, const char *const *words, int *index)
{
    char text[16];
    ATT_TRY(att_request_text(request, name, text, sizeof text));
    for (*index = 0; words[*index]; ++*index)
        if (strcmp(words[*index], text) == 0)
            return ATT_OK;
    char list[64] = "";
    for (int i = 0; words[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i == 0         ? ""
                 : words[i + 1] ? ", "
                                : " or ",
                 words[i]);
    return att_fail(request->context, ATT_ERR_ARGUMENT, "%s is \"%s\"; expected %s", name, text, list);
}

/* Reads numbers separated by commas: "5,5,0". */
static att_status read_queries(const att_request *request, int queries[static MOST_LAYERS], int *count)
{
    char text[8 * MOST_LAYERS];
    ATT_TRY(att_request_text(request, "queries", text, sizeof text));
    *count = 0;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        int64_t number;
        bool more = at[length] == ',';
        at[length] = '\0';
        if (*count == MOST_LAYERS || !att_text_to_i64(at, &number) || number < 0 || number > INT32_MAX)
            return att_fail(request->context, ATT_ERR_ARGUMENT,
                            "queries must be whole numbers separated by commas, one for each attention layer");
        queries[(*count)++] = (int)number;
        at += length + more;
    }
    return ATT_OK;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* Answers with the object whose members write() writes. */
static att_status answer_json(const att_request *request, att_response *response,
                              att_status (*write)(const att_request *request, att_json_writer *writer))
{
    att_json_writer *writer = NULL;
    ATT_TRY(att_json_writer_create(request->context, false, &writer));
    att_json_begin_object(writer);
    att_status status = write(request, writer);
    att_json_end_object(writer);
    if (status == ATT_OK)
        status = att_response_json(response, writer);
    att_json_writer_destroy(&writer);
    return status;
}

/* name: by which links call the model; of a run: its folder's. */
static att_status write_listed(const att_request *request, const char *name, const char *path, att_json_writer *writer)
{
    char shown[ATT_RUN_PATH], network[ATT_ENGINE_NETWORK];
    const bool random = is_random(path);
    ATT_TRY(att_engine_find_network(request->state, request->context, path, network));
    snprintf(shown, sizeof shown, "%s%s", name, random ? " (random weights)" : "");
    att_json_begin_object(writer);
    att_json_put_string(writer, "id", name);
    att_json_put_string(writer, "name", shown);
    att_json_put_string(writer, "path", random ? NULL : path);
    att_json_put_string(writer, "network", *network ? network : NULL);
    att_json_end_object(writer);
    return ATT_OK;
}

/* Runs without a checkpoint are left out. */
static att_status write_models(const att_request *request, att_json_writer *writer)
{
    char folder[ATT_RUN_PATH], file[ATT_RUN_PATH];
    int runs;
    ATT_TRY(att_site_count_runs(request->site, request->context, &runs));
    att_json_put_array(writer, "models");
    for (int i = 0; i < att_site_model_count(request->site); i++) {
        const att_site_model model = att_site_model_at(request->site, i);
        ATT_TRY(write_listed(request, model.name, model.path, writer));
    }
    for (int i = 0; i < runs; i++) {
        ATT_TRY(att_site_run(request->site, request->context, i, folder));
        if (att_network_find_file(request->context, folder, file, sizeof file) == ATT_OK && *file)
            ATT_TRY(write_listed(request, att_site_run_name(request->site, i), folder, writer));
    }
    att_json_end_array(writer);
    return ATT_OK;
}

static att_status write_model(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH];
    ATT_TRY(read_model(request, path));
    return att_engine_write_model(request->state, request->context, path, writer);
}

static att_status write_images(const att_request *request, att_json_writer *writer)
{
    int64_t first, count;
    ATT_TRY(att_request_integer(request, "first", 0, INT64_MAX / 2, &first));
    ATT_TRY(att_request_integer(request, "count", 1, 1024, &count));
    return att_engine_write_images(request->state, request->context, first, count, writer);
}

static att_status write_upload(const att_request *request, att_json_writer *writer)
{
    char id[ATT_ENGINE_ID], name[ATT_ENGINE_NAME];
    ATT_TRY(att_request_text(request, "name", name, sizeof name));
    const att_status status =
        att_engine_upload(request->state, request->context, name, request->body, request->body_size, id);
    if (status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED)
        return ATT_ERR_ARGUMENT; /* with the message: the file is the client's */
    ATT_TRY(status);
    att_json_put_string(writer, ATT_ANSWER_IMAGE, id);
    return ATT_OK;
}

static att_status write_run(const att_request *request, att_json_writer *writer)
{
    asked texts;
    att_engine_view view;
    ATT_TRY(read_view(request, &texts, &view));
    return att_engine_write_answer(request->state, request->context, &view, writer);
}

static att_status write_relevance(const att_request *request, att_json_writer *writer)
{
    char method[256];
    asked texts;
    att_engine_view view;
    int64_t target;
    ATT_TRY(read_view(request, &texts, &view));
    ATT_TRY(att_request_text(request, "method", method, sizeof method));
    ATT_TRY(att_request_integer(request, "class", -1, INT32_MAX, &target));
    return att_engine_write_relevance(request->state, request->context, &view, method, (int)target, writer);
}

static att_status write_graph(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH];
    ATT_TRY(read_model(request, path));
    return att_engine_write_graph(request->state, request->context, path, writer);
}

static att_status write_times(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH];
    ATT_TRY(read_model(request, path));
    return att_engine_write_times(request->state, request->context, path, writer);
}

static att_status write_figures(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH], image[ATT_ENGINE_INPUT], with[256];
    ATT_TRY(read_model(request, path));
    ATT_TRY(att_request_text(request, "image", image, sizeof image));
    ATT_TRY(att_request_text(request, "with", with, sizeof with));
    const att_engine_view view = {path, image, ""};
    return att_engine_write_figures(request->state, request->context, &view, with, writer);
}

static att_status read_tensor(const att_request *request, char path[static ATT_RUN_PATH],
                              char name[static ATT_ENGINE_NAME])
{
    ATT_TRY(read_model(request, path));
    return att_request_text(request, "name", name, ATT_ENGINE_NAME);
}

static att_status write_tensor(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH], name[ATT_ENGINE_NAME];
    ATT_TRY(read_tensor(request, path, name));
    return att_engine_write_tensor(request->state, request->context, path, name, writer);
}

static att_status write_nearest(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH], image[ATT_ENGINE_ID];
    int64_t count;
    ATT_TRY(read_model(request, path));
    ATT_TRY(att_request_text(request, "image", image, sizeof image));
    ATT_TRY(att_request_integer(request, "count", 1, 64, &count));
    return att_engine_write_nearest(request->state, request->context, path, image, (int)count, writer);
}

/* Reads heads=LIST, branches=LIST, tokens=LIST, uniform=0|1, greedy=0|1, bound=PERCENT and images=N. */
static att_status read_cuts(const att_request *request, char path[static ATT_RUN_PATH], att_engine_cuts *cuts)
{
    char bound[32];
    int64_t uniform, greedy;
    ATT_TRY(read_model(request, path));
    ATT_TRY(att_request_text(request, "heads", cuts->heads, sizeof cuts->heads));
    ATT_TRY(att_request_text(request, "branches", cuts->branches, sizeof cuts->branches));
    ATT_TRY(att_request_text(request, "tokens", cuts->tokens, sizeof cuts->tokens));
    ATT_TRY(att_request_integer(request, "uniform", 0, 1, &uniform));
    ATT_TRY(att_request_integer(request, "greedy", 0, 1, &greedy));
    ATT_TRY(att_request_text(request, "bound", bound, sizeof bound));
    cuts->uniform = uniform;
    cuts->greedy = greedy;
    if (!att_text_to_f64(bound, &cuts->bound))
        return att_fail(request->context, ATT_ERR_ARGUMENT, "bound is \"%s\"; expected a number, in per cent", bound);
    return att_request_integer(request, "images", 1, MOST_IMAGES, &cuts->images);
}

static att_status write_ablation(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH];
    att_engine_cuts cuts;
    ATT_TRY(read_cuts(request, path, &cuts));
    return att_engine_write_ablation(request->state, request->context, path, &cuts, writer);
}

static att_status write_means(const att_request *request, att_json_writer *writer)
{
    static const char *const kinds[] = {"all", "class", NULL};
    char path[ATT_RUN_PATH], show[ATT_ENGINE_LIST];
    att_engine_means how = {.show = show};
    int kind;
    ATT_TRY(read_model(request, path));
    ATT_TRY(att_request_text(request, "show", show, sizeof show));
    ATT_TRY(read_word(request, "over", kinds, &kind));
    ATT_TRY(att_request_integer(request, "images", 1, MOST_IMAGES, &how.images));
    how.by_class = kind == 1;
    return att_engine_write_means(request->state, request->context, path, &how, writer);
}

static att_status write_changed(const att_request *request, att_json_writer *writer)
{
    char path[ATT_RUN_PATH];
    att_engine_cuts cuts;
    int64_t part;
    ATT_TRY(read_cuts(request, path, &cuts));
    ATT_TRY(att_request_integer(request, "part", 0, INT32_MAX, &part));
    return att_engine_write_changed(request->state, request->context, path, &cuts, (int)part, writer);
}

/* Handlers of routes that answer with the members that a function above writes. */
#define ANSWERS(handler, write)                                                   \
    static att_status handler(const att_request *request, att_response *response) \
    {                                                                             \
        return answer_json(request, response, write);                             \
    }
ANSWERS(get_models, write_models)
ANSWERS(get_model, write_model)
ANSWERS(get_images, write_images)
ANSWERS(post_upload, write_upload)
ANSWERS(get_run, write_run)
ANSWERS(get_relevance, write_relevance)
ANSWERS(get_graph, write_graph)
ANSWERS(get_times, write_times)
ANSWERS(get_figures, write_figures)
ANSWERS(get_ablation, write_ablation)
ANSWERS(get_changed, write_changed)
ANSWERS(get_tensor, write_tensor)
ANSWERS(get_nearest, write_nearest)
ANSWERS(get_means, write_means)
#undef ANSWERS

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static att_status get_thumbnail(const att_request *request, att_response *response)
{
    char image[ATT_ENGINE_ID];
    ATT_TRY(att_request_text(request, "image", image, sizeof image));
    response->type = "image/png";
    return att_engine_thumbnail(request->state, request->context, image, &response->body);
}

static att_status get_input(const att_request *request, att_response *response)
{
    asked texts;
    att_engine_view view;
    ATT_TRY(read_view(request, &texts, &view));
    response->type = "application/octet-stream";
    return att_engine_input(request->state, request->context, &view, &response->body);
}

static att_status get_classes(const att_request *request, att_response *response)
{
    asked texts;
    att_engine_view view;
    ATT_TRY(read_view(request, &texts, &view));
    response->type = "application/octet-stream";
    return att_engine_classes(request->state, request->context, &view, &response->body);
}

static att_status get_logits(const att_request *request, att_response *response)
{
    asked texts;
    att_engine_view view;
    int64_t row, column;
    ATT_TRY(read_view(request, &texts, &view));
    ATT_TRY(att_request_integer(request, "row", 0, INT32_MAX, &row));
    ATT_TRY(att_request_integer(request, "column", 0, INT32_MAX, &column));
    response->type = "application/octet-stream";
    return att_engine_logits(request->state, request->context, &view, (int)row, (int)column, &response->body);
}

static att_status get_values(const att_request *request, att_response *response)
{
    char path[ATT_RUN_PATH], name[ATT_ENGINE_NAME];
    int64_t first, count;
    ATT_TRY(read_tensor(request, path, name));
    ATT_TRY(att_request_integer(request, "first", 0, INT32_MAX, &first));
    ATT_TRY(att_request_integer(request, "count", 1, 256, &count));
    response->type = "application/octet-stream";
    return att_engine_values(request->state, request->context, path, name, first, count, &response->body);
}

static att_status get_weights(const att_request *request, att_response *response)
{
    static const char *const ways[] = {"row", "mean", "rollout", NULL}, *const terms[] = {"both", "content",
                                                                                          "positions", NULL};
    asked texts;
    att_engine_view view;
    int way, term, count, queries[MOST_LAYERS];
    int64_t scores;
    ATT_TRY(read_view(request, &texts, &view));
    ATT_TRY(read_word(request, "way", ways, &way));
    ATT_TRY(read_word(request, "terms", terms, &term));
    ATT_TRY(att_request_integer(request, "scores", 0, 1, &scores));
    ATT_TRY(read_queries(request, queries, &count));
    const att_row_options options = {.content = term != 2, .positions = term != 1, .scores = scores};
    response->type = "application/octet-stream";
    return att_engine_weights(request->state, request->context, &view, (att_engine_way)way, queries, count, &options,
                              &response->body);
}

/* --- the pages ---------------------------------------------------------------------------------------------------- */

static att_status get_explore(const att_request *request, att_response *response)
{
    return att_response_empty_page(request, &att_page_explore, response);
}

static att_status get_ablate(const att_request *request, att_response *response)
{
    return att_response_empty_page(request, &att_page_ablate, response);
}

static att_status get_mean_maps(const att_request *request, att_response *response)
{
    return att_response_empty_page(request, &att_page_means, response);
}

static att_status get_network(const att_request *request, att_response *response)
{
    return att_response_empty_page(request, &att_page_network, response);
}

static att_status get_lessons(const att_request *request, att_response *response)
{
    return att_response_empty_page(request, &att_page_lessons, response);
}

static const att_route routes[] = {
    {"/explore", ATT_GET, get_explore},         {"/network", ATT_GET, get_network},
    {"/ablate", ATT_GET, get_ablate},           {"/api/ablation", ATT_GET, get_ablation},
    {"/api/changed", ATT_GET, get_changed},     {"/lessons", ATT_GET, get_lessons},
    {"/api/models", ATT_GET, get_models},       {"/api/model", ATT_GET, get_model},
    {"/api/images", ATT_GET, get_images},       {"/api/upload", ATT_POST, post_upload},
    {"/api/thumbnail", ATT_GET, get_thumbnail}, {"/api/run", ATT_GET, get_run},
    {"/api/input", ATT_GET, get_input},         {"/api/weights", ATT_GET, get_weights},
    {"/api/graph", ATT_GET, get_graph},         {"/api/times", ATT_GET, get_times},
    {"/api/figures", ATT_GET, get_figures},     {"/api/classes", ATT_GET, get_classes},
    {"/means", ATT_GET, get_mean_maps},         {"/api/means", ATT_GET, get_means},
    {"/api/logits", ATT_GET, get_logits},       {"/api/relevance", ATT_GET, get_relevance},
    {"/api/tensor", ATT_GET, get_tensor},       {"/api/values", ATT_GET, get_values},
    {"/api/nearest", ATT_GET, get_nearest},
};

const att_route_group att_routes_explore = {routes, sizeof routes / sizeof *routes, open_explore, close_explore};
