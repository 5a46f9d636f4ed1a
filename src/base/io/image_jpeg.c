/* Decodes JPEG with libjpeg-turbo. As in Pillow, decoding fails only if the data are truncated or libjpeg reports an
 * error. If coded data are damaged, libjpeg continues decoding, and a warning is logged. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/image_codec.h"

/* MAX_SCANS: limit on the scans of a progressive file, each of which is a pass over the whole picture. Encoders write
 * about ten.
 * MARGIN: pixels decoded around the needed box. libjpeg interpolates chroma between neighbouring pixels and replicates
 * pixels at the borders of the decoded part, so pixels within MARGIN of such a border would differ from those of the
 * whole picture. */
enum { MAX_SCANS = 128, MARGIN = 4 };

typedef struct jpeg_run {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    char reason[JMSG_LENGTH_MAX];
    bool out_of_memory;
    char damage[JMSG_LENGTH_MAX]; /* libjpeg's message about the first damage; "" if there is none */
    const att_image_job *job;
    att_image *image;
    uint8_t *row;
    att_status status;
} jpeg_run;

static _Noreturn void leave(jpeg_run *run)
{
    longjmp(run->failed, 1);
}

static void on_error(j_common_ptr info)
{
    jpeg_run *run = info->client_data;
    info->err->format_message(info, run->reason);
    run->out_of_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
    leave(run);
}

/* Records messages about damaged coded data. Ignores messages about extra bytes between segments and unusual headers,
 * which many photographs have. */
static void on_message(j_common_ptr info, int level)
{
    jpeg_run *run = info->client_data;
    int code = info->err->msg_code;
    if (level < 0 && run->damage[0] == '\0' &&
        (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
         code == JWRN_MUST_RESYNC))
        info->err->format_message(info, run->damage);
}

static void print_nothing(j_common_ptr info)
{
    (void)info;
}

static void on_progress(j_common_ptr info)
{
    jpeg_run *run = info->client_data;
    if (run->info.input_scan_number <= MAX_SCANS)
        return;
    snprintf(run->reason, sizeof run->reason, "more than %d scans", MAX_SCANS);
    leave(run);
}

static void source_nothing(j_decompress_ptr info)
{
    (void)info;
}

static boolean source_exhausted(j_decompress_ptr info)
{
    jpeg_run *run = info->client_data;
    snprintf(run->reason, sizeof run->reason, "truncated: the data end after %zu bytes", run->job->size);
    leave(run);
}

static void source_skip(j_decompress_ptr info, long count)
{
    if (count <= 0)
        return;
    if ((unsigned long)count > info->src->bytes_in_buffer)
        source_exhausted(info);
    info->src->next_input_byte += count;
    info->src->bytes_in_buffer -= (size_t)count;
}

static bool choose_colours(jpeg_run *run, att_row_kind *kind)
{
    switch (run->info.num_components) {
    case 1:
        run->info.out_color_space = JCS_GRAYSCALE;
        *kind = ATT_ROW_GREY;
        return true;
    case 3:
        run->info.out_color_space = JCS_RGB;
        *kind = ATT_ROW_RGB;
        return true;
    case 4:
        run->info.out_color_space = JCS_CMYK;
        *kind = ATT_ROW_CMYK_INVERTED;
        return true;
    default:
        return false;
    }
}

/* libjpeg keeps all coefficients of a file with several scans in memory. */
static att_status check_memory(jpeg_run *run)
{
    const att_image_job *job = run->job;
    size_t coefficients = (size_t)run->info.image_width * run->info.image_height * (size_t)run->info.num_components;
    if (jpeg_has_multiple_scans(&run->info) && coefficients > job->limits->memory / sizeof(JCOEF))
        return att_fail(job->context, ATT_ERR_UNSUPPORTED, "%s: needs %zu bytes, more than the limit of %zu", job->name,
                        coefficients * sizeof(JCOEF), job->limits->memory);
    return ATT_OK;
}

/* --- rows (these functions may leave by longjmp) ------------------------------------------------------------------ */

static void read_by_rows(jpeg_run *run, att_row_kind kind)
{
    struct jpeg_decompress_struct *info = &run->info;
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        int y = (int)info->output_scanline;
        jpeg_read_scanlines(info, &run->row, 1);
        att_image_put_row(run->image, y, kind, run->row);
    }
}

/* Decodes rows up to `end` (exclusive) into the image, starting at column x. */
static void read_until(jpeg_run *run, int x, int end)
{
    const att_image *image = run->image;
    while ((int)run->info.output_scanline < end) {
        size_t pixel = (size_t)run->info.output_scanline * (size_t)image->width + (size_t)x;
        JSAMPROW row = image->pixels + pixel * (size_t)image->channels;
        jpeg_read_scanlines(&run->info, &row, 1);
    }
}

