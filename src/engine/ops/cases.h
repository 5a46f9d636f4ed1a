/* ops/cases.h - macros for an op's test and benchmark cases. Their names have no prefix, so that most cases fit on one
 * line; only source files of ops and tests include this header.
 *
 * Recurring sizes: "tiny" and "small" are the layers of ViT-Ti and ViT-S at 224 x 224 (197 tokens of 192 and 384
 * channels, 3 and 6 heads of 64); "demo" is a network of width 64 on 49 patches and a class token.
 */
#ifndef ATT_OPS_CASES_H
#define ATT_OPS_CASES_H

#include "engine/graph/op.h"
#include "engine/ops/update.h"

#define ATT_CASE_SHAPE(...)                                        \
    {                                                              \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        {                                                          \
            __VA_ARGS__                                            \
        }                                                          \
    }

/* An input drawn from N(shift, scale^2), of the given kind and shape. */
#define DRAWN(kind_, scale_, shift_, ...)                                                           \
    {                                                                                               \
        .desc = {ATT_F32, kind_, ATT_CASE_SHAPE(__VA_ARGS__)}, .scale = (scale_), .shift = (shift_) \
    }
#define SAMPLE(...) DRAWN(ATT_SAMPLE, 1, 0, __VA_ARGS__)
#define SHARED(...) DRAWN(ATT_SHARED, 1, 0, __VA_ARGS__)
/* Weights: small, so that sums over many inputs stay near 1. */
#define WEIGHTS(...) DRAWN(ATT_SHARED, 0.06, 0, __VA_ARGS__)
#define SCALAR                                                 \
    {                                                          \
        .desc = {ATT_F32, ATT_SAMPLE, {.rank = 0}}, .scale = 1 \
    }
/* One integer in [0, limit) per sample. */
#define CLASS(limit_)                                                 \
    {                                                                 \
        .desc = {ATT_I32, ATT_SAMPLE, {.rank = 0}}, .limit = (limit_) \
    }
/* Several integers in [0, limit) per sample. */
#define INDICES(limit_, ...)                                                          \
    {                                                                                 \
        .desc = {ATT_I32, ATT_SAMPLE, ATT_CASE_SHAPE(__VA_ARGS__)}, .limit = (limit_) \
    }
#define ABSENT                                        \
    {                                                 \
        .desc = { ATT_F32, ATT_SAMPLE, {.rank = -1} } \
    }

/* The inputs of a case, in the op's order. */
#define IN(...) .in = {__VA_ARGS__}, .in_count = (int)(sizeof((att_case_input[]){__VA_ARGS__}) / sizeof(att_case_input))

/* Attributes of a case, for example ATTRS(conv, .stride = 2). */
#define ATTRS(type, ...)                 \
    .attrs = &(const att_##type##_attrs) \
    {                                    \
        __VA_ARGS__                      \
    }

/* The cases of all optimisers. */
#define ATT_CASES_OF_UPDATE                                                                            \
    {.name = "odd", ATTRS(update, .lr = 1, .weight_decay = 1), IN(SHARED(4112), SHARED(1))},           \
        {.name = "no_decay", ATTRS(update, .lr = 1), IN(SHARED(16), SHARED(1))},                       \
        {.name = "slow", ATTRS(update, .lr = 0.25, .weight_decay = 3), IN(SHARED(96), SHARED(1))},     \
        {.name = "zero_gradient", ATTRS(update, .lr = 1), IN(DRAWN(ATT_SHARED, 0, 0, 48), SHARED(1))}, \
        {.name = "demo", ATTRS(update, .lr = 1, .weight_decay = 1), IN(SHARED(204800), SHARED(1)), .bench = true},

#define ATT_CASES(array) .cases = (array), .case_count = (int)(sizeof(array) / sizeof *(array))

#endif
