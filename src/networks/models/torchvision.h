/* models/torchvision.h - torchvision's pretrained files of networks that attscope can load. */
#ifndef ATT_MODELS_TORCHVISION_H
#define ATT_MODELS_TORCHVISION_H

#include <stddef.h>

typedef struct att_torchvision {
    const char *network; /* torchvision's name, of a residual network also attscope's: "resnet50" */
    const char *weights; /* "IMAGENET1K_V2" */
    const char *file;    /* "resnet50-11ad3fa6.pth"; the digits are the first 8 of the file's SHA-256 */
    double crop_pct;     /* of its evaluation: the side of images divided by this is that of its resizing */
    const char *interpolation;
} att_torchvision;

/* torchvision's default weights of a network come first. */
extern const att_torchvision att_torchvision_all[];
extern const int att_torchvision_count;

/* Returns the entry of a file by the last part of its path; NULL if there is none. */
const att_torchvision *att_torchvision_of_file(const char *path);

#endif
