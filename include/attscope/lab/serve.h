/* attscope/lab/serve.h - a local web server that shows runs while they train, and their reports.
 *
 *     att_serve_options options = att_serve_options_defaults();
 *     options.paths = (const char *const[]){"output/train"};
 *     options.path_count = 1;
 *     att_server *server = NULL;
 *     if (att_server_start(context, &options, &server) == ATT_OK) {
 *         puts(att_server_url(server));
 *         ... wait ...
 *         att_server_close(&server);
 *     }
 *
 * The server is for the person who started it. It listens on 127.0.0.1 only. Every request needs the token, 256 random
 * bits that are part of att_server_url(): a browser that opens this URL receives a cookie and is sent to the page
 * without the token; programs send the header "Authorization: token <token>". Requests under a host name that is not
 * allowed are refused (protection against DNS rebinding), as are requests that pages of other sites make, and pages
 * that show ours in a frame, unless `framed` is set. The server writes nothing, and reads only what `paths`,
 * `images`, `texts` and `tokenizer` name. All requests together have 1 GiB of memory; one that needs more is answered
 * with status 503.
 *
 * Pages and their data:
 *
 *   GET /                   the page that lists runs and models
 *   GET /report?run=NAME    the page of att_report_write(); run may be given several times, as below
 *   GET /live?run=NAME      charts of the runs that grow while these train
 *   GET /explore, /ablate, /means, /network, /lessons
 *                           pages about checkpoints
 *   GET /api/runs           JSON: {attscope, runs: [...], models: [...]}. A run has run (its name), state, model,
 *                           started (seconds since 1970: the file's time less the seconds from the start or the
 *                           continuation of the training to its last record), epochs (finished; with --eval-every
 *                           with the part of the last one), epochs_wanted, step, seconds,
 *                           best {metric, unit, value}, settings (the recorded options in which the listed runs
 *                           differ), trained, measured, checkpoint (whether it has such), problem (a sentence, if its
 *                           records are damaged). What is not known is null. state: "running" (a
 *                           process of this machine is writing the records), "finished", "stopped", "failed",
 *                           "unfinished" (no end is recorded, and no process of this machine is writing), "measured"
 *                           (no training). A model has a name
 *   GET /api/events?run=NAME
 *                           server-sent events that follow each run's metrics.jsonl, from its beginning:
 *                             restart   {run}: no earlier event of the run counts: sent first, and again if the file
 *                                       was replaced or cut
 *                             record    {run, record: a line of metrics.jsonl, images_per_second, seconds_left,
 *                                       updates}. seconds_left: until the end of the training at the mean speed of this
 *                                       process, evaluations included; updates: of the whole training run
 *                             problem   {run, error: a sentence}: the file is damaged, and no more records of the run
 *                                       follow; the stream ends after the last run
 *                           At most 32 runs. A comment is sent after 15 s without an event.
 *
 * Names. A run or a model is called by the shortest end of its path, of whole components, that differs from those of
 * the others: "last.safetensors", or "a/last.safetensors" if there is "b/last.safetensors".
 *
 * Checkpoints. A model is a checkpoint or name in `paths`, or a run, which stands for its best checkpoint. An image is
 * "d<number>", one of `images`, or "u<number>", an upload. A network for texts takes a text where others take an image:
 * "t<number>", one of `texts`, or "text:" and the text itself, of at most 4,090 bytes. Changes of a network are words
 * joined by dashes: "h3.1r" (head 1 of attention layer 3 removed), "h3.1u" (made uniform), "b5" (residual branch 5
 * removed), "t17" (token 17 removed); empty: none. See attscope/explore.h for their meaning.
 *
 *   GET /api/models         JSON: {models: [{id, name, path, network}]}; id: what `model` takes below; name: for
 *                           people; path: null for random weights; network: null if it cannot be found
 *
 *   GET /api/model?model=   JSON: {network, reads ("images" or "texts"), prefix, branches: [{scope, content}], layers:
 * [{node, heads, queries, tokens, prefix, grid_h, grid_w, window_h, window_w, shift_h, shift_w, content, positions}],
 * tokens, classes, drawn: [{label, colour}] or null, relevance: [{name, title, summary, source}], instruments: [{name,
 * title, reason}]}; prefix: names of the tokens before the patches; drawn: name and colour of each class, if
 * predictions can be drawn; reason: why the instrument has nothing to measure in this network, else null
 *
 *   GET /api/images?first=&count=
 *                           JSON: {images: [{id, name}], count, uploads: [{id, name}], texts: [{id, name}],
 *                           text_count}; the name of a text is its beginning
 *
 *   POST /api/upload?name=  the body is a JPEG, PNG or WebP file, name (at most 1023 bytes) that of the file for lists
 *                           and messages; JSON: {image}
 *
 *   GET /api/thumbnail?image=
 *                           a PNG
 *
 *   GET /api/run?model=&image=&changes=
 *                           JSON: {input: [height, width, channels], photograph: [height, width], map, milliseconds,
 *                           layers, tokens, and the prediction with all logits}. map: six numbers, by rows, of the
 *                           affine map from points of the image to those of the input; boxes are in pixels of the
 *                           image. The input of a detector, and so the grids of its layers, depend on the image.
 *                           Of a text, instead of input, photograph and map: text: {pieces: [{piece, special}],
 *                           shortened}, with a piece for each token; shortened: to so many tokens, 0: not. Of a network
 *                           without classes: vector: {name, width, distance}; distance: 1 less the cosine of the angle
 *                           between the network's vector and that of the unchanged network
 *
 *   GET /api/input?model=&image=&changes=
 *                           the network's input, one byte per number; of images only
 *
 *   GET /api/classes?model=&image=&changes=
 *                           for tasks that give each pixel a class: the class of each pixel of the network's input, in
 *                           U16 of this machine, 65535 for none
 *
 *   GET /api/logits?model=&image=&changes=&row=&column=
 *                           for tasks that give each pixel a class: the logits of each class at a pixel of the
 *                           network's input (row and column from 0), in F32 of this machine
 *
 *   GET /api/weights?model=&image=&changes=&way=&queries=&terms=&scores=
 *                           numbers in F32 of this machine, [heads, tokens] for each layer, NaN for a key that is not
 *                           seen. way: row, mean (over queries) or rollout ([tokens] for each layer); queries: one
 *                           number per layer, separated by commas; terms: both, content or positions; scores: 1 for
 *                           scores, 0 for their softmax
 *
 *   GET /api/relevance?model=&image=&changes=&method=&class=
 *                           JSON: {method, class, logit, height, width, values}: att_relevance_run(); class: -1: the
 *                           most probable one
 *
 *   GET /api/nearest?model=&image=&count=
 *                           compares some more of the server's images with an image by the network's features, and
 *                           answers with JSON: {total, count, images, nearest: [{id, name, similarity}]}: `total` are
 *                           to be compared, of all `count`; ask again until `images` is `total`. similarity: cosine;
 *                           at most as many as the parameter `count` says (1 to 64), the most similar first
 *
 *   GET /api/graph?model=   JSON: {nodes: [{id, op, scope, in, shape, parameters, macs, tensors: [{name, shape}]}]}
 *   GET /api/times?model=   JSON: {runs, times: [{scope, op, kernel, seconds}]}; seconds: medians over the runs
 *   GET /api/tensor?model=&name=
 *                           JSON: {name, shape, count, zeros, nonfinite, min, max, mean, deviation, norm, histogram:
 *                           {from, to, counts}}, of the values of a parameter or buffer
 *   GET /api/values?model=&name=&first=&count=
 *                           the values of `count` (1 to 256) entries of its first dimension, in F32 of this machine
 *   GET /api/figures?model=&image=&with=
 *                           JSON: {figures: [{instrument, node, head, statistic, mean, unit}], instruments}
 *   GET /api/ablation?model=&heads=&branches=&tokens=&uniform=&greedy=&bound=&images=
 *                           runs some more images of an ablation (attscope/lab/ablation.h) of `images` images, and
 *                           answers with JSON: {total, seen, done, images, ...} of those so far, as
 *                           att_ablation_write_json(); ask again until `done`. seen: images of this pass, of which a
 *                           greedy ablation has one for each step. heads, branches, tokens: lists as in
 *                           att_ablation_options, empty: none; uniform=1: heads are made uniform, 0: removed; greedy=1:
 *                           one part after another for good, down to `bound` per cent; 0: each alone
 *   GET /api/means?model=&show=&over=&images=
 *                           adds some more of `images` images to mean maps, and answers with JSON: {total, seen,
 *                           means: [{class, label, images, maps: [{name, height, width, values}]}]}; ask again until
 *                           `seen` is `total`. show: as in att_map_options; over=all: of all layers and heads over all
 *                           images; over=class: of the last layer, for each class
 *   GET /api/changed?model=&heads=&branches=&tokens=&uniform=&greedy=&bound=&images=&part=
 *                           the images that change most without a part, JSON: {name, changes, images: [{id, name,
 *                           class, label, unchanged: {loss, p_class, right}, changed}]}; changes: those of the part;
 *                           id: null if it cannot be chosen
 */
