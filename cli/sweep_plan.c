#include "sweep_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <attscope/lab/runs.h>

#include "not_here.h"
#include "sweep_same.h"

/* --- what was asked ----------------------------------------------------------------------------------------------- */

/* Cuts the text at commas, where no backslash stands before them. Returns how many parts there are, -1 for too many. */
static int split(char *text, const char **parts, int most)
{
    int count = 0;
    char *to = text;
    parts[count++] = to;
    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1] == ',')
            *to++ = *++from;
        else if (*from != ',')
            *to++ = *from;
        else if (count == most)
            return -1;
        else {
            *to++ = '\0';
            parts[count++] = to;
        }
    }
    *to = '\0';
    return count;
}

static int read_seeds(sweep_plan *plan)
{
    const char *at = plan->asked->seeds;
    for (;;) {
        char *end;
        errno = 0;
        unsigned long long seed = strtoull(at, &end, 10);
        if (end == at || *at == '-' || *at == '+' || *at == ' ' || errno || seed > INT64_MAX || (*end && *end != ','))
            return cli_usage("--seeds: \"%s\" is no list of whole numbers by commas, as 1,2,3", plan->asked->seeds);
        for (int i = 0; i < plan->seed_count; i++)
            if (plan->seeds[i] == seed)
                return cli_usage("--seeds: %llu is named twice", seed);
        if (plan->seed_count == ATT_SWEEP_MOST_RUNS)
            return cli_usage("--seeds: more than %d", (int)ATT_SWEEP_MOST_RUNS);
        plan->seeds[plan->seed_count++] = seed;
        if (!*end)
            return CLI_OK;
        at = end + 1;
    }
}

/* What the sweep itself says to every run. */
static bool is_ours(const char *flag)
{
    static const char *const names[] = {"seed", "output", "experiment", "resume", "config", "json", "data-dir", "data"};
    char dashed[SWEEP_FLAG];
    snprintf(dashed, sizeof dashed, "%s", flag);
    for (char *c = dashed; *c; c++)
        if (*c == '_')
            *c = '-';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(dashed, names[i]) == 0)
            return true;
    return false;
}

bool sweep_plan_explain(const char *name, char *text, size_t size)
{
    train_settings none = {0};
    const cli_table train = {
        .command = "train", .uses = cli_train_uses, .use_count = CLI_TRAIN_USES, .settings = &none, .defaults = &none};
    if (is_ours(name) || !cli_options_have(&train, name))
        return false;
    snprintf(text, size,
             "--%s is an option of attscope train: --set %s=VALUE gives it to all runs, --vary %s=LIST one value to "
             "each setting",
             name, name, name);
    return true;
}

/* FLAG of "FLAG=VALUE"; dashes before it are taken off. */
static int read_flag(const char *option, const char *text, char flag[SWEEP_FLAG], const char **value)
{
    const char *name = text + strspn(text, "-"), *equals = strchr(name, '=');
    if (!equals || equals == name || equals - name >= SWEEP_FLAG)
        return cli_usage("%s: \"%s\" is not of the form FLAG=VALUE", option, text);
    snprintf(flag, SWEEP_FLAG, "%.*s", (int)(equals - name), name);
    if (is_ours(flag))
        return cli_usage("%s: a sweep says --%s of each run itself (see --seeds, --output, --experiment and DATA)",
                         option, flag);
    *value = equals + 1;
    return CLI_OK;
}

/* As the command line has it. */
static char *make_word(const char *flag, const char *value)
{
    size_t size = strlen(flag) + strlen(value) + 4;
    char *word = malloc(size);
    if (word)
        snprintf(word, size, "--%s=%s", flag, value);
    return word;
}

static int read_axis(sweep_plan *plan, const char *text)
{
    if (plan->axis_count == SWEEP_AXES)
        return cli_usage("--vary is given more than %d times", (int)SWEEP_AXES);
    sweep_axis *axis = &plan->axes[plan->axis_count];
    const char *values;
    int code = read_flag("--vary", text, axis->flag, &values);
    if (code != CLI_OK)
        return code;
    for (int i = 0; i < plan->axis_count; i++)
        if (strcmp(plan->axes[i].flag, axis->flag) == 0)
            return cli_usage("--vary: %s is varied twice; one list holds all its values", axis->flag);
    axis->text = malloc(strlen(values) + 1);
    if (!axis->text)
        return cli_failure("out of memory");
    plan->axis_count++;
    strcpy(axis->text, values);
    int count = split(axis->text, axis->values, SWEEP_VALUES);
    if (count < 0)
        return cli_usage("--vary: %s has more than %d values", axis->flag, (int)SWEEP_VALUES);
    for (; axis->count < count; axis->count++) {
        axis->words[axis->count] = make_word(axis->flag, axis->values[axis->count]);
        if (!axis->words[axis->count])
            return cli_failure("out of memory");
    }
    return CLI_OK;
}

