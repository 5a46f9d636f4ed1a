/* attscope/network.h - opens a network in one call and runs it.
 *
 *     att_network *network = NULL;
 *     att_batch answer;
 *     if (att_network_open(context, "deit_tiny_patch16_224.safetensors", NULL, &network) == ATT_OK &&
 *         att_network_run_file(network, "cat.jpg", &answer) == ATT_OK)
 *         ... att_batch_field(&answer, "logits") ...
 *     att_network_close(&network);
 *
 * A network combines objects of the other headers: the identity, the model, the weights, and plans for the shapes of
 * its inputs used last, all over the same weights. A network belongs to one thread at a time.
 */
#ifndef ATTSCOPE_NETWORK_H
#define ATTSCOPE_NETWORK_H

#include <attscope/evaluate.h>
#include <attscope/measure.h>
#include <attscope/models.h>
#include <attscope/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_network att_network;

/* The options are only read during the call. */
typedef struct att_network_options {
    const char *model; /* the network's name; it overrides the name in the file and its side files, and is ignored if a
                          network's name is opened. NULL: the file gives the name */
    const att_option_values *options; /* options of the network; they override those of the file. NULL: none */
    bool averaged;                    /* use the moving average of the file's weights. ERR_NOT_FOUND if there is none */
    bool test_images;    /* for pretrained weights: use the image size and crop with which timm's validate.py evaluates
                            them, unless `options` give img_size */
    uint64_t seed;       /* seed of the weights, if there is no file */
    const char *backend; /* "cpu", "ref", "f64", "cuda"; NULL: "cpu" */
    /* ATT_F32; ATT_F64: weights, activations and probes in double precision, for measurements below the rounding of
     * F32, many times slower. Images and outputs stay in F32. "cpu" then means "f64". */
    att_dtype dtype;
    att_precision precision;
} att_network_options;
/* No name and no options, the weights themselves, seed 42, "cpu", ATT_F32, ATT_FULL. */
ATT_API att_network_options att_network_options_defaults(void);

/* Opens `what`, which can be
 *   a file of weights (attscope/tensors.h); att_model_identify() finds its network;
 *   a folder: the first existing file of model_best.safetensors, last.safetensors, model.safetensors,
 *     model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json, open_clip's files of the hub and
 *     DeepSpeed's (mp_rank_00_model_states.pt) in it is opened, so the folder of a training run gives its best weights;
 *     in a folder of DeepSpeed, the file "latest" names the folder in which to look;
 *   a name of pretrained weights ("timm/...", "hf-hub:...", "torchvision/..."), if no file or folder has this name.
 *     They are looked up in caches and otherwise downloaded: see attscope/hub.h, also for more errors;
 *   a network's name (att_model_resolve()) without such a prefix, if no file or folder has this name. The weights are
 *     then random, drawn from options.seed, and the log reports it: such a name never loads pretrained weights.
 * "WHAT#PART", for the first three, opens the tensors whose names in the file begin with "PART." (attscope/tensors.h).
 * options: NULL means the defaults. On success the caller owns *network and frees it with att_network_close(); the
 * context must outlive it. On failure *network is unchanged. Errors: ERR_NOT_FOUND (none of these); ERR_ARGUMENT
 * (`what` is NULL); errors of att_tensors_open(), att_model_identify(), att_model_create() and att_model_load(). */
ATT_API ATT_MUST_CHECK att_status att_network_open(att_context *context, const char *what,
                                                   const att_network_options *options, att_network **network);
/* Opens a network whose weights are in the caller's memory, such as the state_dict of a live PyTorch model, as
 * att_network_open() opens a safetensors file with these tensors and without metadata or side files. So options->model
 * must name the network, and options->options must give what the tensors do not show, unless it is the named network's
 * (attscope/models.h). Prefixes such as "module." are removed from the names, and tensors that only self-supervised
 * training uses are skipped (attscope/tensors.h).
 *
 * tensors: `count` (at least 1) tensors with their data (`data` is not NULL unless the tensor has no elements);
 * parameters are converted from F32, F16, BF16 or F64. Names and contents are copied: nothing is kept from the caller's
 * memory after the call. On success the caller owns *network and frees it with att_network_close(); the context must
 * outlive it. On failure *network is unchanged. Errors: ERR_ARGUMENT (`tensors` is NULL or empty; a tensor without name
 * or data, of an unknown type or of an impossible shape); ERR_FORMAT (two tensors of one name); ERR_NOT_FOUND
 * (options->averaged, because such tensors have no moving average); errors of att_model_identify(), att_model_create()
 * and att_model_load(). */
