/* attscope/network.h - a network that is opened in one call and answers.
 *
 *     att_network *network;
 *     att_batch answer;
 *     if (att_network_open(context, "deit_tiny_patch16_224.safetensors", NULL, &network) == ATT_OK &&
 *         att_network_run_file(network, "cat.jpg", &answer) == ATT_OK)
 *         ... att_batch_field(&answer, "logits") ...
 *     att_network_close(&network);
 *
 * It holds what the other headers make one by one: the identity, the model, the weights, and plans for the sizes of
 * images that it has met, all on the same weights. A network belongs to one thread at a time.
 */
#ifndef ATTSCOPE_NETWORK_H
#define ATTSCOPE_NETWORK_H

#include <attscope/evaluate.h>
#include <attscope/measure.h>
#include <attscope/models.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_network att_network;

/* Only read during the call. */
typedef struct att_network_options {
    const char *model;                /* the network's name, where nothing in or beside the file says it; NULL */
    const att_option_values *options; /* of the network; go before what the file says. NULL: none */
    bool averaged;                    /* take the averaged weights. ERR_NOT_FOUND where there are none */
    bool test_images;    /* pretrained weights: take images of the size and crop with which timm's validate.py evaluates
                            them, where `options` give no img_size */
    uint64_t seed;       /* of the weights, where there is no file */
    const char *backend; /* "cpu", "ref"; NULL: "cpu" */
    att_precision precision;
} att_network_options;
/* Nothing said, the weights themselves, seed 42, "cpu", ATT_FULL. */
ATT_API att_network_options att_network_options_defaults(void);

/* Opens `what`:
 *   a file of weights (attscope/tensors.h), whose network is found as att_model_identify() says;
 *   a folder: of the files model_best.safetensors, last.safetensors, model.safetensors and pytorch_model.bin in it the
 *     first that is there, so that a training's folder gives its best weights;
 *   a network's name, as att_model_resolve() takes it, if no file or folder has this name. The weights are then random,
 *     drawn from options.seed, and the log says so: a name never loads pretrained weights.
 * options: NULL means the defaults. On success *network is the caller's, freed by att_network_close(); the context must
 * outlive it. Errors: ERR_NOT_FOUND (none of these); ERR_ARGUMENT (`what` is NULL); what opening, identifying, building
 * and loading say. */
ATT_API ATT_MUST_CHECK att_status att_network_open(att_context *context, const char *what,
                                                   const att_network_options *options, att_network **network);
ATT_API void att_network_close(att_network **network);
/* Which file that would be: writes its path, or "" for a network's name. Errors as above; ERR_ARGUMENT where the path
 * does not fit. */
ATT_API att_status att_network_locate(att_context *context, const char *what, char *path, size_t size);
/* The same around a model and weights that are there already, such as a training's; both must outlive the network. Of
 * the options backend and precision count. */
ATT_API ATT_MUST_CHECK att_status att_network_wrap(const att_model *model, att_weights *weights,
                                                   const att_network_options *options, att_network **network);

/* All of these live as long as the network. */
ATT_API const char *att_network_path(const att_network *network);        /* of the weights' file; NULL: there is none */
ATT_API const att_tensors *att_network_file(const att_network *network); /* NULL: there is none */
ATT_API const att_identity *att_network_identity(const att_network *network);
ATT_API const att_model *att_network_model(const att_network *network);
ATT_API att_weights *att_network_weights(const att_network *network);
ATT_API const char *att_network_backend(const att_network *network);
ATT_API att_precision att_network_precision(const att_network *network);
ATT_API bool att_network_is_averaged(const att_network *network); /* its weights are the file's averaged ones */

/* The name of a class, by its number: of the file's training, else of the data set whose classes it is known to have
 * (att_checkpoint_known_classes()), with a synset's label behind it: "n01440764 tench". NULL: not known. */
ATT_API const char *att_network_class_name(const att_network *network, int number);
/* All of them, by number; NULL and *count 0 where none are known. count may be NULL. */
ATT_API const char *const *att_network_class_names(const att_network *network, int *count);
/* The data set that the file is known to be of, where these names are that data set's ("imagenet-1k"); else NULL. */
ATT_API const char *att_network_known_classes(const att_network *network);
/* Replaces the names by those of a data set whose classes are built in (att_known_classes_find()), or else of a file,
 * one a line from class 0. After a failure the names are what they were. Errors: ERR_ARGUMENT where `from` is no such
 * data set, no file, and no path; ERR_MISMATCH where there are not as many names as classes; ERR_FORMAT; those of
 * reading the file. */
ATT_API ATT_MUST_CHECK att_status att_network_name_classes(att_network *network, const char *from);
/* Replaces the names by those of an array, by number; the texts are copied. After a failure the names are what they
 * were. Errors: ERR_MISMATCH if `count` is not the network's number of classes; ERR_ARGUMENT (a name is NULL). */
ATT_API ATT_MUST_CHECK att_status att_network_set_class_names(att_network *network, const char *const *names,
                                                              int count);

/* What the weights were trained for; differs from the identity's where test_images took other images. */
ATT_API att_preprocess att_network_trained_preprocess(const att_network *network);
/* How images become the network's input: as in its evaluation. Another preprocessing may be set, in all but the sides
 * and channels (ERR_MISMATCH). */
