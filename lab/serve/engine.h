/* serve/engine.h - the networks, images and texts of the pages that explore attention.
 *
 * An engine has a context of its own. Networks are opened when they are first asked for; the last ATT_ENGINE_NETWORKS
 * stay open. Each keeps its last two runs, so that a hovering pointer costs one row per layer and head. A detector is
 * compiled for the size that its transform gives an image, as by att_network_run_images(). Thread-safe:
 * requests are answered one at a time. Messages of failures go to the context of the request. Its requests to stop end
 * an answer with ERR_STOPPED: while it waits for others, while a checkpoint is read, between two operations of a run,
 * between the queries of a sum and between the runs that times are medians of.
 *
 * An image has an identifier: "d7" is number 7 of the folder of images, "u2" the third upload. So has a text, for
 * networks whose inputs are tokens: "t7" is number 7 of the file of texts, "text:A cat." is the text "A cat.". Where a
 * function below takes an image, it takes a text, too, unless it says that it does not.
 *
 * Changes of a network are words joined by dashes: "h3.1r" removes head 1 of layer 3, "h3.1u" makes it uniform, "b5"
 * removes residual branch 5, "t17" token 17. "" changes nothing.
 */
#ifndef ATT_SERVE_ENGINE_H
#define ATT_SERVE_ENGINE_H

#include <attscope/lab/json.h>
#include <attscope/relevance.h>

#include "base/core/text.h"

typedef struct att_engine att_engine;

enum {
    ATT_ENGINE_ID = 24,
    ATT_ENGINE_INPUT = 4096, /* of an identifier, which may be a text itself */
    ATT_ENGINE_NAME = 1024,
    ATT_ENGINE_NETWORK = 64, /* of a network's name */
    ATT_ENGINE_CHANGES = 2048,
    ATT_ENGINE_LIST = 1024,
    ATT_ENGINE_UPLOADS = 16,
    ATT_ENGINE_NETWORKS = 4
};
/* The most bytes of pixels that all uploads have together. */
#define ATT_ENGINE_UPLOAD_BYTES ((size_t)256 << 20)

typedef struct att_engine_options {
    const char *images;    /* a folder, an archive or an image file; NULL: none */
    const char *texts;     /* a file as for att_text_file_read(); NULL: none */
    const char *tokenizer; /* as for att_network_tokenize() */
    const char *network;   /* name of the network of checkpoints that do not name theirs; NULL: such are refused */
    const char *labels;    /* att_network_name_classes() of the networks that have as many classes; NULL: none */
} att_engine_options;

/* The strings of the options are copied. On success the caller owns *engine; `context` must outlive it. Errors, for
 * `context`: those of opening the images and of att_text_file_read(), ERR_MEMORY. */
att_status att_engine_create(att_context *context, const att_engine_options *options, att_engine **engine);
void att_engine_destroy(att_engine **engine);

/* Writes the members "images", of {id, name}, from number `first` on, `count` at most, "count", of all, "uploads", the
 * newest first, and "texts" and "text_count", as "images" and "count"; the name of a text is its beginning. */
att_status att_engine_write_images(att_engine *engine, att_context *context, int64_t first, int64_t count,
                                   att_json_writer *writer);
/* Decodes and keeps an image. Uploads are decoded one at a time; the others wait. The oldest uploads are forgotten, so
 * that ATT_ENGINE_UPLOADS and ATT_ENGINE_UPLOAD_BYTES hold. name: of its file, for lists and messages, of which
 * ATT_ENGINE_NAME - 1 bytes are kept. id: of the image. Errors: those of att_image_decode(). */
att_status att_engine_upload(att_engine *engine, att_context *context, const char *name, const void *bytes, size_t size,
                             char id[static ATT_ENGINE_ID]);
/* Appends a PNG of at most 96 x 96 pixels. Errors: ERR_NOT_FOUND, those of att_dataset_read(). */
att_status att_engine_thumbnail(att_engine *engine, att_context *context, const char *image, att_text *out);

/* Sets the network of one checkpoint, which overrides what its file says. The texts are copied; network NULL: none.
 * Error: ERR_MEMORY. */
att_status att_engine_name_network(att_engine *engine, att_context *context, const char *path, const char *network);
/* Writes the name of a checkpoint's network, from its file's header unless it is known already; "": it cannot be found.
 * Error: ERR_STOPPED. */
att_status att_engine_find_network(att_engine *engine, att_context *context, const char *path,
                                   char network[static ATT_ENGINE_NETWORK]);
/* Opens a checkpoint, unless it is open. Errors: those of att_network_open() and att_explorer_create(). */
att_status att_engine_open(att_engine *engine, att_context *context, const char *path);