ATT_API ATT_MUST_CHECK att_status att_network_open_tensors(att_context *context, const att_safetensors_tensor *tensors,
                                                           int count, const att_network_options *options,
                                                           att_network **network);
ATT_API void att_network_close(att_network **network);
/* Writes the path of the file that att_network_open() would open, or "" for a network's name and after a
 * failure. Pretrained weights are downloaded if they are in no cache. Errors as above; ERR_ARGUMENT if `path` is NULL
 * or too small. */
ATT_API att_status att_network_find_file(att_context *context, const char *what, char *path, size_t size);
/* Makes a network from an existing model and weights, such as a training run's; both must outlive the network. Of the
 * options only backend and precision are used; NULL means the defaults. On success the caller owns *network and frees
 * it with att_network_close(); on failure *network is unchanged. The weights may change between runs: each run uses
 * their present values. Errors: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_network_wrap(const att_model *model, att_weights *weights,
                                                   const att_network_options *options, att_network **network);

/* Properties of the network. The pointers live as long as the network. Writing to the weights (attscope/weights.h)
 * changes the answers of later runs. */
ATT_API const char *att_network_path(const att_network *network); /* path of the weights' file; NULL: no file */
/* The file of the weights. After att_network_open_tensors(): names, types and shapes of these tensors, whose contents
 * cannot be read any more (ERR_ARGUMENT). NULL: neither a file nor tensors. */
ATT_API const att_tensors *att_network_file(const att_network *network);
ATT_API const att_identity *att_network_identity(const att_network *network);
ATT_API const att_model *att_network_model(const att_network *network);
ATT_API att_weights *att_network_weights(const att_network *network);
ATT_API const char *att_network_backend(const att_network *network);
ATT_API att_precision att_network_precision(const att_network *network);
ATT_API bool att_network_is_averaged(const att_network *network); /* the file's moving average is used */

/* Class names live until they are replaced or the network is closed.
 *
 * Returns the name of a class: from the file's training; else from the config.json beside the file (timm's label_names
 * with label_descriptions, or id2label); else from the data set whose classes the network is known to have. A synset is
 * followed by its label: "n01440764 tench". NULL: unknown. */
ATT_API const char *att_network_class_name(const att_network *network, int number);
/* Returns all class names, by number, and their count (count may be NULL); NULL and *count 0 if they are unknown. */
ATT_API const char *const *att_network_class_names(const att_network *network, int *count);
/* Returns the names by which the training called the classes, one per line from class 0: those in the file
 * (att_checkpoint_classes()), else those in the config.json beside it, without its descriptions. Class folders are
 * numbered by them. NULL: neither has names. They live as long as the network. */
ATT_API const char *att_network_trained_names(const att_network *network);
/* Returns the colours of all classes [att_model_classes()][3], red, green and blue: those of the file's training, if
 * its data set had colours; else those of att_class_colours(). They live as long as class names. NULL: no classes. */
ATT_API const uint8_t *att_network_class_colours(const att_network *network);
/* Returns the data set from whose built-in names the class names come ("imagenet-1k"); NULL if they have another
 * source. */
ATT_API const char *att_network_known_classes(const att_network *network);
/* Replaces the class names by those of a data set whose names are built in ("imagenet-1k"; the message of a
 * refusal lists them), or else by the lines of a file, from class 0. Lines "name R G B" give colours, too. After a
 * failure the names are unchanged. Errors: ERR_ARGUMENT if `from` is neither such a data set nor a file; ERR_MISMATCH
 * if the number of names is not the number of classes; ERR_FORMAT; errors of reading the file. */
ATT_API ATT_MUST_CHECK att_status att_network_name_classes(att_network *network, const char *from);

/* Writes the contents of a config.json with which timm's create_model("local-dir:FOLDER") and the transformers library
 * (AutoModel, by its TimmWrapper) open the model.safetensors beside it without arguments: architecture, the arguments
 * of its constructor in which the network differs from it, preprocessing, and class names except those of ImageNet's
 * orders, which these programs know. model: a network made from this one (attscope/convert.h), whose preprocessing and
 * class names are the same; NULL: the network itself. writer: to which nothing was written; its text is of use after
 * ATT_OK only. Errors: ERR_UNSUPPORTED if timm cannot build the network or prepare its images; the message says why.
 * Its names are those of timm 1.0.31. ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_network_write_config(const att_network *network, const att_model *model,
                                                           att_json_writer *writer);
/* Makes the folder if it is missing, and writes model.safetensors (att_checkpoint_export()) and config.json into it.
 * Existing ones are replaced together; after a failure both are unchanged. Errors: as above; ERR_IO; ERR_UNSUPPORTED
 * leaves the folder unchanged. */
