/* network/network.h - the struct of an open network, and functions shared by its files. */
#ifndef ATT_NETWORK_NETWORK_H
#define ATT_NETWORK_NETWORK_H

#include <attscope/checkpoint.h>
#include <attscope/encoder.h>
#include <attscope/network.h>

#include "base/core/export.h"
#include "base/core/memory.h"
#include "base/core/names.h"
#include "networks/models/inputs.h"
#include "study/train/inference.h"

enum { ATT_NETWORK_PATH = 4096 };

/* Model and weights of a network for inputs of some shapes. All NULL: the network's own. */
typedef struct att_reshaped {
    att_model *model;
    att_weights *resized; /* resampled parameters: copies, which changes of the network's weights do not reach */
    att_weights *covered; /* the network's weights with those */
} att_reshaped;

/* The network compiled for inputs of some shapes. */
typedef struct att_network_view {
    int max_batch; /* 0: nothing is compiled */
    att_reshaped reshaped;
    uint64_t version; /* version of the network's weights when the view was made */
    att_graph *graph; /* with the requested outputs */
    att_inference inference;
} att_network_view;

struct att_network {
    att_context *context;
    char path[ATT_NETWORK_PATH]; /* "": no file */
    att_tensors *file;
    att_identity identity;
    att_preprocess trained;
    const att_model *model;
    att_weights *weights;
    att_model *own_model; /* model and weights if the network owns them; NULL if they are the caller's */
    att_weights *own_weights;
    att_model *observed;        /* model with the probes of the last att_network_observe(); NULL: none */
    const att_measure *measure; /* measure made by the same call; only its address is compared */
    char *backend;
    att_dtype dtype;
    att_precision precision;
    bool averaged;
    char *outputs;         /* NULL: the task's outputs */
    att_arena class_arena; /* holds class_names and class_colours */
    const char **class_names;
    const uint8_t *class_colours; /* [classes][3]; NULL: no classes */
    const int64_t *class_ids;     /* [classes], in the data set of the training; NULL: unknown */
    int class_count;
    const char *known_classes; /* the built-in data set whose names these are; NULL: none, or chosen by the caller */
    char *config_names;        /* class names in the config.json beside the file, one per line; NULL: none */
    const att_known_classes *config_known; /* the data set with these names; NULL: none is built in */
    att_shape_cache views;                 /* of att_network_view */
    att_shape_cache windows;               /* of att_network_view, of passes */
    bool noted_turned;                     /* that photographs are not turned as EXIF data say */
    float *pixels;                         /* transformed images */
    size_t pixel_room;
    att_geometry *places; /* where the last run put its photographs; they belong to the answers at `placed` */
    int place_count, place_room;
    const void *placed; /* first field of the answers */
    float *image_sizes; /* [samples][2], of the last run; see att_task.image_size */
    att_pass_options passes;
    int32_t *map; /* the answer of passes: the class of each pixel of the photograph */
    size_t map_room;
    att_field map_field;
    const void *map_data[1]; /* {map} */
};

/* class_names.c: sets the class names that the file or the config.json beside it gives, and the colours of the file or
 * those of att_class_colours(). They are freed with the network. */
att_status att_network_take_class_names(att_network *network);
/* The data set whose built-in names belong to the network's outputs; NULL: none, or others are stated. */
const att_known_classes *att_network_known_order(const att_network *network);
/* config_names.c: reads the names in config.json. Sets network->config_known, or network->config_names and *shown to
 * the names for people, one per line, which the caller frees. Changes nothing if there are no names for all classes, or
 * if the file itself has names. Logs a warning if there are names that do not fit the classes. */
att_status att_network_read_config_names(att_network *network, char **shown);

/* data.c: logs a note if classes have other names in the data of a training run than in the open file, of which the
 * model keeps the classifier; path: of the file. Says nothing if the file has no names. Errors: those of reading the
 * config.json beside the file. */
ATT_FOR_LAB att_status att_network_note_kept_classes(const att_model *model, const char *path, att_tensors *file,
                                                     const att_dataset *dataset);

/* outputs.c: copies the model's graph and adds every output and probe that `outputs` names (NULL: the task's outputs).
 * *names lists their names in the graph, NULL after the last. On success the caller owns *graph and *names. Errors:
 * ERR_NOT_FOUND. */
