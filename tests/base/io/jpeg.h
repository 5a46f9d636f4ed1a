/* io/jpeg.h - for tests: makes JPEGs of noise with libjpeg. */
#ifndef TESTS_IO_JPEG_H
#define TESTS_IO_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef struct jpeg_kind {
    int width, height, components;
    int across, down; /* luma samples per chroma sample */
    int restart;      /* MCUs between two restart markers; 0: none */
    bool progressive;
    int scans; /* number of scans of the only component, 2 to 1 + 63 * 4; 0: the usual ones */
    int blue;  /* horizontal samples of the first chroma component per sample of the second; 0: one */
} jpeg_kind;

/* The constant coefficients, then each other coefficient in four scans, from coarse to exact. */
static inline void jpeg_script(struct jpeg_compress_struct *info, jpeg_scan_info *scans, int count)
{
    scans[0] = (jpeg_scan_info){.comps_in_scan = 1};
    for (int i = 1; i < count; i++) {
        int coefficient = 1 + (i - 1) / 4, rest = 3 - (i - 1) % 4;
        scans[i] = (jpeg_scan_info){
            .comps_in_scan = 1, .Ss = coefficient, .Se = coefficient, .Ah = rest == 3 ? 0 : rest + 1, .Al = rest};
    }
    info->scan_info = scans;
    info->num_scans = count;
}

/* *bytes belongs to the caller, who frees it. */
static inline void jpeg_make(const jpeg_kind *kind, uint8_t **bytes, size_t *size)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned long length = 0;
    uint8_t *row = malloc((size_t)kind->width * (size_t)kind->components);
    uint32_t noise = 7;
    *bytes = NULL;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, bytes, &length);
    info.image_width = (JDIMENSION)kind->width;
    info.image_height = (JDIMENSION)kind->height;
    info.input_components = kind->components;
    info.in_color_space = kind->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    info.restart_interval = (unsigned int)kind->restart;
    info.comp_info[0].h_samp_factor = kind->across;
    info.comp_info[0].v_samp_factor = kind->down;
    if (kind->blue)
        info.comp_info[1].h_samp_factor = kind->blue;
    jpeg_scan_info *scans = calloc((size_t)kind->scans + 1, sizeof *scans);
    if (kind->scans > 0)
        jpeg_script(&info, scans, kind->scans);
    else if (kind->progressive)
        jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < kind->height; y++) {
        for (int i = 0; i < kind->width * kind->components; i++) {
            noise = noise * 1664525 + 1013904223;
            row[i] = (uint8_t)(noise >> 24);
        }
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    free(scans);
    free(row);
    *size = length;
}

#endif