ATT_API ATT_MUST_CHECK att_status att_network_export(const att_network *network, const char *folder);

/* Returns the preprocessing with which the weights were trained. If test_images is set, the identity's preprocessing
 * can differ from it. */
ATT_API att_preprocess att_network_trained_preprocess(const att_network *network);
/* Returns the transform from images to the network's input, as att_network_evaluate() uses it.
 * att_network_set_preprocess() changes the preprocessing, except for sides and channels (ERR_MISMATCH). Another
 * crop_pct replaces the identity's test_crop_pct, too. Errors, which leave the preprocessing unchanged: ERR_ARGUMENT if
 * `preprocess` is NULL or a value is outside of its range, such as a std that is not positive or an unknown
 * crop_mode. */
ATT_API att_transform_options att_network_transform(const att_network *network);
ATT_API att_status att_network_set_preprocess(att_network *network, const att_preprocess *preprocess);

/* Sets in which passes photographs are seen by later calls of att_network_evaluate(), att_network_run_images(),
 * att_network_run_files() and att_network_draw(), for networks that give each pixel a class. The latter then run one
 * photograph at a time, and answer with "class_map" [height, width] of the photograph alone, I32, whatever outputs are
 * selected. options: copied; NULL: none, as in a new network, so that photographs are seen once, as
 * att_network_transform() makes them. att_network_set_preprocess() comes first. Errors, which leave the passes
 * unchanged: ERR_UNSUPPORTED (a network of another task), ERR_ARGUMENT (an option out of range). */
ATT_API att_status att_network_set_passes(att_network *network, const att_pass_options *options);

/* Selects the tensors that later runs return. names: a list separated by commas; blanks around a name are ignored.
 * NULL, as in a new network, means the outputs of the network's task ("logits"; "features" without a head). Names:
 *   the outputs of the task;
 *   "features" [C], the input of the classifier;
 *   "tokens" [N, C], the output of the last block. If a network applies the final norm only to the pooled token,
 *     these are the tokens before that norm;
 *   "stage1" .. "stage4" [h, w, C], the outputs of the stages of ResNet and Swin; of other networks those of the last
 *     four blocks, or of the blocks that the task chooses, without class token and registers, before any last norm;
 *   "mean" [C], the mean of "tokens" over the tokens of the grid; of networks with a class token also "class" [C], this
 *     token, and "both" [2 C], the class token and then the mean. Of a text the mean is over all tokens but padding,
 * and the class token is the first token; "blocks.3" [N, C], the output of block 3 of a network without stages, before
 * any last norm; "blocks.3.mean", "blocks.3.class" and "blocks.3.both" of it, as above; for each attention node ('*'
 * and '?' allowed): "blocks.3.attn.map" [H, N, N], the attention weights of all queries; "blocks.3.attn.stats" [H, N,
 * ATT_ATTENTION_STATS]; "blocks.3.attn.summary" [H, ATT_ATTENTION_SUMMARY] (ops.h). Errors: ERR_NOT_FOUND if the
 * network lacks one of the names: nothing changes, and the message lists the names that exist. */
ATT_API ATT_MUST_CHECK att_status att_network_select_outputs(att_network *network, const char *names);

/* Runs the network on inputs->count samples. `inputs` has each input of the network (att_model_input_at()) by name,
 * with its type, the shape of one sample and the data [count, shape]; its other members are not read. An image [height,
 * width, in_chans] is already normalised with mean and std:
 *
 *     const att_field image = {"image", ATT_F32, att_shape_of(height, width, 3)};
 *     const void *const data[] = {pixels};
 *     const att_batch inputs = {.count = 1, .field_count = 1, .fields = &image, .data = data};
 *
 * Networks for texts have the inputs "tokens" [T], ids of the vocabulary, "types" [T] if they have types of tokens, and
 * "count", the number of tokens; what comes after these is padding, which changes no answer. T is any number up to the
 * rows of the network's table of positions.
 *
 * Networks without parameters of fixed size accept images of other sides than their own; position embeddings are
 * resampled as by att_model_load(). Plans for the shapes that were used last are kept, in at most a quarter of the
 * memory that was left when the network was opened. *answers: one tensor for each selected name (att_batch_field()),
 * F32, or I32 if it holds integers; the network owns the data, which is valid until its next run or change. The answer
 * to a sample does not depend on the other samples. Errors: ERR_ARGUMENT for an input that is unknown, missing or of
 * another type or has a number that it cannot have (att_model_input.least), and for a count below 1; ERR_MISMATCH,
 * ERR_UNSUPPORTED or ERR_ARGUMENT for shapes that the network cannot take; ERR_NONFINITE, with *answers set, if the
 * tensors contain NaN or infinity; if an input does, too, the message names it. */
