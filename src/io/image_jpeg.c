/* JPEG by libjpeg-turbo. Damage in the coded data, which libjpeg only warns of, is an error here; stray bytes between
 * segments and odd headers, which many photographs have, are not. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/image_codec.h"

/* A progressive file may ask for any number of passes over the whole picture; encoders write about ten. */
enum { MAX_SCANS = 128 };

typedef struct jpeg_run {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    char reason[JMSG_LENGTH_MAX];
    bool out_of_memory;
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

static void on_message(j_common_ptr info, int level)
{
    int code = info->err->msg_code;
    if (level < 0 && (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
                      code == JWRN_MUST_RESYNC))
        on_error(info);
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

/* A file of several scans is collected whole, as coefficients, before the first row comes out. */
static att_status check_memory(jpeg_run *run)
{
    const att_image_job *job = run->job;
    size_t coefficients = (size_t)run->info.image_width * run->info.image_height * (size_t)run->info.num_components;
    if (jpeg_has_multiple_scans(&run->info) && coefficients > job->limits->memory / sizeof(JCOEF))
        return att_fail(job->context, ATT_ERR_UNSUPPORTED, "%s: needs %zu bytes, more than the limit of %zu", job->name,
                        coefficients * sizeof(JCOEF), job->limits->memory);
    return ATT_OK;
}

/* Everything in here may leave by longjmp. */
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
    size_t row_bytes = (size_t)info->image_width * (size_t)att_row_samples(kind);
    run->row = att_allocate(job->context, row_bytes);
    if (!run->row)
        return att_fail_memory(job->context, row_bytes, job->name);
    info->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        int y = (int)info->output_scanline;
        jpeg_read_scanlines(info, &run->row, 1);
        att_image_put_row(run->image, y, kind, run->row);
    }
    return ATT_OK;
}

att_status att_image_decode_jpeg(const att_image_job *job, att_image *image)
{
    jpeg_run *run = att_allocate(job->context, sizeof *run);
    if (!run)
        return att_fail_memory(job->context, sizeof *run, job->name);
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
    jpeg_destroy_decompress(&run->info);
    att_free(job->context, run->row);
    att_free(job->context, run);
    return status;
}
