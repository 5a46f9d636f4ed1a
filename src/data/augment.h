/* data/augment.h - random changes of an 8-bit image, in place: RandAugment and colour jitter. */
#ifndef ATT_DATA_AUGMENT_H
#define ATT_DATA_AUGMENT_H

#include <attscope/data.h>

#include "base/core/random.h"
#include "data/geometry.h"

/* The operations of RandAugment, in timm's order. */
enum { ATT_AUGMENT_OPERATIONS = 15 };
/* timm's name of operation 0..14. increasing: return the name of the variant whose strength grows with the magnitude.
 */
const char *att_augment_name(int operation, bool increasing);
/* The operation's argument for a magnitude (10: full strength), as timm computes it: degrees, a threshold, a factor,
 * ... negate: use the opposite direction, if the operation has two. Returns 0 if the operation takes no argument. */
double att_augment_argument(int operation, bool increasing, double magnitude, bool negate);
/* Applies the operation. scratch: as many bytes as the image. Updates `geometry` if the operation moves pixels. */
void att_augment_apply(int operation, const att_transform_options *options, const att_image *image, double argument,
                       uint8_t *scratch, att_geometry *geometry);

/* One layer of RandAugment. */
typedef struct att_layer_draw {
    int operation;
    bool applied;
    double argument; /* 0 if it is not applied */
} att_layer_draw;
att_layer_draw att_rand_augment_draw(const att_rand_augment *settings, att_random *random);

/* torchvision's ColorJitter: brightness, contrast and colour, once each, in random order. */
typedef struct att_jitter_draw {
    int64_t order[3];
    double factors[3]; /* of brightness, contrast and colour */
} att_jitter_draw;
att_jitter_draw att_color_jitter_draw(const double jitter[3], att_random *random);

/* The changes of 3-Augment. */
typedef enum att_three { ATT_THREE_GREY, ATT_THREE_SOLARIZE, ATT_THREE_BLUR, ATT_THREE_COUNT } att_three;
typedef struct att_three_draw {
    att_three change;
    double radius; /* of the blur, also drawn for the other changes */
} att_three_draw;
att_three_draw att_three_augment_draw(att_random *random);
/* scratch: as many bytes as the image. */
void att_three_augment_apply(const att_three_draw *draw, const att_image *image, uint8_t *scratch);

/* mmsegmentation's PhotoMetricDistortion. A change that was not drawn has the value that changes nothing. */
typedef struct att_photometric_draw {
    double brightness, contrast, saturation; /* added; factors */
    int hue;                                 /* added, of 180 */
    bool saturated, hued;                    /* drawn; the conversion to HSV and back rounds */
    bool contrast_first;                     /* before saturation and hue */
} att_photometric_draw;
att_photometric_draw att_photometric_draw_from(att_random *random);
void att_photometric_apply(const att_photometric_draw *draw, const att_image *image);

/* Whether the options enable an augmentation. */
bool att_augments(const att_transform_options *options);
/* Applies the augmentations that the options enable, with random numbers from `random`. Updates `geometry` with the
 * movement of pixels. */
void att_augment(const att_transform_options *options, const att_image *image, att_random *random, uint8_t *scratch,
                 att_geometry *geometry);

/* Returns NULL if the options are valid, else a message that says which one is not. */
const char *att_augment_error(const att_transform_options *options);

#endif