ATT_API att_status att_network_run(att_network *network, const att_batch *inputs, att_batch *answers);
/* The following are for networks whose only input is an image; others return ERR_UNSUPPORTED or ERR_ARGUMENT. */
/* As att_network_run(), for images whose channels are planes, as in PyTorch's tensors: images[i] is [in_chans, height,
 * width]. The context's threads copy them to the layout above. */
ATT_API att_status att_network_run_planes(att_network *network, const float *const *images, int count, int height,
                                          int width, att_batch *answers);
/* As att_network_run(), for decoded images of any size (with the network's channels), and for JPEG, PNG and WebP files.
 * The images are transformed by att_network_transform(). Detectors take images of several sizes
 * (att_network_varies()); those of one call must then become images of one size (ERR_ARGUMENT). */
ATT_API att_status att_network_run_images(att_network *network, const att_image *images, int count, att_batch *answers);
ATT_API att_status att_network_run_files(att_network *network, const char *const *paths, int count, att_batch *answers);
ATT_API att_status att_network_run_file(att_network *network, const char *path, att_batch *answers);

/* As att_image_read(), for an image of the network's: it is turned if att_preprocess.exif_transpose is set, as
 * att_network_run_files() does. If it is not set and EXIF data would turn the image, the log gets a line, once for each
 * network. */
ATT_API ATT_MUST_CHECK att_status att_network_read_image(att_network *network, const char *path, int channels,
                                                         att_image *image);

/* Whether the sides of the network's images depend on the photograph, as those of detectors with the crop modes "keep"
 * and "within" do. */
ATT_API bool att_network_varies(const att_network *network);

/* Measures where the time goes: runs the network on one sample of its own shapes (zeros) once to warm up and `runs`
 * times (at least 1), and calls row() for each operation of the compiled network in the order in which they run. scope,
 * op, kernel: of the node, which may have absorbed others (a linear layer the GELU after it); they live as long as the
 * call. seconds: of the slowest thread, the median over the runs. Errors: those of att_network_run(), ERR_ARGUMENT
 * (runs), ERR_STOPPED (att_settings.stop, between two runs). */
ATT_API att_status att_network_time(att_network *network, int runs,
                                    void (*row)(void *user, const char *scope, const char *op, const char *kernel,
                                                double seconds),
                                    void *user);

/* Writes the prediction for the first image of `answers` as members of the JSON object that is open. Classification
 * writes "top", an array of {"class", "label" if known, "probability"}, the most probable first; with `outputs` also
 * "logits", an array of all logits. Segmentation writes "classes", an array of {"class", "label" if known, "share"}
 * of all classes that occur, the largest share first: the share of the pixels of the network's image that show the
 * photograph, without padding, if `answers` are those of att_network_run_images() or att_network_run_files(), and
 * otherwise of all pixels. Detection writes "boxes", an array of {"image_id" if att_answer_options.image is named by
 * a number, "class", "category_id", "bbox", "score", "label" if known}, the largest score first: left, top, width
 * and height in pixels of the photograph, or of the network's input if nothing tells where it lies. options: NULL
 * means att_answer_options_defaults(). If `options` has no class names, those of the network are used
 * (att_network_class_name()). Errors: ERR_MISMATCH (the selected outputs lack one that the task reads),
 * ERR_UNSUPPORTED (the task does not show predictions in this form; the head gives features of a projection, as
 * CLIP's), ERR_MEMORY, ERR_ARGUMENT (`answers` or `writer`
 * is NULL). */
ATT_API att_status att_network_write(const att_network *network, const att_batch *answers,
                                     const att_answer_options *options, att_json_writer *writer);
/* As att_network_write(), as text for people: calls line(user, text) for each line, without newline. */
ATT_API att_status att_network_describe(const att_network *network, const att_batch *answers,
                                        const att_answer_options *options, void (*line)(void *user, const char *text),
                                        void *user);

/* Draws the prediction for the first image of `answers`, which are those of att_network_run_images() for `photograph`,
 * in the photograph's size. options: as above; without colours, those of the network are used.
 * photograph: of 1 or 3 channels; those of the network do not matter. On success the caller owns *drawing and frees it
 * with att_drawing_free(); on failure *drawing is unchanged. Errors: as above; those of att_transform_geometry(). */
ATT_API ATT_MUST_CHECK att_status att_network_draw(const att_network *network, const att_batch *answers,
                                                   const att_answer_options *options, const att_image *photograph,
                                                   att_drawing *drawing);
