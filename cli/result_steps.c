#include "result_steps.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <attscope/file.h>

#include "child.h"
#include "paths.h"

/* What the words in braces of a command stand for. */
typedef struct words {
    const char *root, *data, *weights, *each;
    char run[CLI_PATH], recipe[CLI_PATH], time[CLI_PATH];
    int seed;       /* 0: none */
    double seconds; /* that all commands took so far */
} words;

static const char *value_of(const words *w, const char *word, size_t length, char seed[16])
{
    const struct {
        const char *word, *value;
    } table[] = {{"{root}", w->root}, {"{run}", w->run}, {"{data}", w->data},    {"{weights}", w->weights},
                 {"{each}", w->each}, {"{seed}", seed},  {"{recipe}", w->recipe}};
    snprintf(seed, 16, "%d", w->seed);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].word) == length && strncmp(table[i].word, word, length) == 0)
            return table[i].value ? table[i].value : "";
    return NULL;
}

/* Writes the text with the values of its words. Returns false if it does not fit. */
static bool fill(const words *w, const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text && used + 1 < size) {
        char seed[16];
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        const char *value = end ? value_of(w, text, (size_t)(end - text) + 1, seed) : NULL;
        if (value) {
            used += (size_t)snprintf(out + used, size - used, "%s", value);
            text = end + 1;
        } else
            out[used++] = *text++;
    }
    if (used < size)
        out[used] = '\0';
    return used < size;
}

static bool has_word(const att_result_step *step, const char *word)
{
    for (int i = 0; step->arguments[i]; i++)
        if (strstr(step->arguments[i], word))
            return true;
    return false;
}

/* --- one command -------------------------------------------------------------------------------------------------- */

/* Writes the command as it would be typed, or as much of it as fits. */
static const char *show_command(const char *const *arguments, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; arguments[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, strpbrk(arguments[i], " *") ? "%s'%s'" : "%s%s",
                                 i ? " " : "", arguments[i]);
    return text;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The file {run}/seconds has the time of all commands so far, so that it survives the end of this process. */
static double read_seconds(const words *w)
{
    double seconds = 0;
    FILE *file = fopen(w->time, "r");
    if (file && fscanf(file, "%lf", &seconds) != 1)
        seconds = 0;
    if (file)
        fclose(file);
    return seconds;
}

/* Runs the command in a child process, and adds its time. Returns the child's exit code. */
static int run_child(cli_app *cli, const char *const *arguments, words *w)
{
    char text[32];
    const double begin = now();
    const int code = cli_child(arguments, NULL, NULL);
    w->seconds += now() - begin;
    snprintf(text, sizeof text, "%.1f\n", w->seconds);
    const int written = cli_file_write(cli, w->time, text, strlen(text));
    return code == CLI_OK ? written : code;
}

static int execute(cli_app *cli, const result_place *place, const att_result_step *step, words *w)
{
    char texts[ATT_RESULT_ARGUMENTS][CLI_PATH], done[CLI_PATH] = "", line[2 * CLI_PATH];
    const char *arguments[ATT_RESULT_ARGUMENTS + 2] = {"attscope"};
    bool fits = !step->writes || fill(w, step->writes, done, sizeof done);
    for (int i = 0; fits && i < ATT_RESULT_ARGUMENTS && step->arguments[i]; i++) {
        fits = fill(w, step->arguments[i], texts[i], CLI_PATH);
        arguments[i + 1] = texts[i];
    }
    if (!fits)
        return cli_usage("--output: the path is too long");
    if (*done && cli_exists(done))
        return CLI_OK;
    show_command(arguments, line, sizeof line);
    if (place->only_print) {
        cli_print("  %s\n", line);
        return CLI_OK;
    }
    cli_note(cli, "%s", line);
    const int code = run_child(cli, arguments, w);
    return code == CLI_OK || code == CLI_STOPPED
               ? code
               : cli_failure("attscope %s failed; the same command continues here", arguments[1]);
}

/* --- the folders of a sweep --------------------------------------------------------------------------------------- */

typedef struct each_job {
    cli_app *cli;
    const result_place *place;
    const att_result_step *step;
    words *words;
    int code;
} each_job;

static att_status execute_in(void *user, const char *folder)
{
    each_job *job = user;
    job->words->each = folder;
    job->code = execute(job->cli, job->place, job->step, job->words);
    return job->code == CLI_OK ? ATT_OK : ATT_ERR_STOPPED;
}

static int execute_each(cli_app *cli, const result_place *place, const att_result_step *step, words *w)
{
    each_job job = {cli, place, step, w, CLI_OK};
    att_status status = att_result_visit_folders(cli->context, w->run, execute_in, &job);
    w->each = NULL;
    return job.code != CLI_OK ? job.code : cli_check(cli, status);
}

/* --- all commands ------------------------------------------------------------------------------------------------- */

static int execute_step(cli_app *cli, const result_place *place, const att_result_step *step, words *w)
{
    int code = CLI_OK;
    if (has_word(step, "{each}"))
        return execute_each(cli, place, step, w);
    for (w->seed = step->seeds > 0 ? 1 : 0; code == CLI_OK && w->seed <= step->seeds; w->seed++)
        code = execute(cli, place, step, w);
    return code;
}

int result_run(cli_app *cli, const att_result_run *run, const result_place *place, double *seconds)
{
    words w = {.root = place->root, .data = place->data, .weights = place->weights};
    cli_join(place->root, run->name, w.run, sizeof w.run);
    cli_join(w.run, "recipe.yaml", w.recipe, sizeof w.recipe);
    cli_join(w.run, "seconds", w.time, sizeof w.time);
    w.seconds = read_seconds(&w);
    int code = *w.recipe && *w.time ? CLI_OK : cli_usage("--output: the path is too long");
    if (code == CLI_OK && !place->only_print)
        code = cli_check(cli, att_file_make_folders(cli->context, w.run));
    if (code == CLI_OK && !place->only_print && run->recipe)
        code = cli_file_write(cli, w.recipe, run->recipe, strlen(run->recipe));
    for (int i = 0; code == CLI_OK && i < ATT_RESULT_STEPS && run->steps[i].arguments[0]; i++)
        code = execute_step(cli, place, &run->steps[i], &w);
    *seconds = w.seconds;
    return code;
}
