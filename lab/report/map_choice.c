#include "lab/report/map_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* An image of a run. All images with the same name in one collection are one picture. */
typedef struct candidate {
    const char *name;
    int64_t collection, run, image;
    int64_t image_count; /* number of images of the picture */
    int64_t first_index; /* smallest index of the picture in any file */
} candidate;

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_pictures(const candidate *a, const candidate *b)
{
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : compare_numbers(a->collection, b->collection);
}

static int compare_candidates(const void *one, const void *other)
{
    const candidate *a = one, *b = other;
    int order = compare_pictures(a, b);
    order = order != 0 ? order : compare_numbers(a->run, b->run);
    return order != 0 ? order : compare_numbers(a->image, b->image);
}

static int compare_priority(const void *one, const void *other)
{
    const candidate *a = one, *b = other;
    int order = compare_numbers(b->image_count, a->image_count);
    order = order != 0 ? order : compare_numbers(a->first_index, b->first_index);
    return order != 0 ? order : compare_candidates(one, other);
}

/* Returns the end of the picture that begins at `begin`. */
static size_t end_of_picture(const candidate *all, size_t count, size_t begin)
{
    size_t end = begin + 1;
    while (end < count && compare_pictures(&all[begin], &all[end]) == 0)
        end++;
    return end;
}

static void find_pictures(candidate *all, size_t count)
{
    qsort(all, count, sizeof(*all), compare_candidates);
    for (size_t begin = 0, end; begin < count; begin = end) {
        int64_t first_index = all[begin].image;
        end = end_of_picture(all, count, begin);
        for (size_t i = begin; i < end; i++)
            first_index = all[i].image < first_index ? all[i].image : first_index;
        for (size_t i = begin; i < end; i++) {
            all[i].image_count = (int64_t)(end - begin);
            all[i].first_index = first_index;
        }
    }
}

static void take_pictures(const candidate *all, size_t count, const att_map_file *maps, size_t bytes,
                          att_map_choice *choices)
{
    bool fits = true;
    for (size_t begin = 0, end; begin < count && fits; begin = end) {
        size_t needed = 0;
        end = end_of_picture(all, count, begin);
        for (size_t i = begin; i < end; i++)
            needed += maps[all[i].run].bytes_per_image;
        fits = needed <= bytes;
        for (size_t i = begin; i < end && (fits || begin == 0); i++) {
            size_t size = maps[all[i].run].bytes_per_image;
            if (size > bytes)
                continue;
            bytes -= size;
            choices[all[i].run].images[choices[all[i].run].count++] = all[i].image;
        }
    }
}

/* Allocates the choice of each run and lists all images. */
static att_status list_candidates(att_context *context, const att_map_file *maps, const int *collections, int runs,
                                  att_map_choice *choices, candidate **all, size_t *count)
{
    for (int r = 0; r < runs; r++) {
        size_t images = (size_t)maps[r].images;
        *count += images;
        if (images > 0 && !(choices[r].images = att_allocate_array(context, images, sizeof(*choices[r].images))))
            return att_fail_memory(context, images * sizeof(*choices[r].images), "the images of a report");
    }
    if (*count == 0)
        return ATT_OK;
    ATT_TRY(att_new(context, all, *count, "the images of a report"));
    candidate *next = *all;
    for (int r = 0; r < runs; r++)
        for (int64_t i = 0; i < maps[r].images; i++)
            *next++ =
                (candidate){.name = att_map_file_name(&maps[r], i), .collection = collections[r], .run = r, .image = i};
    return ATT_OK;
}

att_status att_map_choices_make(att_context *context, const att_map_file *maps, const int *collections, int runs,
                                size_t bytes, att_map_choice *choices)
{
    candidate *all = NULL;
    size_t count = 0;
    att_status status = list_candidates(context, maps, collections, runs, choices, &all, &count);
    if (status == ATT_OK && count > 0) {
        find_pictures(all, count);
        qsort(all, count, sizeof(*all), compare_priority);
        take_pictures(all, count, maps, bytes, choices);
    }
    att_free(context, all);
    return status;
}
