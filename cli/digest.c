#include "digest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a of 64 bits, of bytes and of whole f32. (Fowler, Noll, Vo) */
#define PRIME UINT64_C(1099511628211)
#define BASIS UINT64_C(14695981039346656037)

static void write_digest(uint64_t sum, char digest[CLI_DIGEST])
{
    snprintf(digest, CLI_DIGEST, "%016" PRIx64, sum);
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static uint64_t digest_more(uint64_t sum, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum = (sum ^ bits) * PRIME;
    }
    return sum;
}

att_status cli_weights_digest(const att_weights *weights, char digest[CLI_DIGEST])
{
    uint64_t sum = BASIS;
    int64_t most = 1;
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        most = count > most ? count : most;
    }
    float *values = malloc((size_t)most * sizeof *values);
    att_status status = values ? ATT_OK : ATT_ERR_MEMORY;
    for (int i = 0; i < att_weights_count(weights) && status == ATT_OK; i++) {
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        status = att_weights_get(weights, -1, i, values, count);
        if (status == ATT_OK)
            sum = digest_more(sum, values, count);
    }
    free(values);
    write_digest(sum, digest);
    return status;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static uint64_t digest_bytes(uint64_t sum, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ at[i]) * PRIME;
    return sum;
}

static uint64_t digest_name(const att_dataset *dataset, int64_t index)
{
    enum { NAME_SIZE = 8192 };
    char name[NAME_SIZE];
    att_dataset_short_name(dataset, index, name, sizeof name);
    return digest_bytes(BASIS, name, strlen(name));
}

static uint64_t digest_image(cli_app *cli, const att_dataset *dataset, int64_t index)
{
    att_image image;
    if (att_dataset_read(dataset, cli->context, index, 1, &image) != ATT_OK)
        return 0;
    const int size[] = {image.width, image.height};
    uint64_t sum = digest_bytes(BASIS, size, sizeof size);
    sum = digest_bytes(sum, image.pixels, (size_t)image.width * (size_t)image.height);
    att_image_free(cli->context, &image);
    return sum;
}

typedef struct looked_at {
    uint64_t name;
    int64_t index;
} looked_at;

void cli_images_digest(cli_app *cli, const att_dataset *dataset, char digest[CLI_DIGEST])
{
    /* Those whose names have the least digests: an order that no other image and no class changes. */
    enum { LOOKED_AT = 8 };
    looked_at chosen[LOOKED_AT + 1];
    int count = 0;
    uint64_t sum = 0;
    for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
        uint64_t name = digest_name(dataset, i);
        sum += name;
        int at = count;
        for (; at > 0 && chosen[at - 1].name > name; at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = (looked_at){name, i};
        count += count < LOOKED_AT;
    }
    for (int i = 0; i < count; i++)
        sum = sum * PRIME + digest_image(cli, dataset, chosen[i].index);
    write_digest(sum, digest);
}
