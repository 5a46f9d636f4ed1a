/* map_list.h - the maps of attention and relevance of one image that flags choose. */
#ifndef CLI_MAP_LIST_H
#define CLI_MAP_LIST_H

#include "image_input.h"

/* Which maps. */
typedef struct cli_map_choice {
    const char *show;   /* list of "attention", "mean" and methods of relevance with options */
    const char *layers; /* "last", "all" or a list of numbers */
    const char *heads;  /* "mean", "all" or a list of numbers */
    const char *query;  /* "class", "prefix:N" or "ROW,COLUMN"; NULL: the class token, else the mean over queries */
    const char *at;     /* "X,Y": the query at these parts of the image's width and height; NULL: not given */
    int target;         /* the class; -1: the most probable one */
} cli_map_choice;

typedef struct cli_map {
    char name[480]; /* "attention.blocks.3.attn.head2", "grad_cam" */
    int row;        /* maps of one row of a picture have the same number: layer and item of `show` */
    int item;       /* of `show` */
    att_relevance_map map;
} cli_map;

/* Zero-initialise. */
typedef struct cli_map_list {
    cli_map *items;
    int count, room;
    int target;   /* the class of relevance; -1: no such map */
    double logit; /* its logit */
} cli_map_list;

/* Checks what can be checked before an image is read. Returns CLI_OK or CLI_USAGE. */
int cli_map_choice_check(cli_app *cli, const cli_map_choice *choice);
/* Replaces the list by the maps of input->batch, which the explorer runs. Returns CLI_OK or an exit code. */
int cli_map_list_find(cli_image_input *input, const cli_map_choice *choice, cli_map_list *list);
void cli_map_list_free(cli_map_list *list);

#endif
