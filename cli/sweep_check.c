#include "sweep_check.h"

#include <string.h>

#include "figures.h"
#include "train_network.h"
#include "train_settle.h"

enum { INSTRUMENTS = 31 }; /* more than there are; none is named twice */

/* --- data --------------------------------------------------------------------------------------------------------- */

/* What is trained on and measured. */
typedef struct tried_data {
    train_data of; /* zero: none yet */
    int classes;   /* of the images that are trained on */
    att_dataset *measured;
} tried_data;

/* trained: the data set that gives classes their numbers; NULL: none. */
static int open_split(cli_app *cli, const train_data *data, const char *split, const att_dataset *trained,
                      att_dataset **dataset)
{
    att_dataset_options options = cli_train_data_options(data, split);
    options.trained = trained ? att_dataset_class_names(trained) : NULL;
    options.trained_count = trained ? att_dataset_class_count(trained) : 0;
    int code = cli_file_check("--class-map", data->class_map);
    return code == CLI_OK ? cli_check(cli, att_dataset_open(cli->context, data->data_dir, &options, dataset)) : code;
}

/* What training opens, and the split that is measured. */
static int try_data(cli_app *cli, const train_data *data, tried_data *tried)
{
    att_dataset *trained = NULL, *evaluated = NULL;
    att_dataset_close(&tried->measured);
    tried->of = *data;
    int code = open_split(cli, data, data->train_split, NULL, &trained);
    tried->classes = code == CLI_OK ? att_dataset_class_count(trained) : 0;
    if (code == CLI_OK && *att_dataset_split(trained) && *data->val_split)
        code = open_split(cli, data, data->val_split, trained, &evaluated);
    if (code == CLI_OK)
        code = open_split(cli, data, "test", trained, &tried->measured);
    att_dataset_close(&evaluated);
    att_dataset_close(&trained);
    return code;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_data(const train_data *a, const train_data *b)
{
    return same_text(a->data_dir, b->data_dir) && same_text(a->train_split, b->train_split) &&
           same_text(a->val_split, b->val_split) && same_text(a->class_map, b->class_map) &&
           a->coarse_labels == b->coarse_labels;
}

typedef struct data_digests {
    train_data of;                       /* zero: none yet */
    char listing[ATT_DATASET_LISTING];   /* of what is trained on */
    char contents[ATT_DATASET_CONTENTS]; /* of what is measured */
} data_digests;

static int read_digests(cli_app *cli, const train_data *data, data_digests *digests)
{
    att_dataset_options train = cli_train_data_options(data, data->train_split),
                        test = cli_train_data_options(data, "test");
    att_dataset *trained = NULL, *measured = NULL;
    if (same_data(data, &digests->of))
        return CLI_OK;
    int code = cli_check(cli, att_dataset_open(cli->context, data->data_dir, &train, &trained));
    if (code == CLI_OK)
        code = cli_check(cli, att_dataset_open(cli->context, data->data_dir, &test, &measured));
    if (code == CLI_OK) {
        att_dataset_listing(trained, digests->listing);
        code = cli_check(cli, att_dataset_contents(measured, cli->context, digests->contents));
    }
    if (code == CLI_OK)
        digests->of = *data;
    att_dataset_close(&measured);
    att_dataset_close(&trained);
    return code;
}

static int refuse_data(const sweep_run *run, const char *what, const char *data)
{
    return cli_failure("%s was %s other images than %s has; another --experiment keeps both", run->folder, what, data);
}

/* The runs of a setting, as far as they have records that say of which images they are. */
static int compare_data(cli_app *cli, const sweep_plan *plan, int first, data_digests *here)
{
    const train_data *data = &plan->settings.data;
    for (int i = first; i < first + plan->seed_count; i++) {
        const sweep_run *run = &plan->runs[i];
        const att_run_state *found = &run->found;
        int code = *found->listing || *found->contents ? read_digests(cli, data, here) : CLI_OK;
        if (code != CLI_OK)
            return code;
        if (*found->listing && strcmp(found->listing, here->listing) != 0)
            return refuse_data(run, "begun with", data->data_dir);
        if (*found->contents && strcmp(found->contents, here->contents) != 0)
            return refuse_data(run, "measured on", data->data_dir);
    }
    return CLI_OK;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static int try_network(cli_app *cli, train_settings *s, cli_train_network *network, const char *instruments)
{
    int code = cli_train_settle(cli, s);
    if (code == CLI_OK)
        code = cli_train_network_find(cli, s, "", network);
    return code == CLI_OK ? cli_train_network_try(cli, s, network, instruments, "*") : code;
}

/* What of --measure finds something. "all" chooses itself. */
typedef struct instrument_list {
    const char *said;
    char text[SWEEP_LIST];
    const char *items[INSTRUMENTS];
    int count;
    bool takes_all;
    unsigned all;    /* a bit for each item */
    unsigned wanted; /* of these those that are missed where they find nothing */
} instrument_list;

static void cut_list(const char *instruments, instrument_list *list)
{
    list->said = instruments;
    snprintf(list->text, sizeof list->text, "%s", instruments);
    list->takes_all = strncmp(instruments, "all", 3) == 0 || strstr(instruments, ",all") != NULL;
    for (char *at = list->text; at && list->count < INSTRUMENTS; list->count++) {
        list->items[list->count] = at;
        at = list->takes_all ? NULL : strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
    list->all = list->wanted = (1u << list->count) - 1;
}

/* *finds: a bit for each instrument that finds something. */
static int check_network(cli_app *cli, train_settings *s, const instrument_list *list, unsigned *finds)
{
    cli_train_network network = {0};
    int code = try_network(cli, s, &network, NULL);
    *finds = 0;
    for (int i = 0; code == CLI_OK && i < list->count; i++)
        *finds |= (unsigned)cli_train_network_sees(cli, s, &network, list->items[i]) << i;
    cli_train_network_free(&network);
    return code;
}

/* The bits of instruments that look at classes. */
static unsigned find_scores(const instrument_list *list)
{
    unsigned scores = 0;
    att_instrument_info info;
    for (int k = 0; k < list->count; k++)
        if (att_instrument_find(NULL, list->items[k], &info) && info.needs_labels)
            scores |= 1u << k;
    return scores;
}

static bool is_item(const instrument_list *list, const char *instrument)
{
    for (int k = 0; k < list->count; k++)
        if (strcmp(list->items[k], instrument) == 0)
            return true;
    return false;
}

/* Instruments that look at classes are left out of the setting where its network has others than the images that are
 * measured; those asked for by name are refused. */
static int check_classes(cli_app *cli, sweep_plan *plan, int first, const tried_data *tried,
                         const instrument_list *list, bool asked, unsigned *finds)
{
    int network = (int)att_options_number(&plan->settings.network.options, "num_classes", tried->classes);
    unsigned scores = find_scores(list);
    if (att_dataset_fits_classes(tried->measured, network) || (scores == 0 && !list->takes_all))
        return CLI_OK;
    if (scores != 0 && asked)
        return cli_check(cli, att_dataset_check_classes(tried->measured, cli->context, network));
    for (int k = 0; k < att_instrument_count(cli->context); k++) {
        att_instrument_info info = att_instrument_at(cli->context, k);
        if (info.needs_labels && (list->takes_all || is_item(list, info.name)))
            cli_note(cli, "%s is measured without %s: the network has %d class%s, the images %d",
                     plan->runs[first].setting, info.name, network, network == 1 ? "" : "es",
                     att_dataset_class_count(tried->measured));
    }
    *finds &= ~scores;
    for (int i = first; list->takes_all && i < first + plan->seed_count; i++)
        cli_instruments_without_labels(plan->runs[i].measure, SWEEP_LIST);
    return CLI_OK;
}

static void name_instruments(const instrument_list *list, unsigned which, char text[SWEEP_LIST])
{
    int length = 0;
    *text = '\0';
    for (int i = 0; i < list->count; i++)
        if (which >> i & 1)
            length +=
                snprintf(text + length, (size_t)(SWEEP_LIST - length), "%s%s", length > 0 ? "," : "", list->items[i]);
}

/* Gives the setting's runs those instruments alone. */
static void leave_out(cli_app *cli, sweep_plan *plan, int first, const instrument_list *list, unsigned finds)
{
    char left[SWEEP_LIST];
    for (int i = first; i < first + plan->seed_count; i++)
        name_instruments(list, finds, plan->runs[i].measure);
    name_instruments(list, list->wanted & ~finds, left);
    if (*left)
        cli_note(cli, "%s is measured without %s, which has nothing to see there", plan->runs[first].setting, left);
}

/* Says which setting it is, where they are not all alike in this. */
static int refuse_setting(cli_app *cli, const sweep_plan *plan, int first, int code)
{
    if (plan->run_count > plan->seed_count)
        cli_note(cli, "of the setting %s; no run was started", plan->runs[first].setting);
    return code;
}

static int refuse(cli_app *cli, const sweep_plan *plan, int first, const char *instruments, int code)
{
    cli_note(cli, "of the setting %s, measured with --measure %s; no run was started", plan->runs[first].setting,
             instruments);
    return code;
}

/* Says why the setting cannot be measured with `instrument`, one of them. */
static int refuse_instrument(cli_app *cli, sweep_plan *plan, int first, const char *instrument, const char *instruments)
{
    cli_train_network network = {0};
    int code = sweep_plan_settle(plan, &plan->runs[first]);
    if (code == CLI_OK)
        code = try_network(cli, &plan->settings, &network, instrument);
    cli_train_network_free(&network);
    return refuse(cli, plan, first, instruments, code);
}

/* The runs of a setting lie one behind another. */
static bool is_to_do(const sweep_plan *plan, int first)
{
    for (int i = first; i < first + plan->seed_count; i++)
        if (strcmp(plan->runs[i].status, "measured") != 0)
            return true;
    return false;
}

/* An instrument is left out of the settings in which it has nothing to see; of all of them only where it was not asked
 * for. */
static int choose_instruments(cli_app *cli, sweep_plan *plan, instrument_list *list, const unsigned *finds,
                              const char *instruments, bool asked)
{
    unsigned somewhere = 0;
    for (int i = 0; i < plan->run_count; i += plan->seed_count)
        somewhere |= finds[i];
    for (int k = 0; k < list->count && asked; k++)
        if (!(somewhere >> k & 1))
            return refuse_instrument(cli, plan, 0, list->items[k], instruments);
    list->wanted = somewhere;
    for (int i = 0; i < plan->run_count; i += plan->seed_count)
        if (finds[i] == 0)
            return refuse_instrument(cli, plan, i, list->items[0], instruments);
    for (int i = 0; i < plan->run_count; i += plan->seed_count)
        if (finds[i] != list->all)
            leave_out(cli, plan, i, list, finds[i]);
    return CLI_OK;
}

/* Whether a setting is of other data than another. */
static bool is_data_varied(sweep_plan *plan)
{
    train_data first = {0};
    for (int i = 0; i < plan->run_count; i += plan->seed_count) {
        if (sweep_plan_settle(plan, &plan->runs[i]) != CLI_OK)
            return false;
        if (i == 0)
            first = plan->settings.data;
        if (!same_data(&first, &plan->settings.data))
            return true;
    }
    return false;
}

/* Of a setting with a run to do; *finds: the instruments that find something in it. */
static int check_setting(cli_app *cli, sweep_plan *plan, int first, tried_data *tried, const instrument_list *list,
                         bool asked, unsigned *finds)
{
    int code = CLI_OK;
    if (!same_data(&tried->of, &plan->settings.data))
        code = try_data(cli, &plan->settings.data, tried);
    if (code != CLI_OK)
        return is_data_varied(plan) ? refuse_setting(cli, plan, first, code) : code;
    code = check_network(cli, &plan->settings, list, finds);
    if (code != CLI_OK)
        return refuse_setting(cli, plan, first, code);
    code = check_classes(cli, plan, first, tried, list, asked, finds);
    return code == CLI_OK ? CLI_OK : refuse(cli, plan, first, list->said, code);
}

int sweep_check(cli_app *cli, sweep_plan *plan, const char *instruments, bool asked)
{
    tried_data tried = {0};
    instrument_list list = {0};
    unsigned finds[ATT_SWEEP_MOST_RUNS];
    int code = cli_instruments_check(cli, instruments);
    cut_list(instruments, &list);
    for (int i = 0; code == CLI_OK && i < plan->run_count; i += plan->seed_count) {
        finds[i] = list.all;
        if (!is_to_do(plan, i))
            continue;
        code = sweep_plan_settle(plan, &plan->runs[i]);
        if (code == CLI_OK)
            code = check_setting(cli, plan, i, &tried, &list, asked, &finds[i]);
    }
    att_dataset_close(&tried.measured);
    return code == CLI_OK ? choose_instruments(cli, plan, &list, finds, instruments, asked) : code;
}

int sweep_check_images(cli_app *cli, sweep_plan *plan)
{
    data_digests here = {0};
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < plan->run_count; i += plan->seed_count) {
        code = sweep_plan_settle(plan, &plan->runs[i]);
        if (code == CLI_OK && (is_to_do(plan, i) || cli_exists(plan->settings.data.data_dir)))
            code = compare_data(cli, plan, i, &here);
    }
    return code;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

int sweep_check_records(cli_app *cli, const sweep_run *run)
{
    const att_sweep_run one = {run->folder, run->setting, run->seed};
    att_sweep *sweep = NULL;
    int code = cli_check(cli, att_sweep_read(cli->context, &one, 1, NULL, 0, 0, &sweep));
    att_sweep_destroy(&sweep);
    if (code != CLI_OK)
        sweep_advise_removal(cli, run);
    return code;
}