#ifndef ATTSCOPE_LAB_SERVE_H
#define ATTSCOPE_LAB_SERVE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATT_SERVE_PORT = 8765 };

typedef struct att_serve_options {
    /* Folders of runs, folders that contain folders of runs, and checkpoints (files, or folders with model.safetensors
     * or pytorch_model.bin), also as "NETWORK=PATH" with the name of a network that the file does not say; names of
     * pretrained weights (attscope/hub.h), which are downloaded if they are in no cache; names of networks
     * (att_model_resolve()), with random weights, if no file has the name. In a folder of runs, also those that start
     * later are shown. */
    const char *const *paths;
    int path_count;
    const char *images; /* folder or archive of images to show models; NULL: none */
    const char *texts;  /* file of texts, one a line (att_text_file_read()), to show networks for texts; NULL: none */
    const char *tokenizer; /* of these networks, as for att_network_tokenize(); NULL: those beside the checkpoints */
    const char *network;   /* name of the network of all checkpoints that do not name theirs; NULL: none */
    const char *labels;    /* att_network_name_classes() of networks with as many classes; NULL: the checkpoints' own */
    int port;              /* 0: ATT_SERVE_PORT or, if that is in use, the next free port of the hundred after it */
    /* Names under which the server may be addressed besides localhost, 127.0.0.1 and [::1], without a port. */
    const char *const *hosts;
    int host_count;
    bool framed; /* pages of other ports of localhost or 127.0.0.1, such as a notebook's, may show the pages in a frame
                  */
} att_serve_options;
/* No paths, no images, no texts, port 0, no hosts, no frames. */
ATT_API att_serve_options att_serve_options_defaults(void);

