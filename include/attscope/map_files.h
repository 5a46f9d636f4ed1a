/* attscope/map_files.h - pictures and values of the maps of images and texts, as `attscope maps` writes them.
 *
 *     att_map_files *files = NULL;
 *     att_map_options options = att_map_options_defaults();
 *     options.show = "chefer,grad_cam";
 *     if (att_map_files_open(network, &options, "maps", &files) == ATT_OK &&
 *         att_map_files_add_dataset(files, dataset) == ATT_OK)
 *         ... att_map_files_finish(files) ...
 *     att_map_files_close(&files);
 *
 * For each image NAME there are FOLDER/NAME.MAP.FORMAT, or one picture FOLDER/NAME.ITEM.FORMAT for each item of `show`
 * in the form "grid", and FOLDER/NAME.npz with the values of all maps of the image as float64 [height, width] by their
 * names, and "class" and "logit" of maps of relevance. Maps of a text have a row of its tokens, whose ids are "tokens"
 * in the .npz file; the pictures are the words of the text, in SVG.
 */
#ifndef ATTSCOPE_MAP_FILES_H
#define ATTSCOPE_MAP_FILES_H

#include <attscope/encoder.h>
#include <attscope/picture.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A map of an image, or the mean of those of several images. */
typedef struct att_named_map {
    const char *name;      /* "attention.blocks.3.attn.head2", "mean.blocks.3.attn", "grad_cam", "occlusion_cell_8" */
    att_relevance_map map; /* target: -1: of attention, or a mean of images */
} att_named_map;

/* The texts, and the folder, must live until the files are closed. */
typedef struct att_map_options {
    /* Which maps: a list of "attention" (the weights of a query), "mean" (their mean over all queries) and methods of
     * relevance, as att_relevance_run() takes them. */
    const char *show;
    const char *layers; /* of attention and mean: "last", "all" or numbers; NULL: "last", in the form "grid" "all" */
    const char *heads;  /* "mean", "all" or numbers; NULL: "mean", in the form "grid" "all" */
    const char *query;  /* of attention: "class", "prefix:N" or "ROW,COLUMN" of the grid of patches; NULL: the class
                           token, or the mean over queries of layers without one. Of a text "class", the first token, as
                           for NULL, or "token:N" */
    const char *at;     /* of attention: "X,Y", the patch at these parts of the image's width and height; NULL: none */
    int target;         /* the class of relevance; -1: the most probable one of each image */
    const char *means;  /* "none"; "all" or "class": one mean over all images or those of each class instead of single
                           images. Files of means are named "mean" and "mean.class3" */
    /* How they are drawn. */
    const char *form;    /* "overlay", over the image; "map", alone, of images only; "grid": layers x heads in one
                            picture */
    const char *format;  /* a list of "png", "svg" and "pdf"; NULL: "png", of texts "svg", which have no others */
    const char *colours; /* att_colour_map_name() */
    const char *scale;   /* "map": each map's own; "shared": of all maps of an item and image; "LOW,HIGH" */
    bool smooth;         /* interpolate between the centres of cells; not of texts */
    double opacity;      /* of the colours over the image, 0..1 */
    int zoom;            /* pixels for a side of a pixel of the network's input, 1..16; of texts the font has 8 zoom */
    /* Called after the files of an image or a mean were written; NULL: none. name: of the files; maps: valid during the
     * call. */
    void (*found)(void *user, const char *name, const att_named_map *maps, int count);
    void *found_user;
    att_progress_fn progress; /* of att_map_files_add_dataset() and _add_texts(); stage "maps"; NULL: none */
    void *progress_user;
} att_map_options;
/* Attention of the last layer, mean over heads, no means; overlays in viridis, opacity 0.6, zoom 2. */
ATT_API att_map_options att_map_options_defaults(void);
/* Checks what can be checked without a network. Errors: ERR_ARGUMENT. */
ATT_API att_status att_map_options_check(att_context *context, const att_map_options *options);

typedef struct att_map_files att_map_files;

/* Prepares the network, which must outlive *files, and creates the folder if it is missing. On success the caller owns
 * *files and frees it with att_map_files_close(); on failure it is unchanged. Errors: those of att_map_options_check()
 * and att_explorer_create(); ERR_UNSUPPORTED unless the network's only input is an image of one size, or
 * it reads texts (att_network_most_tokens()), and for options that are not for texts; those of creating the folder. */
ATT_API ATT_MUST_CHECK att_status att_map_files_open(att_network *network, const att_map_options *options,
                                                     const char *folder, att_map_files **files);
ATT_API void att_map_files_close(att_map_files **files);

/* Adds an image: writes its files, or adds it to the means. name: its path or name, of which att_picture_names_take()
 * makes NAME. label: its class; -1: none. pixels [height, width, channels]: the network's input. Errors: ERR_ARGUMENT
 * (layers, heads or a query that the network does not have; no class for means of classes); those of
 * att_relevance_run() and of writing files. */
ATT_API att_status att_map_files_add(att_map_files *files, const char *name, int32_t label, const float *pixels);
/* Adds every image of the data set, with the network's transform. Errors: as above; those of att_dataset_read();
 * ERR_STOPPED. */
ATT_API att_status att_map_files_add_dataset(att_map_files *files, const att_dataset *dataset);
/* Writes the files of every text, whose NAME is "text1" for the first one, and so on. The network is compiled for each
 * number of tokens. `texts` must live as long as the call. Errors: ERR_ARGUMENT (layers, heads or a query that the
 * network or a text does not have); ERR_UNSUPPORTED (a network for images); those of att_explorer_create_for(), of
 * att_relevance_run() and of writing files; ERR_STOPPED. */
ATT_API att_status att_map_files_add_texts(att_map_files *files, const att_token_texts *texts);
/* Writes the files of the means, if there are any. */
ATT_API att_status att_map_files_finish(att_map_files *files);
/* The number of files so far. */
ATT_API int64_t att_map_files_count(const att_map_files *files);

#ifdef __cplusplus
}
#endif
#endif