/* Whether predictions of the network's task can be drawn. */
ATT_API bool att_network_draws(const att_network *network);

/* Creates instruments for att_network_evaluate() (att_evaluate_options.measure). with, nodes: as in
 * att_measure_create(), NULL included. On success the caller owns *measure, which may outlive the network. A network
 * keeps the probes of the last measure only: after another call of this function, att_network_evaluate() refuses
 * earlier measures, but their figures can still be read. att_network_run() does not use instruments. */
ATT_API ATT_MUST_CHECK att_status att_network_observe(att_network *network, const char *with, const char *nodes,
                                                      att_measure **measure);
/* Runs the network on samples of its own shapes, as att_network_run() takes them, and adds them to the figures of
 * `measure`, which must be the measure of the last att_network_observe() (else ERR_ARGUMENT). labels: their classes,
 * 0..att_model_classes()-1 (else ERR_ARGUMENT, and no image is added). NULL: none; instruments that need them then skip
 * the images, and ERR_ARGUMENT if the list names such an instrument, without '?'. A plan is compiled at each call;
 * att_network_evaluate() suits many images. Errors: those of att_network_run() and of att_measure_observe();
 * ERR_STOPPED (att_settings.stop, between two operations). */
ATT_API att_status att_network_measure(att_network *network, att_measure *measure, const att_batch *inputs,
                                       const int32_t *labels);
/* The model whose graph has the probes of the last att_network_observe(), and which att_network_evaluate() runs with
 * that measure; NULL before. A program may add probes of its own to its graph. It belongs to the network, until the
 * next call of att_network_observe(). */
ATT_API const att_model *att_network_observed(const att_network *network);
/* Opens a data set for this network: one path as by att_dataset_open(), several as by att_dataset_open_images(). Class
 * folders are numbered by the class names of the file's training ("0", "1", ... if attscope's training recorded none)
 * or, if the network is known to be for ImageNet-1k, by its synsets, unless `options` give others. With
 * options.unlabelled, images without classes are accepted if the path has none with classes. The log says what was
 * opened, and whether colours are dropped or missing. On success the caller owns *dataset and frees it by
 * att_dataset_close(); it may outlive the network. On failure *dataset is unchanged. Errors: ERR_ARGUMENT (several
 * paths with a class map; count less than 1), those of the two functions. */
ATT_API ATT_MUST_CHECK att_status att_network_open_dataset(att_network *network, const char *const *paths, int count,
                                                           const att_dataset_options *options, att_dataset **dataset);
/* Checks that what lies at `path` is of the kind that the network reads: of a network without images a file of texts,
 * and else no text. A path of another kind passes, as one where nothing lies; opening it tells what is wrong. The calls
 * that open images check it themselves. Errors: ERR_UNSUPPORTED, with what the network reads, and what lies there. */
ATT_API ATT_MUST_CHECK att_status att_network_check_path(const att_network *network, const char *path);
/* Compares the classes of a data set with the network's. The log says if their numbers differ, names the first class
 * whose name differs, and warns if the file does not tell in which of two usual orders its training numbered the class
 * folders ("9" before "10", or "10" before "9"). refuse: return ERR_MISMATCH if the data set has
 * another number of classes than the network and its numbers come from sorted folder names alone. */
ATT_API att_status att_network_compare_classes(const att_network *network, const att_dataset *dataset, bool refuse);
/* Returns ERR_UNSUPPORTED if the network has no head, or one that gives features of a projection in place of scores of
 * classes (CLIP), or reads no images. consequence: the end of the message, such as
 * "it cannot be evaluated"; NULL: none. */
ATT_API att_status att_network_need_head(const att_network *network, const char *consequence);

/* Evaluates every image of the data set once, with the network's transform. Of the options (NULL: the defaults),
 * backend and precision are replaced by the network's. If task_options is NULL, the task has the options that the
 * file's training recorded. measure: NULL, or the measure of the last att_network_observe(); ERR_ARGUMENT for any
 * other. Several evaluations may share one measure, which accumulates over them until att_measure_clear(). result may
 * be NULL. ERR_NONFINITE, with *result set, if the network answers an image with NaN or infinity; otherwise *result is
 * filled on success only. Other errors: ERR_STOPPED; ERR_ARGUMENT (options that contradict each other or are out of
 * range); ERR_MISMATCH if a target is impossible for the network, such as a class outside of its classes; errors of
 * reading images and real_labels. */
ATT_API att_status att_network_evaluate(att_network *network, const att_dataset *dataset,
                                        const att_evaluate_options *options, att_evaluation *result);

#ifdef __cplusplus
}
#endif
#endif
