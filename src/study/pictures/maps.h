/* pictures/maps.h - the struct behind files of maps, and functions shared by its files. */
#ifndef ATT_PICTURES_MAPS_H
#define ATT_PICTURES_MAPS_H

#include <attscope/encoder.h>
#include <attscope/map_files.h>

#include "base/core/memory.h"

enum { ATT_MAP_NAME = 480, ATT_MAP_PATH = 4096 };
/* What pieces begin with in vocabularies that mark the beginnings of words: U+2581. */
#define ATT_WORD_MARK "\xE2\x96\x81"

typedef struct att_listed_map {
    char name[ATT_MAP_NAME];
    int row;  /* maps of one row of a picture have the same number: layer and item of `show` */
    int item; /* of `show` */
    att_relevance_map map;
} att_listed_map;

/* The maps of an image. Zero-initialise, then set `context`. */
typedef struct att_map_list {
    att_context *context;
    att_listed_map *items;
    int count, room;
} att_map_list;

/* Sums over images. */
typedef struct att_map_mean {
    int32_t label; /* -1: of all images */
    double images;
    float *pixels;   /* of the inputs */
    double **values; /* of the maps, as many as a list has */
    int count;
} att_map_mean;

struct att_map_files {
    att_context *context;
    att_network *network;
    att_map_options options; /* with layers and heads */
    const char *folder;      /* NULL: nothing is written, for means that are only read */
    att_transform_options transform;
    size_t pixels;                  /* numbers of an input */
    att_explorer *explorer;         /* of texts: for as many tokens as the last one has; NULL before */
    const att_token_ids *text;      /* whose maps are listed; NULL: an image */
    const att_tokenizer *tokenizer; /* of the text */
    att_relevance *relevance;       /* NULL until it is needed */
    att_picture_names *names;
    att_map_list list; /* of the last image */
    att_map_mean *means;
    int mean_count, mean_room;
    int64_t written;
};

/* map_list.c: checks the choice of maps. Errors: ERR_ARGUMENT. */
att_status att_map_choice_check(att_context *context, const att_map_options *options);
/* Replaces the list by the maps of an input, an image or files->text. */
att_status att_map_list_find(att_map_files *files, const att_batch *input);
void att_map_list_free(att_map_list *list);

/* map_means.c: adds the maps of the list, whose number and sides must be those of the images before. */
att_status att_map_means_add(att_map_files *files, int32_t label, const float *pixels);
/* Replaces the values of the list, which is that of the last image, by the means. */
void att_map_means_take(const att_map_mean *mean, att_map_list *list);
void att_map_means_free(att_map_files *files);

/* map_pictures.c: checks how maps are drawn. Errors: ERR_ARGUMENT. */
att_status att_map_pictures_check(att_context *context, const att_map_options *options);
/* Writes the pictures and values of the list. pixels: sums over `count` images; NULL: the maps are of files->text.
 * name: of the files. */
att_status att_map_pictures_write(att_map_files *files, const float *pixels, double count, const char *name);
/* The style of the options for a map of the list. */
att_map_style att_map_style_of(const att_map_files *files, const att_listed_map *map);
/* Writes the path of the file NAME.WHAT.ENDING, or NAME.ENDING if `what` is "". Errors: ERR_ARGUMENT (too long). */
att_status att_map_path(const att_map_files *files, const char *name, const char *what, const char *ending,
                        char path[static ATT_MAP_PATH]);

/* map_texts.c: writes the pictures of the list, which are of files->text. */
att_status att_map_texts_write(att_map_files *files, const char *name);

#endif
