#include "engine/ops/patchify.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

/* Reads the lines of an image once, in order. Each line is split by channel into scratch; then its pieces are copied to
 * the patches, whose elements are ordered (channel, row, column). */

/* Splits line [width][channels] into planes [channels][width]. */
ATT_INLINE void split_line(const float *line, int64_t width, int64_t channels, float *planes)
{
#pragma omp simd
    for (int64_t x = 0; x < width; x++)
        for (int64_t c = 0; c < channels; c++)
            planes[c * width + x] = line[x * channels + c];
}

static void split_three(const float *restrict line, int64_t width, float *restrict planes)
{
    split_line(line, width, 3, planes);
}

/* Writes row y of the patches that begin at element `first` of the output, from the planes of their line. */
ATT_INLINE void fill_row(const att_call *call, const float *planes, int64_t first, int64_t y, bool is_bf16)
{
    const att_desc *image = &call->problem->in[0];
    const int32_t *patch = ATT_ATTRS(call->problem, patch)->patch;
    int64_t width = image->shape.dims[1], channels = image->shape.dims[2], patch_h = patch[0], patch_w = patch[1];
    for (int64_t p = 0; p < width / patch_w; p++)
        for (int64_t c = 0; c < channels; c++) {
            const float *from = planes + c * width + p * patch_w;
            int64_t to = first + ((p * channels + c) * patch_h + y) * patch_w;
            for (int64_t x = 0; x < patch_w; x += VW)
                v_put_until(call->out[0], to + x, to + patch_w, v_get_until(from, x, patch_w, false), is_bf16);
        }
}

/* Parts share the rows of patches of all samples. */
ATT_INLINE void patchify_as(const att_call *call, bool is_bf16)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    const int32_t *patch = ATT_ATTRS(call->problem, patch)->patch;
    int64_t patch_h = patch[0], down = dims[0] / patch_h, line = dims[1] * dims[2];
    int64_t strip = dims[1] / patch[1] * patch[1] * patch_h * dims[2];
    att_range part = att_part_of(call, call->problem->group * down, 1);
    for (int64_t row = part.begin * patch_h; row < part.end * patch_h; row++) {
        int64_t sample = row / patch_h / down;
        const float *from = (const float *)call->in[0] + (row + sample * (dims[0] - down * patch_h)) * line;
        if (dims[2] == 3)
            split_three(from, dims[1], call->scratch);
        else
            split_line(from, dims[1], dims[2], call->scratch);
        fill_row(call, call->scratch, row / patch_h * strip, row % patch_h, is_bf16);
    }
}

static att_status patchify_run(const att_call *call)
{
    return run_for_type(call, patchify_as, &call->problem->out[0]);
}

static att_status patchify_prepare(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(dims[1] * dims[2]) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(patchify, .bf16_out = 1, .prepare = patchify_prepare, .run = patchify_run);
