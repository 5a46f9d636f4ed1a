/* data/augment.h - random changes of an 8-bit picture, in place: RandAugment and colour jitter. */
#ifndef ATT_DATA_AUGMENT_H
#define ATT_DATA_AUGMENT_H

#include <attscope/data.h>

#include "core/random.h"
#include "data/geometry.h"

/* The operations of RandAugment, in timm's order. */
enum { ATT_AUGMENT_OPERATIONS = 15 };
/* timm's name of operation 0..14: of the variant that grows with the magnitude, or the other. */
const char *att_augment_name(int operation, bool increasing);
/* What timm makes of a magnitude (10: full) for it: degrees, a threshold, a factor, ...; negate: the other direction,
 * where there are two. 0 where it takes none. */
double att_augment_argument(int operation, bool increasing, double magnitude, bool negate);
/* Does it. scratch: as many bytes as the picture. Adds to `geometry` where it moves pixels. */
void att_augment_apply(int operation, const att_transform_options *options, const att_image *image, double argument,
                       uint8_t *scratch, att_geometry *geometry);

/* What the options say, by draws from `random`. Adds to `geometry` how the pixels moved. */
void att_augment(const att_transform_options *options, const att_image *image, att_random *random, uint8_t *scratch,
                 att_geometry *geometry);

/* NULL, or what is wrong with the options. */
const char *att_augment_wrong(const att_transform_options *options);

#endif
