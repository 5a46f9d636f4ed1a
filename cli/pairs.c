#include "pairs.h"

#include <string.h>

const char *cli_instrument_name(const void *user, int index)
{
    (void)user;
    return att_instrument_at(NULL, index).name;
}

/* Checks that the list of instruments has the figure's. */
static int check_measured(const char *name, const char *measured)
{
    for (const char *at = measured;; at++) {
        size_t length = strcspn(at, ",:");
        if ((length == strlen(name) && strncmp(at, name, length) == 0) || (length == 3 && strncmp(at, "all", 3) == 0))
            return CLI_OK;
        at += strcspn(at, ",");
        if (!*at)
            return cli_usage("--correlate: %s is not measured: --measure is %s", name, measured);
    }
}

/* Checks that the figure's instrument exists and is measured. */
static int check_figure(const char *figure, const char *measured)
{
    char name[64];
    att_instrument_info info;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(figure, "/"), figure);
    if (!strchr(figure, '/'))
        return cli_usage(
            "--correlate: \"%s\" is not a figure; expected INSTRUMENT/STATISTIC or "
            "INSTRUMENT/NODE/STATISTIC",
            figure);
    if (!att_instrument_find(NULL, name, &info)) {
        const char *nearest = att_text_nearest(name, cli_instrument_name, NULL, att_instrument_count(NULL));
        return cli_usage("--correlate: there is no instrument \"%s\"%s%s%s", name, nearest ? "; did you mean \"" : "",
                         nearest ? nearest : "", nearest ? "\"?" : "");
    }
    return measured ? check_measured(name, measured) : CLI_OK;
}

int cli_pairs_read(const att_texts *texts, const char *measured, cli_pairs *pairs)
{
    pairs->count = 0;
    for (int i = 0; i < texts->count && i < ATT_SWEEP_MOST_PAIRS; i++) {
        char *x = pairs->figures[i], *comma;
        snprintf(x, CLI_FIGURE, "%s", texts->values[i]);
        comma = strchr(x, ',');
        if (!comma || strchr(comma + 1, ',') || strlen(texts->values[i]) >= CLI_FIGURE)
            return cli_usage("--correlate: \"%.64s\" is not of the form X,Y with two figures", texts->values[i]);
        *comma = '\0';
        pairs->pairs[pairs->count++] = (att_sweep_pair){x, comma + 1};
        int code = check_figure(x, measured);
        code = code == CLI_OK ? check_figure(comma + 1, measured) : code;
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* Whether a run has the figure. If not, `other` is set to another figure of the same instrument, as an example of a
 * name, or to "". */
static bool has_figure(const att_sweep *sweep, const char *figure, char other[CLI_FIGURE])
{
    *other = '\0';
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++) {
            att_measurement m = att_sweep_figure_at(sweep, i, f);
            size_t length = strlen(m.instrument);
            if (att_measurement_is_called(&m, figure))
                return true;
            if (!*other && m.head < 0 && strncmp(figure, m.instrument, length) == 0 && figure[length] == '/')
                snprintf(other, CLI_FIGURE, "%s/%s%s%s", m.instrument, m.node, *m.node ? "/" : "", m.statistic);
        }
    return false;
}

int cli_pairs_find(const cli_pairs *pairs, const att_sweep *sweep, const char *where)
{
    for (int i = 0; i < pairs->count; i++)
        for (int side = 0; side < 2; side++) {
            const char *figure = side == 0 ? pairs->pairs[i].x : pairs->pairs[i].y;
            char other[CLI_FIGURE];
            if (!has_figure(sweep, figure, other))
                return cli_failure("--correlate: no run has a figure \"%s\"%s%s%s; %s lists all names", figure,
                                   *other ? ", but for example \"" : "", other, *other ? "\"" : "", where);
        }
    return CLI_OK;
}
