#include "progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "stop.h"

enum { WIDTH = 80, MOST_SILENCE = 10 /* seconds */ };

double cli_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Columns to draw in: one less than the terminal has, so that the cursor stays on the line. */
static int terminal_width(void)
{
    struct winsize size;
    int width = WIDTH;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_col < WIDTH)
        width = size.ws_col;
    return width - 1;
}

/* Writes "m:ss" or "h:mm:ss"; "--" for NaN. Returns `text`. */
static char *format_seconds(double seconds, char *text, size_t size)
{
    if (!(seconds >= 0) || seconds > 1e8) {
        snprintf(text, size, "--");
        return text;
    }
    long whole = lround(seconds), minutes = whole / 60 % 60;
    if (whole < 3600)
        snprintf(text, size, "%ld:%02ld", minutes, whole % 60);
    else
        snprintf(text, size, "%ld:%02ld:%02ld", whole / 3600, minutes, whole % 60);
    return text;
}

void cli_bar_clear(cli_app *cli)
{
    if (cli->drawn)
        fprintf(stderr, "\r%*s\r", terminal_width(), "");
    cli->drawn = false;
}

void cli_bar_print(cli_app *cli, const char *format, ...)
{
    va_list arguments;
    if (cli_is_silent() || !isatty(STDERR_FILENO))
        return;
    va_start(arguments, format);
    fputc('\r', stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
    cli->drawn = true;
}

cli_progress cli_progress_to(cli_app *cli, int64_t first, int64_t every)
{
    const char *terminal = getenv("TERM");
    bool draws = isatty(STDERR_FILENO) && !(terminal && strcmp(terminal, "dumb") == 0);
    return (cli_progress){.cli = cli, .terminal = draws, .first = first, .every = every, .last_shown = cli_now()};
}

/* Whether the stage is counted in updates of the whole training, not in batches of an epoch. */
static bool counts_updates(const cli_progress *progress, const att_progress *p)
{
    return progress->in_updates && strcmp(p->stage, "train") == 0;
}

/* "train 3/7", or in a training run that is counted in updates "train", "evaluate 12000/40000" */
static void format_stage(const cli_progress *progress, const att_progress *p, char *text, size_t size)
{
    if (counts_updates(progress, p))
        snprintf(text, size, "%s", p->stage);
    else if (progress->in_updates)
        snprintf(text, size, "%s %lld/%lld", p->stage, (long long)p->update, (long long)p->updates);
    else if (p->epochs > 0)
        snprintf(text, size, "%s %d/%d", p->stage, p->epoch + 1, p->epochs);
    else
        snprintf(text, size, "%s", p->stage);
}

/* "  loss 0.4321  1234 images/s  ETA 3:21"; with several processes also the share of their time that they wait for
 * others, and the slowest of them: "  7 % waiting for rank 3". */
static void format_figures(const att_progress *p, char *text, size_t size)
{
    char left[24], loss[32] = "", others[48] = "";
    if (p->slowest_rank >= 0)
        snprintf(others, sizeof others, "  %.0f %% waiting for rank %d", 100 * p->others_share, p->slowest_rank);
    if (isfinite(p->loss))
        snprintf(loss, sizeof loss, "  loss %.4f", p->loss);
    snprintf(text, size, "%s  %.*f %s/s  ETA %s%s", loss, p->images_per_second < 10 ? 1 : 0, p->images_per_second,
             p->unit ? p->unit : "images", format_seconds(p->seconds_left, left, sizeof left), others);
}

/* "96/1000": samples if they are counted, else batches; "12/40000 updates". */
static void format_count(const cli_progress *progress, const att_progress *p, char *text, size_t size)
{
    const bool samples = p->total > 0;
    if (counts_updates(progress, p))
        snprintf(text, size, "%lld/%lld updates", (long long)p->update, (long long)p->updates);
    else
        snprintf(text, size, "%lld/%lld", (long long)(samples ? p->done : p->batch),
                 (long long)(samples ? p->total : p->batches));
}

/* Cells of the bar, of `cells`, that are full. */
static int full_cells(const cli_progress *progress, const att_progress *p, int cells)
{
    if (counts_updates(progress, p))
        return (int)(cells * p->update / p->updates);
    return p->batches > 0 ? (int)((int64_t)cells * p->batch / p->batches) : 0;
}

static void draw(cli_progress *progress, const att_progress *p)
{
    char stage[40], figures[144], count[48], bar[WIDTH], line[4 * WIDTH];
    format_stage(progress, p, stage, sizeof stage);
    format_figures(p, figures, sizeof figures);
    format_count(progress, p, count, sizeof count);

    int width = terminal_width();
    int cells = width - (int)(strlen(stage) + strlen(count) + strlen(figures)) - 4; /* " [" and "] " */
    if (cells > 30)
        cells = 30;
    if (cells < 4) {
        snprintf(line, sizeof line, "%s %s%s", stage, count, figures);
    } else {
        int full = full_cells(progress, p, cells);
        memset(bar, '#', (size_t)full);
        memset(bar + full, '.', (size_t)(cells - full));
        bar[cells] = '\0';
        snprintf(line, sizeof line, "%s [%s] %s%s", stage, bar, count, figures);
    }
    cli_bar_print(progress->cli, "%-*.*s", width, width, line);
}

static void print_line(const cli_progress *progress, const att_progress *p)
{
    char stage[40], figures[144], count[48];
    format_stage(progress, p, stage, sizeof stage);
    format_figures(p, figures, sizeof figures);
    format_count(progress, p, count, sizeof count);
    fprintf(stderr, "%s  %s%s\n", stage, count, figures);
}

/* The first line of a training run comes after its first update. The last update of an epoch may have fewer batches. */
static bool training_line_is_due(const cli_progress *progress, const att_progress *p)
{
    bool first = !progress->shown && (p->batch % progress->first == 0 || p->batch == p->batches);
    return p->batch > 0 && (first || p->batch % progress->every == 0);
}

static bool tenth_is_due(cli_progress *progress, const att_progress *p)
{
    if (p->epochs > 0 || p->batches <= 0)
        return false;
    int64_t tenth = 10 * p->batch / p->batches;
    bool due = tenth > progress->last_tenth;
    progress->last_tenth = tenth;
    return due;
}

static bool line_is_due(cli_progress *progress, const att_progress *p, double silence)
{
    bool due = strcmp(p->stage, "train") == 0 ? training_line_is_due(progress, p) : tenth_is_due(progress, p);
    return due || silence >= MOST_SILENCE;
}

bool cli_progress_is_due(cli_progress *progress, const att_progress *p, double seconds)
{
    double silence = seconds - progress->last_shown;
    bool due = progress->terminal ? !progress->shown || silence > 0.1 || p->batch == p->batches
                                  : line_is_due(progress, p, silence);
    if (due) {
        progress->shown = true;
        progress->last_shown = seconds;
    }
    return due;
}

bool cli_progress_show(void *user, const att_progress *p)
{
    cli_progress *progress = user;
    bool due = !cli_is_silent() && cli_progress_is_due(progress, p, cli_now());
    if (due && progress->terminal)
        draw(progress, p);
    else if (due)
        print_line(progress, p);
    return !cli_stop_asked();
}

/* Files of less than 1 MB are downloaded without a bar. */
static bool show_download(void *user, const att_progress *p)
{
    static cli_progress shown; /* a process downloads one file at a time */
    cli_app *cli = user;
    if (p->batch == 0)
        shown = cli_progress_to(cli, 1, 1);
    bool goes_on = p->total > 0 ? cli_progress_show(&shown, p) : !cli_stop_asked();
    if (p->batch == p->batches)
        cli_bar_clear(cli);
    return goes_on;
}

void cli_progress_of_downloads(cli_app *cli)
{
    att_hub_show_progress(cli->context, show_download, cli);
}