att_status att_network_build_outputs(const att_model *model, const char *outputs, att_graph **graph,
                                     const char ***names);

/* views.c: makes model and weights for inputs of these shapes. The network must outlive them; after a failure, too,
 * att_reshaped_free() frees what was made. */
att_status att_network_reshape(const att_network *network, const att_shapes *shapes, att_reshaped *reshaped);
void att_reshaped_free(att_reshaped *reshaped);
/* The model and weights to run. */
const att_model *att_reshaped_model(const att_network *network, const att_reshaped *reshaped);
att_weights *att_reshaped_weights(const att_network *network, const att_reshaped *reshaped);
/* Prepares the caches of views, each of which keeps to a quarter of the memory that is left now. */
void att_network_begin_views(att_network *network);
/* Returns the view for inputs of these shapes and batches of at least `count`, which computes `outputs` as
 * att_network_build_outputs() does; the cache owns it until it is asked for another one. All views of a cache have the
 * same outputs. */
att_status att_network_get_view(att_network *network, att_shape_cache *cache, const char *outputs,
                                const att_shapes *shapes, int count, att_network_view **view);

/* passes.c: whether the network has passes; *passes: how it runs photographs in them. */
bool att_network_passes(att_network *network, int most_windows, att_passes *passes);
/* Runs the network on a photograph in passes, which are on. *answers: one field, the task's pixel_classes. */
att_status att_network_run_passes(att_network *network, const att_image *photograph, att_batch *answers);

/* outputs.c: the output with a score for each class, for networks whose samples have one class; NULL: others. */
ATT_FOR_LAB const char *att_network_class_output(const att_network *network);

/* pixels.c: the transform of photographs, whose sides are 0 if they depend on the photograph, as those of detectors. */
ATT_FOR_LAB att_transform_options att_network_photograph_transform(const att_network *network);

#define ATT_NONFINITE_OUTPUTS "the network's outputs contain NaN or infinity"

/* run.c: checks that `inputs` has at least one sample and every input of the network by name, with its type, and
 * nothing else. Sets *given to what is read of `inputs`, and *shapes, which may differ from those of the network.
 * Errors: ERR_ARGUMENT. */
att_status att_network_take_inputs(const att_network *network, const att_batch *inputs, att_batch *given,
                                   att_shapes *shapes);
/* Room for the inputs of a run with att_task.image_size beside them. */
typedef struct att_sized_inputs {
    att_field fields[ATT_MAX_INPUTS + 1];
    const void *data[ATT_MAX_INPUTS + 1];
} att_sized_inputs;
/* Adds the sizes of images to *given, whose fields `room` then holds, if the network's task reads them. places: where
 * the samples show their photographs; NULL: everywhere. The sizes are valid until the next call. */
att_status att_network_add_image_sizes(att_network *network, const att_geometry *places, att_batch *given,
                                       att_sized_inputs *room);
/* Both, for a run of `model`: the network's, or one for other shapes. Errors: also ERR_MISMATCH for shapes other than
 * the model's. */
att_status att_network_take_inputs_of(att_network *network, const att_model *model, const att_batch *inputs,
                                      const att_geometry *places, att_batch *given, att_sized_inputs *room);
/* Fails with ERR_UNSUPPORTED if the outputs of the network's head are features of a projection, not scores of classes.
 * consequence: as in att_network_need_head(). */
att_status att_network_check_scores(const att_network *network, const char *consequence);
/* After opening `path` failed with `status`: returns it, or fails with ERR_UNSUPPORTED if att_network_check_path()
 * tells that the path is of another kind. */
att_status att_network_explain_path(const att_network *network, const char *path, att_status status);
/* As att_network_run(). places: as above. */
att_status att_network_run_placed(att_network *network, const att_batch *inputs, const att_geometry *places,
                                  att_batch *answers);

/* Sets *order, which the caller frees, to the indices [count] of the texts, the shortest first; those of one length
 * keep their order. *order may be set on failure, too. Errors: ERR_ARGUMENT for a text that does not have 1 to
 * att_network_most_tokens() tokens; ERR_MEMORY. */
ATT_FOR_LAB att_status att_network_order_texts(const att_network *network, const att_token_ids *texts, int64_t count,
                                               int64_t **order);

#endif
