/* serve/engine_parts.h - the struct of an engine, and functions shared by its files. */
#ifndef ATT_SERVE_ENGINE_PARTS_H
#define ATT_SERVE_ENGINE_PARTS_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "lab/serve/engine.h"
#include <attscope/encoder.h>
#include <attscope/lab/ablation.h>
#include <attscope/map_files.h>

typedef struct att_upload {
    int64_t number; /* from 0 */
    char name[ATT_ENGINE_NAME];
    att_image image;
} att_upload;

/* An explorer and its last run. */
typedef struct att_seat {
    att_explorer *explorer;   /* NULL: unused */
    att_relevance *relevance; /* of the explorer; NULL until it is asked for */
    int height, width;        /* of the images that the explorer takes; 1 and the tokens of a text */
    float *pixels;            /* of the image; NULL: none */
    att_geometry place;       /* of the image in the pixels */
    att_token_texts text;     /* one text; all zero: none */
    bool has_run;
    char image[ATT_ENGINE_INPUT], changes[ATT_ENGINE_CHANGES]; /* image: the identifier, also of a text */
    att_batch answers;
    double milliseconds;
    uint64_t used; /* number of the request that used it last */
} att_seat;

/* The last ablation of a network. All zero: none. */
typedef struct att_cutting {
    att_engine_cuts cuts;
    att_dataset *images;
    int64_t total;
    att_ablation *ablation;
    bool seen; /* all images of all passes were */
    bool done;
} att_cutting;

/* The features of the engine's images. All zero: none. */
typedef struct att_compared {
    att_embedding features; /* of the first `count` of the compared images; indices: those in the engine's images */
    int64_t total;          /* images to compare */
    att_shape image;        /* of one, as the network takes it */
    bool selected;          /* runs of the network return features */
} att_compared;
/* The last mean maps of a network. All zero: none. */
typedef struct att_averaging {
    char show[ATT_ENGINE_LIST];
    bool by_class;
    int64_t wanted, total, seen; /* images: as asked for, of the whole mean, so far */
    att_dataset *images;
    att_map_files *maps;
} att_averaging;

/* An open network. It has several seats, so that a page that compares it with and without a change does not run it
 * again for each row. */
enum { ATT_SEATS = 2 };
typedef struct att_opened {
    char *path;
    att_network *network;
    struct stat file;          /* of the weights when they were read */
    uint64_t used;             /* number of the request that used it last */
    att_seat seats[ATT_SEATS]; /* the first has an explorer */
    att_cutting cut;
    att_compared compared;
    att_averaging mean;
    struct att_opened *next;
} att_opened;

/* What is known of a checkpoint without opening it. */
typedef struct att_labelled {
    char *path;
    char *given;                      /* the network that the user named; NULL: none */
    char network[ATT_ENGINE_NETWORK]; /* "": not known, or not looked for */
    bool looked;
    struct att_labelled *next;
} att_labelled;

struct att_engine {
    att_context *owner;   /* from which it is allocated */
    att_context *context; /* its own */
    att_context *asking;  /* of the request that has the lock; NULL: none */
    pthread_mutex_t lock;
    pthread_mutex_t uploading; /* of the request that decodes an upload; taken before `lock` */
    att_dataset *images;       /* NULL: none */
    char *folder;              /* of the images; NULL: none */
    att_text_file texts;       /* all zero: none */
    char *tokenizer;           /* of networks for texts; NULL: those beside the checkpoints */
    char *network;             /* of checkpoints that do not name theirs; NULL: none */
    char *labels;              /* names of classes; NULL: those of the checkpoints */
    att_upload uploads[ATT_ENGINE_UPLOADS];
    int64_t upload_count; /* ever */
    size_t upload_bytes;  /* the most that all have together: ATT_ENGINE_UPLOAD_BYTES */
    att_opened *first;
    att_labelled *labelled;
    uint64_t requests;
};

/* The largest image has 2^25 pixels. Besides its pixels, a decoder may use the bytes of four samples of 16 bits for
 * each of them. Photographs are turned as their EXIF data say: people look at them. */
static inline att_image_limits att_engine_image_limits(void)
{
    att_image_limits limits = att_image_limits_defaults();
    limits.pixels = INT64_C(1) << 25;
    limits.memory = (size_t)8 << 25;
    limits.exif_transpose = true;
    return limits;
}

