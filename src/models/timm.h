/* models/timm.h - the networks that timm has, its deprecated names and its pretrained tags.
 *
 * The lists are src/models/timm/names.txt and tags.txt, which cmake/timm.cmake compiles in. tools/goldens/timm_names.py
 * writes them and describes their lines.
 */
#ifndef ATT_MODELS_TIMM_H
#define ATT_MODELS_TIMM_H

#include <stdbool.h>
#include <stddef.h>

extern const unsigned char att_timm_names[], att_timm_tags[];
extern const size_t att_timm_names_size, att_timm_tags_size;

/* A part of a list, without a NUL. */
typedef struct att_timm_text {
    const char *bytes;
    size_t length;
} att_timm_text;
bool att_timm_text_is(att_timm_text text, const char *other);

typedef struct att_timm_name {
    att_timm_text name;
    att_timm_text lacks;      /* what attscope lacks for it; empty where it has the network */
    att_timm_text equivalent; /* where it lacks it: a network with the same tensors that attscope has; else empty */
    att_timm_text current;    /* where `name` is deprecated: the name that replaces it, with its tag; else empty */
} att_timm_name;
/* The name that begins at byte *at of the list, which is then moved to the next; false at the list's end. */
bool att_timm_next_name(size_t *at, att_timm_name *name);
bool att_timm_find_name(const char *text, att_timm_name *name);

typedef struct att_timm_tag {
    att_timm_text network, tag;
    att_timm_text values; /* "crop_pct=0.875 interpolation=bilinear": those that differ from the network's own */
} att_timm_tag;
/* The next tag of `network` from byte *at of the list on, as att_timm_next_name(). The first is the network's own. */
bool att_timm_next_tag(const char *network, size_t *at, att_timm_tag *tag);
bool att_timm_find_tag(const char *network, const char *text, att_timm_tag *tag);

#endif
