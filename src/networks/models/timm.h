/* models/timm.h - the names of timm's networks, its deprecated names and its pretrained tags.
 *
 * The lists are src/networks/models/timm/names.txt and tags.txt, compiled in by cmake/timm.cmake.
 * tools/goldens/timm_names.py writes them and describes their format.
 */
#ifndef ATT_MODELS_TIMM_H
#define ATT_MODELS_TIMM_H

#include <stdbool.h>
#include <stddef.h>

extern const unsigned char att_timm_names[], att_timm_tags[];
extern const size_t att_timm_names_size, att_timm_tags_size;

/* A part of a list; no terminating NUL. */
typedef struct att_timm_text {
    const char *bytes;
    size_t length;
} att_timm_text;

typedef struct att_timm_name {
    att_timm_text name;
    att_timm_text lacks;      /* features that attscope lacks for this network; empty if attscope has it */
    att_timm_text equivalent; /* if attscope lacks it: a network of attscope's with the same tensors; else empty */
    att_timm_text current;    /* if `name` is deprecated: the name that replaces it, with its tag; else empty */
} att_timm_name;
/* Reads the name at byte *at of the list and moves *at to the next; returns false at the end of the list. */
bool att_timm_next_name(size_t *at, att_timm_name *name);
bool att_timm_find_name(const char *text, att_timm_name *name);

typedef struct att_timm_tag {
    att_timm_text network, tag;
    att_timm_text values; /* "crop_pct=0.875 interpolation=bilinear": settings that differ from the network's */
} att_timm_tag;
/* Finds the next tag of `network` from byte *at of the list on, as att_timm_next_name(). The first tag is the default.
 */
bool att_timm_next_tag(const char *network, size_t *at, att_timm_tag *tag);
bool att_timm_find_tag(const char *network, const char *text, att_timm_tag *tag);

#endif