/* Takes a lock for a request with this context. Fails with ERR_STOPPED, without the lock, if a stop is requested
 * already: requests that wait must not compute one after another when the server ends. */
att_status att_engine_wait(pthread_mutex_t *lock, att_context *context);
/* Takes the engine's lock for a request with this context, whose requests to stop then reach the engine's context.
 * Errors: those of att_engine_wait(). */
att_status att_engine_enter(att_engine *engine, att_context *context);
/* Gives the lock back. If `status` is a failure, passes the message of the engine's context on to that of the request.
 * Returns `status`. */
att_status att_engine_leave(att_engine *engine, att_status status);

/* The functions below are called with the lock held; their messages go to the engine's context. */

/* The network of a checkpoint, which is opened if it is not open, or if its file was replaced. */
att_status att_engine_find(att_engine *engine, const char *path, att_opened **found);
/* Gives the seat an explorer for its image or text, unless it has one. */
att_status att_engine_prepare_seat(const att_opened *opened, att_seat *seat);
/* Room for the inputs of a seat. */
typedef struct att_seat_inputs {
    att_field field;
    const void *data[1];
    att_text_inputs text;
} att_seat_inputs;
/* The seat's image or text as the network takes it. */
att_batch att_engine_seat_inputs(const att_opened *opened, const att_seat *seat, att_seat_inputs *room);
/* Whether the network gives scores of classes. If not, the context's message may say why. */
bool att_engine_has_classes(const att_opened *opened);
/* The output of a network without classes that its answers are compared by: "features", of texts "mean". */
const char *att_engine_vector(const att_opened *opened);
/* Reads an image and transforms it to *pixels, of the sides of *place, which the caller frees. */
att_status att_engine_load(const att_engine *engine, const att_transform_options *transform, const char *image,
                           float **pixels, att_geometry *place);
/* The pixels as the network takes them. field, data: room for the batch. */
att_batch att_engine_inputs(const att_opened *opened, const float *pixels, const att_geometry *place, att_field *field,
                            const void *data[1]);
/* texts: whether the network reads texts. */
bool att_engine_reads_texts(const att_opened *opened);
/* Divides a text into the network's tokens; the caller frees *tokens. Errors: ERR_NOT_FOUND (no such text), those of
 * att_network_tokenize(). */
att_status att_engine_tokenize(const att_engine *engine, const att_opened *opened, const char *id,
                               att_token_texts *tokens);
/* Writes the members "texts" and "text_count" of att_engine_write_images(). */
void att_engine_write_texts(const att_engine *engine, int64_t first, int64_t count, att_json_writer *writer);
/* Writes the member "text" of an answer. */
void att_engine_write_text(const att_token_texts *text, att_json_writer *writer);

/* Decodes an image; the caller frees it. Errors: ERR_NOT_FOUND (no such image), those of decoding. */
att_status att_engine_read_image(const att_engine *engine, const char *id, int channels, att_image *image);

/* Writes the members "layers" and "tokens" of att_engine_write_model(). */
void att_engine_write_layers(const att_explorer *explorer, att_json_writer *writer);
/* Writes the member "relevance" of att_engine_write_model(). */
void att_engine_write_methods(const att_opened *opened, att_json_writer *writer);
/* Writes the member "instruments" of att_engine_write_model(). */
att_status att_engine_write_instruments(const att_engine *engine, const att_opened *opened, att_json_writer *writer);

/* ablation: opens the images with their classes if these are the network's, else without. */
att_status att_engine_open_images(const att_engine *engine, const att_opened *opened, att_dataset **images);
/* The index of image k of `total` that are evenly spaced through the data set. */
int64_t att_engine_spaced(const att_dataset *images, int64_t total, int64_t k);
/* Forgets the ablation of the network. */
void att_engine_end_ablation(att_opened *opened);
/* Forgets the mean maps of the network. */
void att_engine_end_means(att_opened *opened);

/* Forgets the features of images. context: the engine's. */
void att_engine_end_comparison(att_context *context, att_opened *opened);
/* Lets runs of the network return the outputs of its task, if they do not. */
att_status att_engine_select_answers(att_opened *opened);

/* Runs the network for the view, unless a seat has it. */
att_status att_engine_run(att_engine *engine, const att_engine_view *view, att_opened **found, att_seat **taken);

#endif