ATT_API att_transform_options att_network_transform(const att_network *network);
ATT_API att_status att_network_set_preprocess(att_network *network, const att_preprocess *preprocess);

/* Chooses the tensors that later runs return. names: a list separated by commas; blanks around a name are ignored.
 * NULL, as in a new network, means the outputs of the network's task ("logits"; "features" without a head). Names:
 *   those outputs;
 *   "features" [C], the input of the classifier;
 *   "tokens" [N, C], the output of the last block. Networks that apply the final norm only to the pooled token give
 *   these tokens before that norm;
 *   "stage1" .. "stage4" [h, w, C], the outputs of a convolutional network's stages;
 *   of an attention node ('*' and '?' allowed): "blocks.3.attn.map" [H, N, N], the attention weights of all queries;
 *   "blocks.3.attn.stats" [H, N, ATT_ATTENTION_STATS]; "blocks.3.attn.summary" [H, ATT_ATTENTION_SUMMARY] (ops.h).
 * ERR_NOT_FOUND if the network lacks one of the names: nothing changes, and the message lists the names that exist. */
ATT_API ATT_MUST_CHECK att_status att_network_want(att_network *network, const char *names);

/* Runs `count` images of height x width pixels, [count, height, width, in_chans], normalised with mean and std already.
 * Sides other than the network's own are taken by networks that have no parameter of a fixed size: position embeddings
 * are resampled as att_model_load() does. Plans of the last few sizes are kept. *answers: one tensor each of what is
 * wanted, by name (att_batch_field()); its data is the network's, until its next run or change. Answers of an image do
 * not depend on the others. Errors: ERR_UNSUPPORTED or ERR_ARGUMENT for sides that the network cannot take;
 * ERR_ARGUMENT (count); ERR_NONFINITE, with *answers set, where NaN or infinity is among them. */
ATT_API att_status att_network_run(att_network *network, const float *pixels, int count, int height, int width,
                                   att_batch *answers);
/* The same for decoded images of any size (with the network's channels), and for JPEG, PNG and WebP files, made ready
 * by att_network_transform(). */
ATT_API att_status att_network_run_images(att_network *network, const att_image *images, int count, att_batch *answers);
ATT_API att_status att_network_run_files(att_network *network, const char *const *paths, int count, att_batch *answers);
ATT_API att_status att_network_run_file(att_network *network, const char *path, att_batch *answers);

/* What an answer means, as att_task_write() and att_task_describe() say it for the network's task. Answers of several
 * images: that of the first. options: NULL means att_answer_options_defaults(). Where `options` names no classes they
 * have their own names (att_network_class_name()). */
ATT_API att_status att_network_write(const att_network *network, const att_batch *answers,
                                     const att_answer_options *options, att_json_writer *writer);
ATT_API att_status att_network_describe(const att_network *network, const att_batch *answers,
                                        const att_answer_options *options, void (*line)(void *user, const char *text),
                                        void *user);

/* Makes instruments for att_network_evaluate(), which takes them as att_evaluate_options.measure. with, nodes: as in
 * att_measure_create(), NULL included. On success *measure is the caller's and may outlive the network. A network keeps
 * the probes of the last measure only: after another call of this function, evaluation refuses earlier measures. Their
 * figures stay readable. att_network_run() does not use instruments. */
ATT_API ATT_MUST_CHECK att_status att_network_observe(att_network *network, const char *with, const char *nodes,
                                                      att_measure **measure);
/* Opens a data set for this network, as att_dataset_open() does, or as att_dataset_open_images() does with several
 * paths. Classes are numbered by the names that the file's training had or, where the network is known to be of
 * ImageNet-1k, by its synsets, unless `options` give others. options.unlabelled: images without classes will do where
 * the path holds none with classes. The log says what was opened, and what the network makes of the images' colours.
 * Errors: ERR_ARGUMENT (several paths with a class map), as said there. */
ATT_API ATT_MUST_CHECK att_status att_network_open_dataset(att_network *network, const char *const *paths, int count,
                                                           const att_dataset_options *options, att_dataset **dataset);
/* Compares the classes of a data set with the network's; the log tells where their numbers differ, or the name of the
 * first class that is called otherwise. refuse: ERR_MISMATCH as att_dataset_check_classes() says. */
ATT_API att_status att_network_compare_classes(const att_network *network, const att_dataset *dataset, bool refuse);
/* ERR_UNSUPPORTED if the network has no head. consequence: the end of the message, such as "it cannot be evaluated";
 * NULL: none. */
ATT_API att_status att_network_need_head(const att_network *network, const char *consequence);

/* Calls att_evaluate() with the network's transform. Of the options (NULL: the defaults), backend and precision are
 * replaced by the network's. If task_options is NULL, the task has the options that the file's training recorded.
 * measure: NULL, or the measure that the last att_network_observe() made; ERR_ARGUMENT for any other. Several
 * evaluations may share one measure, which adds up over them (att_measure_clear() starts anew). result may be NULL.
 * ERR_NONFINITE, with *result set, if the network answers an image with NaN or infinity. */
ATT_API att_status att_network_evaluate(att_network *network, const att_dataset *dataset,
                                        const att_evaluate_options *options, att_evaluation *result);

#ifdef __cplusplus
}
#endif
#endif