typedef struct att_server att_server;

/* Starts a server, whose threads answer requests until att_server_close(). options: copied; NULL means the defaults. On
 * success the caller owns *server. The context must outlive the server, whose threads allocate from it; its messages
 * stay the caller's. Opens all checkpoints in `paths` once, with a warning in the log for each that cannot be opened;
 * its pages show the same sentence until its file is replaced. Another warning names folders without runs. Random
 * weights are drawn when a page needs them. Errors: ERR_NOT_FOUND (a path does not exist; a
 * name of a network is unknown); ERR_ARGUMENT (one path for two networks); those of att_network_open()
 * for the last checkpoint, if none can be opened and `paths` has nothing else; ERR_ARGUMENT (a port outside 0..65535; a
 * host name with other characters than letters, digits, dots, dashes, colons and brackets; NULL for a path); ERR_IO
 * (the port is in use; the system refuses); ERR_UNSUPPORTED (a library built without libmicrohttpd, -DATT_SERVE=OFF, or
 * without pages, -DATT_REPORT=OFF); ERR_STOPPED (att_settings.stop, while checkpoints are opened); ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_server_start(att_context *context, const att_serve_options *options,
                                                   att_server **server);
/* The URL with the port and the token, which is a secret. It lives as long as the server. */
ATT_API const char *att_server_url(const att_server *server);
/* Ends open event streams, waits for the handlers in progress, frees the server and sets *server to NULL. NULL and a
 * pointer to NULL are allowed. */
ATT_API void att_server_close(att_server **server);

#ifdef __cplusplus
}
#endif
#endif
