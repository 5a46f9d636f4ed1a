#include <math.h>
#include <string.h>

#include <attscope/picture.h>

/* Colours at equal distances; between them colours are interpolated, with an error of at most 3 of 255. */
typedef struct colour_map {
    const char *name;
    int count;
    uint32_t at[17];
} colour_map;

static const colour_map maps[] = {
    {"viridis",
     17,
     {0x440154, 0x48186a, 0x472d7b, 0x424086, 0x3b528b, 0x33638d, 0x2c728e, 0x26828e, 0x21918c, 0x1f9f88, 0x27ad81,
      0x3dbc74, 0x5cc863, 0x81d34d, 0xaadc32, 0xd5e21a, 0xfde725}},
    {"magma",
     17,
     {0x000004, 0x0a0822, 0x1d1147, 0x36106b, 0x51127c, 0x6a1c81, 0x832681, 0x9c2e7f, 0xb73779, 0xcf4070, 0xe55064,
      0xf4695c, 0xfb8761, 0xfea571, 0xfec287, 0xfde0a1, 0xfcfdbf}},
    {"inferno",
     17,
     {0x000004, 0x0b0724, 0x210c4a, 0x3d0965, 0x57106e, 0x71196e, 0x8a226a, 0xa32c61, 0xbc3754, 0xd04545, 0xe35933,
      0xf1711f, 0xf98c0a, 0xfcaa0f, 0xf9c932, 0xf2e865, 0xfcffa4}},
    {"plasma",
     17,
     {0x0d0887, 0x310597, 0x4c02a1, 0x6600a7, 0x7e03a8, 0x9511a1, 0xaa2395, 0xbc3587, 0xcc4778, 0xd9586a, 0xe56b5d,
      0xf07f4f, 0xf89441, 0xfdab33, 0xfdc328, 0xf9dd25, 0xf0f921}},
    {"grey", 2, {0x000000, 0xffffff}},
    {"diverging", 3, {0x2059b0, 0xf4f4f4, 0xb32430}},
};
enum { MAPS = sizeof maps / sizeof *maps };

const char *att_colour_map_name(int index)
{
    return index >= 0 && index < MAPS ? maps[index].name : NULL;
}

static double channel(uint32_t colour, int index)
{
    return colour >> (16 - 8 * index) & 255;
}

bool att_colour_of(const char *colours, double value, uint8_t colour[3])
{
    for (int m = 0; m < MAPS; m++) {
        if (strcmp(maps[m].name, colours) != 0)
            continue;
        const double place = fmin(fmax(value, 0), 1) * (maps[m].count - 1);
        const int first = place < maps[m].count - 1 ? (int)place : maps[m].count - 2;
        for (int c = 0; c < 3; c++) {
            const double from = channel(maps[m].at[first], c), to = channel(maps[m].at[first + 1], c);
            colour[c] = (uint8_t)lround(from + (to - from) * (place - first));
        }
        return true;
    }
    return false;
}
