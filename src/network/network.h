/* network/network.h - an open network, and what its files share. */
#ifndef ATT_NETWORK_NETWORK_H
#define ATT_NETWORK_NETWORK_H

#include <attscope/checkpoint.h>
#include <attscope/network.h>

#include "core/memory.h"
#include "train/inference.h"

enum { ATT_NETWORK_PATH = 4096 };

/* The network made ready for images of one size. */
typedef struct att_network_view {
    int height, width; /* 0: unused */
    int max_batch;
    uint64_t used;                  /* when it was last, counted in runs */
    att_model *model;               /* NULL: the network's own */
    att_weights *resized, *covered; /* NULL: the network's own weights */
    att_graph *graph;               /* with what is wanted */
    att_inference inference;
} att_network_view;

enum { ATT_NETWORK_VIEWS = 4 };

struct att_network {
    att_context *context;
    char path[ATT_NETWORK_PATH]; /* "": there is no file */
    att_tensors *file;
    att_identity identity;
    att_preprocess trained;
    const att_model *model;
    att_weights *weights;
    att_model *own_model; /* the same; NULL where they are wrapped */
    att_weights *own_weights;
    att_model *observed; /* with the probes of the last instruments; NULL: there were none */
    char *backend;
    att_precision precision;
    bool averaged;
    char *wanted;          /* NULL: the task's outputs */
    att_arena class_arena; /* of class_names */
    const char **class_names;
    int class_count;
    const char *known_classes; /* the data set that these are of; NULL: they are not built in, or were chosen */
    att_network_view views[ATT_NETWORK_VIEWS];
    uint64_t runs;
    float *pixels; /* of images that are made ready here */
    size_t pixel_room;
};

/* class_names.c: takes the names that the file tells; they are freed with the network. */
att_status att_network_take_class_names(att_network *network);
/* Cuts `text` into lines, without a carriage return at their end, and writes at most `room` of them. Returns how many
 * lines there are. */
int att_network_split_lines(char *text, const char **lines, int room);

/* wanted.c: a copy of the model's graph that has every output and probe that `wanted` names (NULL: the task's outputs),
 * and their names in it, NULL after the last: *names, and the graph, are the caller's on success. ERR_NOT_FOUND. */
att_status att_network_wish(const att_model *model, const char *wanted, att_graph **graph, const char ***names);

/* views.c: the view of a size, for batches of at least `count`. It stays the network's. */
att_status att_network_look(att_network *network, int height, int width, int count, att_network_view **view);
/* Forgets all views. */
void att_network_forget(att_network *network);

#endif
