/* attscope/relevance.h - which parts of an image, or which tokens of a text, make a network give it a class, how
 * faithful such maps are, and whether they point to objects.
 *
 *     att_relevance *relevance = NULL;
 *     att_relevance_map map;
 *     if (att_explorer_create(network, &explorer) == ATT_OK && att_relevance_create(explorer, &relevance) == ATT_OK &&
 *         att_relevance_run(relevance, &image, "chefer", -1, &map) == ATT_OK)
 *         ... map.values[y * map.width + x] ...
 *     att_relevance_destroy(&relevance);
 *     att_explorer_destroy(&explorer);
 *
 * y is the logit of a class. Changes of the explorer (attscope/explore.h) hold: a map is that of the changed network.
 *
 * Methods. A layer has N tokens, of which the first P are no patches; H heads, weights a_hij of query i on key j,
 * outputs o_hi = sum_j a_hij v_hj, and so dy/da_hij = (dy/do_hi) . v_hj. (x)_+ is max(x, 0). The tokens that the head
 * reads have the weights e_i, which add up to 1: the class token alone, or equal weights for a mean over tokens.
 *
 *   chefer                r = e (I + B_L) ... (I + B_1) with B_l,ij = mean_h (a_hij dy/da_hij)_+ of layer l; the map is
 *                         r of the patches. (Chefer, Gur and Wolf, ICCV 2021, eq. 5 and 6, and section 3.2 for the row)
 *   attention_gradient    e B_l of one layer
 *   grad_cam              (sum_c w_c F_pc)_+ with w_c the mean over the patches p of dy/dF_pc. F is the input of the
 *                         linear layer that makes the values of the last attention, without its first P tokens; in
 *                         networks without attention the output of the last residual block. (Selvaraju et al., ICCV
 *                         2017, eq. 1 and 2)
 *   integrated_gradients  sum over the channels of x_p (1 / S) sum_{s=1}^{S} dy/dx_p at the image (s - 1/2) x / S. x is
 *                         the normalised image, so that 0 is the mean colour. (Sundararajan, Taly and Yan, ICML 2017,
 *                         eq. 1 and 3, with the midpoints of the S intervals)
 *   occlusion             y of the image less y with the mean colour in a square, as a mean over the squares that cover
 *                         a cell. (Zeiler and Fergus, ECCV 2014)
 *   rollout               att_explorer_rollout() of e up to the last layer; it does not depend on the class
 *   flow                  the largest flow from the tokens that the head reads, e_i above the last layer, to each patch
 *                         below the first. The capacity from token i above a layer to token j below it is half of
 *                         (A + I)_ij, with A the mean over the heads of a; it does not depend on the class. At most 256
 *                         tokens. (Abnar and Zuidema, ACL 2020)
 *   random                numbers drawn from U(0, 1), for comparisons
 *   centre                -((y - (h - 1) / 2)^2 / h^2 + (x - (w - 1) / 2)^2 / w^2) of a grid of h x w cells, for
 *                         comparisons: photographers put objects in the middle
 *
 * A map of a text has one row, with a cell for each token; methods that change pixels need an image
 * (att_relevance_method_info.needs_image).
 *
 * chefer, attention_gradient, rollout and flow need tokens that are the same in all layers, without windows
 * (ERR_UNSUPPORTED). All but flow compute the row e B_l from tiles of queries, without an N x N map.
 */
#ifndef ATTSCOPE_RELEVANCE_H
#define ATTSCOPE_RELEVANCE_H

#include <attscope/explore.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- methods ----------------------------------------------------------------------------------------------------- */

typedef struct att_relevance_method_info {
    const char *name;    /* "grad_cam" */
    const char *title;   /* "Grad-CAM" */
    const char *summary; /* one line */
    const char *source;  /* NULL: none */
    const att_detail *options;
    int option_count;
    bool needs_image; /* it does not apply to texts */
} att_relevance_method_info;

/* The methods, in the order in which they are shown. index: 0..count-1; all zero for another index. */
ATT_API int att_relevance_method_count(void);
ATT_API att_relevance_method_info att_relevance_method_at(int index);
/* Checks a method with its options, as att_relevance_run() takes it. Errors: ERR_NOT_FOUND, ERR_ARGUMENT. */
ATT_API att_status att_relevance_check(att_context *context, const char *method);

/* --- maps -------------------------------------------------------------------------------------------------------- */

typedef struct att_relevance att_relevance;

/* Compiles the gradients that the methods need. The explorer must outlive *relevance. On success the caller owns
 * *relevance and frees it with att_relevance_destroy(); on failure it is unchanged. Errors: ERR_UNSUPPORTED (a network
 * that does not give an image or a text one class; an op without a backward rule); those of
 * compiling a plan. */