static void skip_until(jpeg_run *run, int end)
{
    if ((int)run->info.output_scanline < end)
        jpeg_skip_scanlines(&run->info, (JDIMENSION)end - run->info.output_scanline);
}

/* Decodes the box directly into the image's rows. Outside the box, the data are entropy-decoded to find damage, but not
 * transformed to pixels. */
static void read_in_place(jpeg_run *run, att_box box)
{
    struct jpeg_decompress_struct *info = &run->info;
    int width = run->image->width, height = run->image->height;
    int left = box.x < MARGIN ? 0 : box.x - MARGIN, top = box.y < MARGIN ? 0 : box.y - MARGIN;
    int right = width - box.x - box.width < MARGIN ? width : box.x + box.width + MARGIN;
    JDIMENSION x = (JDIMENSION)left, columns = (JDIMENSION)(right - left);
    jpeg_start_decompress(info);
    if (left > 0 || right < width)
        jpeg_crop_scanline(info, &x, &columns);
    skip_until(run, top);
    read_until(run, (int)x, box.y + box.height);
    skip_until(run, height - 1);
    read_until(run, (int)x, height);
}

/* Returns the box to decode: the needed box, or the whole picture if its chroma sampling is unusual. */
static att_box needed_box(const jpeg_run *run)
{
    const struct jpeg_decompress_struct *info = &run->info;
    const att_image_need *need = run->job->need;
    bool plain = info->max_h_samp_factor <= 2 && info->max_v_samp_factor <= 2;
    for (int c = 1; c < info->num_components; c++)
        plain = plain && info->comp_info[c].h_samp_factor == 1 && info->comp_info[c].v_samp_factor == 1;
    att_box all = {0, 0, run->image->width, run->image->height};
    return need && need->box && plain ? need->box(need->user, all.width, all.height) : all;
}

/* May leave by longjmp. */
static att_status read_picture(jpeg_run *run)
{
    const att_image_job *job = run->job;
    struct jpeg_decompress_struct *info = &run->info;
    att_row_kind kind;

    jpeg_create_decompress(info);
    info->client_data = run;
    info->src = &run->source;
    info->progress = &run->progress;
    jpeg_read_header(info, TRUE);
    if (!choose_colours(run, &kind))
        return att_fail(job->context, ATT_ERR_UNSUPPORTED, "%s: a JPEG of %d components", job->name,
                        info->num_components);
    ATT_TRY(att_image_make(job, info->image_width, info->image_height, run->image));
    ATT_TRY(check_memory(run));
    info->dct_method = JDCT_ISLOW;
    if (att_row_samples(kind) == job->channels) {
        read_in_place(run, needed_box(run));
        return ATT_OK;
    }
    size_t row_bytes = (size_t)info->image_width * (size_t)att_row_samples(kind);
    run->row = att_reallocate(job->context, NULL, row_bytes);
    if (!run->row)
        return att_fail_memory(job->context, row_bytes, job->name);
    read_by_rows(run, kind);
    return ATT_OK;
}

att_status att_image_decode_jpeg(const att_image_job *job, att_image *image)
{
    jpeg_run *run;
    ATT_TRY(att_new(job->context, &run, 1, job->name));
    run->job = job;
    run->image = image;
    run->info.client_data = run;
    run->info.err = jpeg_std_error(&run->errors);
    run->errors.error_exit = on_error;
    run->errors.emit_message = on_message;
    run->errors.output_message = print_nothing;
    run->progress.progress_monitor = on_progress;
    run->source = (struct jpeg_source_mgr){.next_input_byte = job->bytes,
                                           .bytes_in_buffer = job->size,
                                           .init_source = source_nothing,
                                           .fill_input_buffer = source_exhausted,
                                           .skip_input_data = source_skip,
                                           .resync_to_restart = jpeg_resync_to_restart,
                                           .term_source = source_nothing};
    if (setjmp(run->failed) == 0)
        run->status = read_picture(run);
    else
        run->status = att_fail(job->context, run->out_of_memory ? ATT_ERR_MEMORY : ATT_ERR_FORMAT,
                               "%s: not a JPEG that can be decoded: %s", job->name, run->reason);
    att_status status = run->status;
    if (status == ATT_OK && run->damage[0])
        att_log(job->context, ATT_LOG_WARNING, "%s: damaged, decoded as far as possible: %s", job->name, run->damage);
    jpeg_destroy_decompress(&run->info);
    att_free(job->context, run->row);
    att_free(job->context, run);
    return status;
}
