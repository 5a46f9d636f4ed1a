/* Decodes WebP with libwebp. Of an animation, decodes the first frame; the canvas around the frame is black, as in
 * Pillow. */
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/image_codec.h"

/* DECODER_BYTES: memory per pixel that libwebp uses while it decodes. The lossless format needs the most: a whole ARGB
 * picture. */
enum { DECODER_BYTES = 4, RGB = 3 };

static att_status fail_webp(const att_image_job *job, const char *reason)
{
    return att_fail(job->context, ATT_ERR_FORMAT, "%s: not a WebP that can be decoded: %s", job->name, reason);
}

static const char *reason_of(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "the data are truncated";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it uses a feature that libwebp does not know";
    default:
        return "the data are corrupt";
    }
}

/* Decodes the frame to its position in `canvas`, which has three bytes per pixel. */
static att_status decode_frame(const att_image_job *job, const WebPIterator *frame, const att_image *image,
                               uint8_t *canvas)
{
    WebPDecoderConfig config;
    size_t stride = (size_t)image->width * RGB, bytes = stride * (size_t)image->height;
    size_t offset = (size_t)frame->y_offset * stride + (size_t)frame->x_offset * RGB;
    bool inside = frame->x_offset >= 0 && frame->y_offset >= 0 && frame->width <= image->width - frame->x_offset &&
                  frame->height <= image->height - frame->y_offset;
    if (!inside)
        return fail_webp(job, "its frame lies outside the canvas");
    if (!WebPInitDecoderConfig(&config))
        return att_fail(job->context, ATT_ERR_INTERNAL, "%s: libwebp has another version than its headers", job->name);
    if (frame->width < image->width || frame->height < image->height)
        memset(canvas, 0, bytes);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){canvas + offset, (int)stride, bytes - offset};
    VP8StatusCode code = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return att_fail(job->context, ATT_ERR_MEMORY, "%s: out of memory for decoding", job->name);
    return code == VP8_STATUS_OK ? ATT_OK : fail_webp(job, reason_of(code));
}

/* Decodes to RGB and converts the result to grey. */
static att_status decode_grey(const att_image_job *job, const WebPIterator *frame, att_image *image)
{
    size_t row = (size_t)image->width * RGB, bytes = row * (size_t)image->height;
    uint8_t *canvas = att_reallocate(job->context, NULL, bytes);
    if (!canvas)
        return att_fail_memory(job->context, bytes, job->name);
    att_status status = decode_frame(job, frame, image, canvas);
    for (int y = 0; status == ATT_OK && y < image->height; y++)
        att_image_put_row(image, y, ATT_ROW_RGB, canvas + (size_t)y * row);
    att_free(job->context, canvas);
    return status;
}

static att_status read_picture(const att_image_job *job, const WebPDemuxer *file, att_image *image)
{
    uint64_t width = WebPDemuxGetI(file, WEBP_FF_CANVAS_WIDTH), height = WebPDemuxGetI(file, WEBP_FF_CANVAS_HEIGHT);
    ATT_TRY(att_image_make(job, width, height, image));
    size_t needed = (size_t)width * (size_t)height * (DECODER_BYTES + (job->channels == 1 ? RGB : 0));
    if (needed > job->limits->memory)
        return att_fail(job->context, ATT_ERR_UNSUPPORTED, "%s: needs %zu bytes, more than the limit of %zu", job->name,
                        needed, job->limits->memory);
    WebPIterator frame;
    if (!WebPDemuxGetFrame(file, 1, &frame))
        return fail_webp(job, "it contains no frame");
    att_status status =
        job->channels == 1 ? decode_grey(job, &frame, image) : decode_frame(job, &frame, image, image->pixels);
    WebPDemuxReleaseIterator(&frame);
    return status;
}

att_status att_image_decode_webp(const att_image_job *job, att_image *image)
{
    WebPData data = {job->bytes, job->size};
    WebPDemuxState state;
    WebPDemuxer *file = WebPDemuxPartial(&data, &state);
    att_status status = state == WEBP_DEMUX_DONE
                            ? read_picture(job, file, image)
                            : fail_webp(job, reason_of(state == WEBP_DEMUX_PARSE_ERROR ? VP8_STATUS_BITSTREAM_ERROR
                                                                                       : VP8_STATUS_NOT_ENOUGH_DATA));
    WebPDemuxDelete(file);
    return status;
}