ATT_API ATT_MUST_CHECK att_status att_relevance_create(att_explorer *explorer, att_relevance **relevance);
ATT_API void att_relevance_destroy(att_relevance **relevance);
/* Whether the explorer's network gives an image or a text one class, so that att_relevance_create() can apply. */
ATT_API bool att_relevance_applies(const att_explorer *explorer);

/* A map covers the whole input of the network with cells of equal size, row by row. */
typedef struct att_relevance_map {
    int height, width; /* of the grid of cells: that of the patches, of feature maps, or of the pixels */
    double *values;    /* [height, width] */
    int target;        /* the class */
    double logit;      /* y of the image */
} att_relevance_map;

/* Runs the explorer on one image or text and computes a map. inputs: as for att_explorer_run(). method: a name, with
 * options after a colon ("integrated_gradients:steps=64"). target: a class; -1: the one with the largest logit.
 * map->values belongs to `relevance` and is valid until its next run; the explorer's rows are those of the image.
 * Errors: those of att_explorer_run(); ERR_NOT_FOUND (no such method, with the nearest name); ERR_ARGUMENT (an option,
 * no such class); ERR_UNSUPPORTED (the method does not apply to this network; the message says why); ERR_STOPPED. */
ATT_API ATT_MUST_CHECK att_status att_relevance_run(att_relevance *relevance, const att_batch *inputs,
                                                    const char *method, int target, att_relevance_map *map);

/* Resizes a map, with bilinear interpolation between the centres of cells and the nearest cell beyond the outer
 * centres: pixels [height, width]. */
ATT_API void att_relevance_resize(const att_relevance_map *map, int height, int width, double *pixels);

/* --- faithfulness ------------------------------------------------------------------------------------------------ */

/* Deletion and insertion curves. (Petsiuk, Das and Saenko, BMVC 2018) The pixels of the network's input are ordered by
 * the resized map, the largest value first, equal ones row by row. At step s of S the first round(s n / S) of n pixels
 *
 *   ATT_DELETION   have the mean colour; all others are those of the image
 *   ATT_INSERTION  are those of the image; all others those of the image after a Gaussian blur of 11 x 11 pixels with a
 *                  deviation of 5, with 0 outside of the image
 *
 * p_s is the probability of the class at step s, by the softmax of the logits. area = (p_0 / 2 + p_1 + ... + p_{S-1} +
 * p_S / 2) / S. A faithful map has a small area of deletion and a large one of insertion. */
typedef enum att_curve { ATT_DELETION, ATT_INSERTION } att_curve;
enum { ATT_CURVE_MOST_STEPS = 28 };
/* Writes probabilities [steps + 1] and *area; the explorer's rows are then those of the last image of the curve.
 * inputs: the image; map: of any source; target: as in att_relevance_map. steps: 1..ATT_CURVE_MOST_STEPS. Errors: those
 * of att_explorer_run(); ERR_ARGUMENT (steps, no such class, a map without cells); ERR_UNSUPPORTED (a network for
 * texts); ERR_STOPPED. */
ATT_API ATT_MUST_CHECK att_status att_relevance_curve(att_relevance *relevance, const att_batch *inputs,
                                                      const att_relevance_map *map, int target, att_curve curve,
                                                      int steps, double *probabilities, double *area);

/* --- the pointing game ------------------------------------------------------------------------------------------- */

/* (Zhang, Lin, Brandt, Shen and Sclaroff, ECCV 2016) Each photograph and each class of its objects is a question. The
 * place of a map of the class is the centre of the cell with the largest value, the first of equal ones row by row,
 * moved to the photograph. It is a HIT if it lies in a box of an object of this class, or at most `margin` pixels of
 * the photograph beside one along each axis; else a MISS. The question does not count (NEITHER) if no such box has a
 * part inside of the network's input, or if the place lies in a crowd (att_true_box) and in no other box. The result is
 * the share of hits among hits and misses. */
typedef enum att_pointing { ATT_POINTING_MISS, ATT_POINTING_HIT, ATT_POINTING_NEITHER } att_pointing;
enum { ATT_POINTING_MARGIN = 15 }; /* of the paper */
/* place: of the photograph in the input (att_transform_geometry()). boxes: of the photograph (att_dataset_boxes()), of
 * which those with this label count. */
ATT_API att_pointing att_relevance_point(const att_relevance_map *map, const att_geometry *place,
                                         const att_true_box *boxes, int count, int label, double margin);
/* Runs the explorer on one image and returns in *target the class with the largest logit of `classes` [count], for
 * objects that are several classes of the network, such as breeds of dogs. Errors: those of att_explorer_run();
 * ERR_ARGUMENT (no class, one that does not exist). */
ATT_API ATT_MUST_CHECK att_status att_relevance_choose(att_relevance *relevance, const att_batch *inputs,
                                                       const int *classes, int count, int *target);

#ifdef __cplusplus
}
#endif
#endif