/* Writes what the network has: "network" (its name), "reads" ("images" or "texts"), "prefix" (names of the tokens
 * before the patches: "class token", "distillation token", "register 0"), "branches" (of {scope, content}), "layers"
 * (att_explorer_layer) and "tokens" (how many can be removed), both for the size of an image or a text that was seen,
 * "classes", "drawn" (of {label, colour} for each class; null if predictions of the task cannot be drawn), "relevance",
 * of {name, title, summary, source} for the methods of att_relevance_run(), none if it does not apply, and
 * "instruments", of {name, title, reason}, for att_engine_write_figures(): those that need no classes and are quick
 * enough for a page. reason: a sentence that says why the instrument has nothing to measure in this network; null if it
 * has. path: of the checkpoint. Errors: those of att_network_open(), att_explorer_create() and att_measure_create(). */
att_status att_engine_write_model(att_engine *engine, att_context *context, const char *path, att_json_writer *writer);

/* What a request asks about: a checkpoint, an image, changes. */
typedef struct att_engine_view {
    const char *path, *image, *changes;
} att_engine_view;

/* The functions below run the network unless one of its last two runs was of the same view. Errors: ERR_NOT_FOUND
 * (image), ERR_ARGUMENT (changes), those of opening, decoding and running. */

/* Writes the members of att_network_write() with all logits, places in pixels of the image; "input" [height, width,
 * channels], "photograph" [height, width], and "map", the six numbers of the map from points of the image to those of
 * the input (att_geometry), by rows; "milliseconds", how long the run took; "layers" and "tokens" for this image. Of a
 * text, "text" in place of input, photograph and map: {pieces: [{piece, special}], one for each token, shortened (to
 * how many tokens; 0: it is whole)}. Of a network without classes, "vector": {name ("features", of a text "mean"),
 * width, distance: 1 less the cosine of the angle to the vector of the unchanged network}. */
att_status att_engine_write_answer(att_engine *engine, att_context *context, const att_engine_view *view,
                                   att_json_writer *writer);
/* Appends the network's input [height, width, channels], with the normalisation undone, one byte for each number.
 * Errors: also ERR_UNSUPPORTED of a text. */
att_status att_engine_input(att_engine *engine, att_context *context, const att_engine_view *view, att_text *out);

/* Appends the class of each pixel of the network's input [height, width], in U16 of this machine; ATT_MASK_NONE: none.
 * Errors: also ERR_UNSUPPORTED if the task gives pixels no class. */
att_status att_engine_classes(att_engine *engine, att_context *context, const att_engine_view *view, att_text *out);

/* Appends the logits of each class at a pixel of the network's input, in F32 of this machine: [classes]. Errors: also
 * ERR_ARGUMENT (no such pixel), ERR_UNSUPPORTED if the task gives pixels no class. */
att_status att_engine_logits(att_engine *engine, att_context *context, const att_engine_view *view, int row, int column,
                             att_text *out);

/* How the weights of the keys are found. */
typedef enum att_engine_way {
    ATT_ENGINE_ROW,    /* of the query */
    ATT_ENGINE_MEAN,   /* means over all queries */
    ATT_ENGINE_ROLLOUT /* from the query through all layers below, att_explorer_rollout() */
} att_engine_way;

/* Appends, in F32 of this machine, the weights of the keys for each layer, in order: [H, N], or [N] for ROLLOUT. NaN:
 * not seen. queries: one for each of the network's layers, ignored for MEAN. options: for ROW. Errors: ERR_ARGUMENT
 * also if `query_count` is not the number of layers, or a query does not exist; ERR_UNSUPPORTED for a rollout that does
 * not exist. */
att_status att_engine_weights(att_engine *engine, att_context *context, const att_engine_view *view, att_engine_way way,
                              const int *queries, int query_count, const att_row_options *options, att_text *out);

/* --- similar images --- */

/* Images only. Computes the features (att_network_select_outputs()) of a few further images of the server, and writes
 * "total" (the images that are compared: all, or ATT_ENGINE_COMPARED evenly spaced ones), "count" (of the server's),
 * "images" (those compared so far), and "nearest", the `most` of these, without the image itself, whose features have
 * the largest cosine similarity to those of the view's image: {id, name, similarity}. Each open network keeps the
 * features, so calls that ask for the same go on until "images" is "total". Features are those of the unchanged
 * network. Errors: those of att_network_select_outputs(), att_network_run() and att_embedding_nearest(); ERR_NOT_FOUND
 * (no images); ERR_UNSUPPORTED (images whose sizes differ, as a detector's). */
enum { ATT_ENGINE_COMPARED = 2000 };
att_status att_engine_write_nearest(att_engine *engine, att_context *context, const char *path, const char *image,
                                    int most, att_json_writer *writer);

/* --- ablations --- */

