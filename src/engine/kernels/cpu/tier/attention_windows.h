/* kernels/cpu/tier/attention_windows.h - the tokens of each window of attention, and their masks. */
#ifndef ATT_KERNELS_CPU_TIER_ATTENTION_WINDOWS_H
#define ATT_KERNELS_CPU_TIER_ATTENTION_WINDOWS_H

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/simd.h"
#include "engine/ops/attention.h"

enum { WINDOW_REGIONS = 4 };

/* Tokens of window w: [w tokens, (w + 1) tokens) of `index` and `region`. */
typedef struct window_tokens {
    int64_t windows, tokens, padded; /* tokens of a window, and that number rounded up to whole vectors */
    int32_t *index, *region;
    float *masks; /* [windows][WINDOW_REGIONS][padded]: the term of each key for a query of a region */
    bool *masked; /* [windows]: whether the window has tokens of several regions */
} window_tokens;

static inline void window_tokens_fill(window_tokens *t, const att_attention_attrs *attrs)
{
    for (int64_t i = 0; i < t->windows * t->tokens; i++) {
        att_attention_token token = att_attention_token_at(attrs, i / t->tokens, i % t->tokens);
        t->index[i] = (int32_t)token.index;
        t->region[i] = (int32_t)token.region;
    }
    for (int64_t w = 0; w < t->windows; w++)
        for (int64_t i = 0; i < t->tokens; i++) {
            int32_t region = t->region[w * t->tokens + i];
            t->masked[w] = t->masked[w] || region != t->region[w * t->tokens];
            for (int r = 0; r < WINDOW_REGIONS; r++)
                t->masks[(w * WINDOW_REGIONS + r) * t->padded + i] = r == region ? 0 : (float)ATT_ATTENTION_MASK;
        }
}

/* The caller frees the result with att_free(); NULL if memory is exhausted. */
static inline window_tokens *window_tokens_create(att_context *context, const att_attention_attrs *attrs)
{
    int64_t windows = att_attention_windows(attrs), tokens = (int64_t)attrs->window_h * attrs->window_w;
    int64_t padded = whole_vectors(tokens);
    size_t masks = (size_t)(windows * WINDOW_REGIONS * padded), places = (size_t)(windows * tokens);
    size_t bytes = sizeof(window_tokens) + masks * sizeof(float) + 2 * places * sizeof(int32_t) + (size_t)windows;
    window_tokens *t = att_allocate(context, bytes);
    if (!t) {
        att_fail_memory(context, bytes, "the windows of attention");
        return NULL;
    }
    memset(t, 0, bytes);
    t->windows = windows, t->tokens = tokens, t->padded = padded;
    t->masks = (float *)(t + 1);
    t->index = (int32_t *)(t->masks + masks);
    t->region = t->index + places;
    t->masked = (bool *)(t->region + places);
    window_tokens_fill(t, attrs);
    return t;
}

/* The term of each key of a window for its query i; NULL if all are 0. */
static inline const float *window_mask(const window_tokens *t, int64_t window, int64_t i)
{
    if (!t->masked[window])
        return NULL;
    return t->masks + (window * WINDOW_REGIONS + t->region[window * t->tokens + i]) * t->padded;
}

#endif
