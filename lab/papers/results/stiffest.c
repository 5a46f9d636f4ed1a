#include "lab/papers/results/stiffest.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 256 };

/* Adds the zeta of each block of a run, in the order of the blocks. */
static void add_zeta(const att_report_run *run, double zeta[MOST_BLOCKS])
{
    int block = 0;
    for (int e = 0; run->has_measure_file && e < run->measured.count; e++) {
        const att_figures *figures = run->measured.records[e];
        for (int i = 0; i < figures->count; i++) {
            const att_measurement *item = &figures->items[i];
            if (strcmp(item->instrument, "nsi") == 0 && strcmp(item->statistic, "attention") == 0 &&
                block < MOST_BLOCKS)
                zeta[block++] += item->mean;
        }
    }
}

/* Returns the number behind `length` characters of the setting, which are those of `wanted`; -1 if it is another. */
static int block_of(const char *wanted, size_t length, const char *setting)
{
    const char *number = setting + length;
    const bool same = strncmp(wanted, setting, length) == 0 && *number && number[strspn(number, "0123456789")] == '\0';
    const long block = same ? strtol(number, NULL, 10) : -1;
    return block < MOST_BLOCKS ? (int)block : -1;
}

static int stiffest(const att_result_folder *folder, const char *wanted, size_t length)
{
    double zeta[MOST_BLOCKS] = {0};
    int best = -1;
    for (int i = 0; i < folder->sweep.count; i++)
        if (strcmp(folder->sweep.runs[i].setting, "modules=none") == 0)
            add_zeta(&folder->runs[i], zeta);
    for (int i = 0; i < folder->sweep.count; i++) {
        const int block = block_of(wanted, length, folder->sweep.runs[i].setting);
        if (block >= 0 && (best < 0 || zeta[block] > zeta[best]))
            best = block;
    }
    return best;
}

bool att_result_is_setting(const att_result_folder *folder, const char *wanted, const char *setting)
{
    const char *word = strchr(wanted, '{');
    if (!word)
        return strcmp(wanted, setting) == 0;
    const size_t length = (size_t)(word - wanted);
    const int block = block_of(wanted, length, setting);
    return block >= 0 && (block == stiffest(folder, wanted, length)) == (strcmp(word, "{stiffest}") == 0);
}