/* An ablation of the images that the server was given (attscope/lab/ablation.h). */
typedef struct att_engine_cuts {
    char heads[ATT_ENGINE_LIST], branches[ATT_ENGINE_LIST], tokens[ATT_ENGINE_LIST]; /* as in att_ablation_options; "":
                                                                                        none */
    bool uniform, greedy;
    double bound;
    int64_t images; /* evenly spaced through the images, of the validation split if there are splits; at least 1 */
} att_engine_cuts;

/* Runs a few further images of the ablation, or measures what its parts are correlated with, and writes "total" (the
 * images of the whole ablation), "seen" (those of this pass: a greedy ablation has a pass for each step), "done", and
 * what att_ablation_write_json() writes of the images so far. Each open network keeps its last ablation, so calls that
 * ask for the same go on until it is done. Images have their classes if these are the network's. Errors: those of
 * att_ablate(); ERR_NOT_FOUND (no images). */
att_status att_engine_write_ablation(att_engine *engine, att_context *context, const char *path,
                                     const att_engine_cuts *cuts, att_json_writer *writer);
/* Writes "name" of a part, "changes", the same as the changes of a view, and "images", those so far whose loss changes
 * most without it, 8 at most: {id (null: not among the images that can be chosen), name, class, label, unchanged,
 * changed}, the last two {loss, p_class, right}. Errors: also ERR_ARGUMENT (no such part). */
att_status att_engine_write_changed(att_engine *engine, att_context *context, const char *path,
                                    const att_engine_cuts *cuts, int part, att_json_writer *writer);

/* Mean maps of the images that the server was given (attscope/map_files.h). */
typedef struct att_engine_means {
    const char *show; /* as in att_map_options, at most ATT_ENGINE_LIST - 1 bytes */
    bool by_class;    /* a mean for each class, of the last layer and over its heads; else of all layers and heads */
    int64_t images;   /* as in att_engine_cuts */
} att_engine_means;

/* Adds further images to the means, and writes "total", "seen" (the images so far), and "means", of {class (-1: all
 * images), label, images, maps: [{name, height, width, values}]}. Calls that ask for the same go on until "seen" is
 * "total". Errors: those of att_map_files_open() and att_map_files_add(); ERR_NOT_FOUND (no images); ERR_ARGUMENT (no
 * classes for means of classes). */
att_status att_engine_write_means(att_engine *engine, att_context *context, const char *path,
                                  const att_engine_means *how, att_json_writer *writer);

/* Writes "method", "class", "logit", "height", "width" and "values", the numbers of att_relevance_run(). target: -1:
 * the most probable class. Errors: those of att_relevance_create() and att_relevance_run(). */
att_status att_engine_write_relevance(att_engine *engine, att_context *context, const att_engine_view *view,
                                      const char *method, int target, att_json_writer *writer);

/* --- the network itself --- */

/* Writes "nodes", the operations that the outputs of the task need, in their order: {id, op, scope, in (ids of the
 * operations whose results it reads; -1: the image), shape (of its first result), parameters (their number; one that
 * several operations read counts for the first), macs, tensors (the parameters and buffers that it reads, {name,
 * shape})}. */
att_status att_engine_write_graph(att_engine *engine, att_context *context, const char *path, att_json_writer *writer);
/* Writes "times" of the compiled network on this machine: {scope, op, kernel, seconds}, see att_network_time(), and
 * "runs", of which they are medians. */
att_status att_engine_write_times(att_engine *engine, att_context *context, const char *path, att_json_writer *writer);
/* Writes what is in a parameter or buffer: "name", "shape", "count" (of its numbers), "zeros", "nonfinite", and of the
 * finite ones "min", "max", "mean", "deviation" (of all, not of a sample), "norm" (the root of the sum of the squares)
 * and "histogram", {from, to, counts [ATT_ENGINE_BINS]}, of equal bins from min to max. Errors: ERR_NOT_FOUND (no such
 * tensor). */
enum { ATT_ENGINE_BINS = 48 };
att_status att_engine_write_tensor(att_engine *engine, att_context *context, const char *path, const char *name,
                                   att_json_writer *writer);
/* Appends the numbers of entries first..first+count-1 of a tensor's first dimension, in F32 of this machine; those past
 * the last are left out. Errors: ERR_NOT_FOUND; ERR_ARGUMENT (first). */
att_status att_engine_values(att_engine *engine, att_context *context, const char *path, const char *name,
                             int64_t first, int64_t count, att_text *out);
/* Writes "figures" of the instruments `with` for the image of the view, at the network's own size, without its changes:
 * {instrument, node, head
 * (-1: all), statistic, mean, unit}, and "instruments", their descriptions (att_instrument_write_json()). Errors: those
 * of att_network_observe() and att_network_measure(). */
att_status att_engine_write_figures(att_engine *engine, att_context *context, const att_engine_view *view,
                                    const char *with, att_json_writer *writer);

#endif