static int read_set(sweep_plan *plan, const char *text)
{
    char flag[SWEEP_FLAG];
    const char *value;
    int code = read_flag("--set", text, flag, &value);
    if (code != CLI_OK)
        return code;
    char *word = make_word(flag, value);
    if (!word)
        return cli_failure("out of memory");
    plan->set_words[plan->set_count++] = word;
    return CLI_OK;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool append(char *name, const char *text)
{
    size_t length = strlen(name);
    if (length + strlen(text) >= SWEEP_NAME)
        return false;
    strcpy(name + length, text);
    return true;
}

/* Leaves what a folder may be called. */
static void make_plain(char *name)
{
    for (; *name; name++) {
        bool fine = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                    (*name >= '0' && *name <= '9') || strchr("._=+-,", *name);
        if (!fine)
            *name = '_';
    }
}

/* "cifar10-quick" of "recipes/cifar10-quick.yaml" */
static bool append_recipe(const char *path, char *name)
{
    const char *slash = strrchr(path, '/');
    char plain[SWEEP_NAME];
    snprintf(plain, sizeof plain, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(plain, '.');
    if (dot && dot > plain)
        *dot = '\0';
    return append(name, plain);
}

static int name_run(const sweep_plan *plan, sweep_run *run)
{
    bool fits = plan->axis_count > 0 || append_recipe(plan->asked->recipe, run->setting);
    for (int i = 0; fits && i < plan->axis_count; i++)
        fits = (i == 0 || append(run->setting, ",")) && append(run->setting, plan->axes[i].flag) &&
               append(run->setting, "=") && append(run->setting, plan->axes[i].values[run->choice[i]]);
    if (!fits)
        return cli_usage("--vary: the values are too long to name a folder by");
    snprintf(run->name, sizeof run->name, "%s-seed%llu", run->setting, (unsigned long long)run->seed);
    make_plain(run->name);
    cli_join(plan->folder, run->name, run->folder, sizeof run->folder);
    for (const sweep_run *earlier = plan->runs; earlier < run; earlier++)
        if (strcmp(earlier->name, run->name) == 0)
            return cli_usage("--vary: two settings would share the folder %s", run->name);
    return *run->folder ? CLI_OK : cli_usage("--output: the path is too long");
}

/* --- the runs ----------------------------------------------------------------------------------------------------- */

/* Seeds vary fastest: settings are complete one after another. */
static int lay_out(sweep_plan *plan)
{
    long count = plan->seed_count;
    for (int i = 0; i < plan->axis_count && count <= ATT_SWEEP_MOST_RUNS; i++)
        count *= plan->axes[i].count;
    if (count > ATT_SWEEP_MOST_RUNS)
        return cli_usage("a sweep of more than %d runs", (int)ATT_SWEEP_MOST_RUNS);
    plan->runs = calloc((size_t)count, sizeof *plan->runs);
    if (!plan->runs)
        return cli_failure("out of memory");
    for (plan->run_count = 0; plan->run_count < count; plan->run_count++) {
        sweep_run *run = &plan->runs[plan->run_count];
        int rest = plan->run_count / plan->seed_count;
        run->seed = plan->seeds[plan->run_count % plan->seed_count];
        run->status = "waiting";
        for (int i = plan->axis_count - 1; i >= 0; i--) {
            run->choice[i] = rest % plan->axes[i].count;
            rest /= plan->axes[i].count;
        }
        int code = name_run(plan, run);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

static cli_table table_of(sweep_plan *plan)
{
    return (cli_table){.command = "train",
                       .uses = cli_train_uses,
                       .use_count = CLI_TRAIN_USES,
                       .settings = &plan->settings,
                       .defaults = &plan->defaults,
                       .ignored = &plan->ignored};
}

int sweep_plan_settle(sweep_plan *plan, const sweep_run *run)
{
    cli_table table = table_of(plan);
    char *words[CLI_MOST_TEXTS + SWEEP_AXES];
    const char *operands[CLI_MOST_TEXTS + SWEEP_AXES];
    int count = 0, operand_count;
    for (int i = 0; i < plan->set_count; i++)
        words[count++] = plan->set_words[i];
    for (int i = 0; i < plan->axis_count; i++)
        words[count++] = plan->axes[i].words[run->choice[i]];
    cli_options_defaults(&table, sizeof plan->settings);
    if (!cli_options_config(&table, plan->asked->recipe, plan->recipe) ||
        !cli_options_parse(&table, count, words, operands, &operand_count) || !cli_options_complete(&table))
        return CLI_USAGE;
    train_settings *s = &plan->settings;
    if (plan->asked->data)
        s->data.data_dir = plan->asked->data;
    s->recipe.seed = run->seed;
    s->files.output = plan->folder;
    s->files.experiment = run->name;
    s->files.resume = NULL;
    return s->data.data_dir ? CLI_OK : cli_usage("sweep needs DATA: %s names none", plan->asked->recipe);
}

/* --- settings that are another's again ---------------------------------------------------------------------------- */

/* A run of the setting that plan->settings are again; NULL: of none. `kept`: those of the `count` settings before it,
 * whose runs begin the list. */
static const sweep_run *find_same(cli_app *cli, const sweep_plan *plan, const train_settings *kept, int count)
{
    for (int i = 0; i < count; i++)
        if (sweep_same_settings(cli, &kept[i], &plan->settings))
            return &plan->runs[i * plan->seed_count];
    return NULL;
}

/* Settles every setting and takes each once. `kept`: room for all of them. */
static int take_once(cli_app *cli, sweep_plan *plan, train_settings *kept)
{
    int count = 0;
    for (int i = 0; i < plan->run_count; i += plan->seed_count) {
        sweep_run *runs = &plan->runs[i];
        int code = sweep_plan_settle(plan, runs);
        if (code != CLI_OK)
            return code;
        const sweep_run *same = find_same(cli, plan, kept, count);
        if (same) {
            cli_note(cli, "%s is %s again and taken once", runs->setting, same->setting);
            continue;
        }
        memmove(&plan->runs[count * plan->seed_count], runs, (size_t)plan->seed_count * sizeof *runs);
        kept[count++] = plan->settings;
    }
    plan->run_count = count * plan->seed_count;
    return CLI_OK;
}

static int settle_all(cli_app *cli, sweep_plan *plan)
{
    train_settings *kept = malloc((size_t)plan->run_count * sizeof *kept);
    if (!kept)
        return cli_failure("out of memory");
    int code = take_once(cli, plan, kept);
    free(kept);
    return code;
}

static int name_folder(cli_app *cli, sweep_plan *plan)
{
    char name[SWEEP_NAME] = "";
    const att_run_place place = {.output = plan->asked->output, .experiment = plan->asked->experiment};
    int code = cli_check(cli, att_run_place_check(cli->context, &place));
    if (code != CLI_OK)
        return code;
    if (!append_recipe(plan->asked->recipe, name))
        return cli_usage("the recipe's name is too long to name a folder by; --experiment NAME does");
    make_plain(name);
    cli_join(plan->asked->output, plan->asked->experiment ? plan->asked->experiment : name, plan->folder,
             sizeof plan->folder);
    return *plan->folder ? CLI_OK : cli_usage("--output: the path is too long");
}

int sweep_plan_make(cli_app *cli, const sweep_asked *asked, sweep_plan *plan)
{
    plan->asked = asked;
    int code = name_folder(cli, plan);
    if (code == CLI_OK)
        code = read_seeds(plan);
    for (int i = 0; code == CLI_OK && i < asked->vary.count; i++)
        code = read_axis(plan, asked->vary.values[i]);
    for (int i = 0; code == CLI_OK && i < asked->set.count; i++)
        code = read_set(plan, asked->set.values[i]);
    if (code == CLI_OK)
        code = cli_check(cli, att_yaml_read(cli->context, asked->recipe, &plan->recipe));
    if (code == CLI_OK)
        code = lay_out(plan);
    if (code == CLI_OK)
        code = settle_all(cli, plan);
    if (code == CLI_OK)
        cli_ignored_say(cli, &plan->ignored);
    return code;
}

void sweep_plan_free(sweep_plan *plan)
{
    for (int i = 0; i < plan->axis_count; i++) {
        for (int v = 0; v < plan->axes[i].count; v++)
            free(plan->axes[i].words[v]);
        free(plan->axes[i].text);
    }
    for (int i = 0; i < plan->set_count; i++)
        free(plan->set_words[i]);
    free(plan->runs);
    att_yaml_destroy(&plan->recipe);
    if (plan->lock > 0)
        close(plan->lock);
}

/* --- a run's folder ----------------------------------------------------------------------------------------------- */

int sweep_plan_lock(sweep_plan *plan)
{
    int code = cli_make_folders(plan->folder);
    if (code != CLI_OK)
        return code;
    plan->lock = open(plan->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (plan->lock < 0)
        return cli_failure("%s: %s", plan->folder, strerror(errno));
    if (flock(plan->lock, LOCK_EX | LOCK_NB) == 0)
        return CLI_OK;
    return cli_failure("%s: another sweep is at work in this folder; wait for it, or name another --experiment",
                       plan->folder);
}

/* What may change between two calls: it changes no weights, or the training itself looks after it. */
static bool is_free(const char *key)
{
    static const char *const keys[] = {"output",       "data_dir",     "threads",          "workers",
                                       "log_interval", "skip_corrupt", "recovery_interval"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static const char *value_at(const att_yaml_entry *entry, int index)
{
    return index < entry->value_count ? entry->values[index] : "nothing";
}

static bool same_entry(const att_yaml_entry *a, const att_yaml_entry *b)
{
    bool same = a->value_count == b->value_count;
    for (int i = 0; same && i < a->value_count; i++)
        same = strcmp(a->values[i], b->values[i]) == 0;
    return same;
}

/* An option that only one of the files has came or went with a version of the program. */
static int compare(const sweep_run *run, const att_yaml *before, const att_yaml *now)
{
    for (int i = 0; i < att_yaml_count(before); i++)
        for (int k = 0; k < att_yaml_count(now); k++) {
            att_yaml_entry a = att_yaml_at(before, i), b = att_yaml_at(now, k);
            if (strcmp(a.key, b.key) == 0 && !is_free(a.key) && !same_entry(&a, &b))
                return cli_failure("%s was begun with %s: %s, here it is %s; another --experiment keeps both",
                                   run->folder, a.key, value_at(&a, 0), value_at(&b, 0));
        }
    return CLI_OK;
}

void sweep_advise_removal(cli_app *cli, const sweep_run *run)
{
    cli_note(cli, "where that file is damaged, remove the folder %s: the same command then makes this run anew",
             run->folder);
}

/* Damaged, the earlier file is this run's failure alone. */
static int compare_files(cli_app *cli, sweep_run *run, const char *before_path, const char *now_path)
{
    att_yaml *before = NULL, *now = NULL;
    if (cli_check(cli, att_yaml_read(cli->context, before_path, &before)) != CLI_OK) {
        sweep_advise_removal(cli, run);
        run->status = "failed";
        return CLI_OK;
    }
    int code = cli_check(cli, att_yaml_read(cli->context, now_path, &now));
    if (code == CLI_OK)
        code = compare(run, before, now);
    att_yaml_destroy(&now);
    att_yaml_destroy(&before);
    return code;
}

int sweep_plan_write(cli_app *cli, sweep_plan *plan, sweep_run *run)
{
    char path[CLI_PATH], fresh[CLI_PATH], metrics[CLI_PATH];
    cli_table table = table_of(plan);
    int code = cli_make_folders(run->folder);
    if (code == CLI_OK)
        code = sweep_plan_settle(plan, run);
    if (code != CLI_OK)
        return code;
    cli_join(run->folder, "recipe.yaml", path, sizeof path);
    cli_join(run->folder, "recipe.new.yaml", fresh, sizeof fresh);
    code = cli_check(cli, cli_options_write(&table, cli->context, fresh));
    if (code == CLI_OK && cli_exists(path) &&
        cli_exists(cli_join(run->folder, "metrics.jsonl", metrics, sizeof metrics)))
        code = compare_files(cli, run, path, fresh);
    bool replaces = code == CLI_OK && strcmp(run->status, "failed") != 0;
    if (replaces && rename(fresh, path) != 0) {
        replaces = false;
        code = cli_failure("%s: %s", path, strerror(errno));
    }
    if (!replaces)
        unlink(fresh);
    return code;
}
