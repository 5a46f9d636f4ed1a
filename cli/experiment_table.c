/* The tables and the JSON of attscope experiment. */
#include <math.h>

#include "experiment.h"
#include "help.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void print_score(const att_experiment_score *score)
{
    if (isnan(score->deviation))
        cli_print("  %.3f        ", score->mean);
    else
        cli_print("  %.3f ± %.3f", score->mean, score->deviation);
}

static void print_beside(const char *name, const att_experiment_score *score, double published)
{
    cli_print("%-20s", name);
    print_score(score);
    cli_print("  (public code: %.2f)\n", published);
}

static void print_deviation(const att_experiment_options *o)
{
    if (o->seeds > 1)
        cli_print("Mean ± standard deviation over %d networks, trained with the seeds %llu to %llu", o->seeds,
                  (unsigned long long)o->seed, (unsigned long long)(o->seed + (uint64_t)o->seeds - 1));
    else if (o->repeats > 1)
        cli_print("Mean ± standard deviation over %d draws of paths through one trained network", o->repeats);
    else
        cli_print("One draw of paths through one trained network");
}

static void print_paths(const att_experiment_info *info, const att_experiment_options *o,
                        const att_experiment_result *r)
{
    cli_print("loss of the last epoch, with dropout: %.4f per token\n", r->loss.mean);
    cli_print("\nShare of the %lld token%s of %d sample%s that are classified correctly:\n\n", (long long)r->tokens,
              cli_plural(r->tokens), r->evaluation_samples, cli_plural(r->evaluation_samples));
    cli_print("path length");
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
        cli_print("  %2d paths     ", r->sums[sum]);
    cli_print("\n");
    for (int length = 0; length < r->lengths; length++) {
        cli_print("%11d", length);
        for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
            print_score(&r->paths[sum][length]);
        cli_print("\n");
    }
    cli_print("\n");
    print_beside("whole network", &r->whole, info->published_whole);
    print_beside("most frequent class", &r->baseline, info->published_baseline);
    cli_print(
        "\nA path of length k uses k of the %d layers and one head in each, without skip connections; the states\n"
        "of several random paths are added, normed and classified (Dong et al. 2021, as in their public code).\n",
        info->depth);
    print_deviation(o);
    if (o->seeds > 1)
        cli_print("; each network's value is the mean of\n%d draw%s of paths", o->repeats, cli_plural(o->repeats));
    cli_print(".\n");
}

static void print_small(const att_experiment_score *score)
{
    char text[64];
    if (isnan(score->deviation))
        snprintf(text, sizeof text, "%.3g", score->mean);
    else
        snprintf(text, sizeof text, "%.3g ± %.2g", score->mean, score->deviation);
    cli_print("  %*s", 20 + (isnan(score->deviation) ? 0 : 1), text); /* "±" has two bytes */
}

static void print_circle(const att_experiment_options *o, const att_experiment_result *r)
{
    cli_print("\n%d steps, each from the output of the last; both points are 0.6 apart at the start:\n\n",
              ATT_CIRCLE_STEPS);
    cli_print("variant      loss of a sample  mean radius error   distance at the end\n");
    for (int i = 0; i < r->circle_count; i++) {
        const att_circle_result *c = &r->circle[i];
        cli_print("%-7s", c->name);
        print_small(&c->loss);
        print_small(&c->radius_error);
        print_small(&c->distance);
        cli_print("\n");
    }
    if (o->seeds == 1)
        return;
    cli_print("\n");
    print_deviation(o);
    cli_print(".\n");
}

void experiment_print(const experiment *e)
{
    const att_experiment_info *info = e->info;
    const att_experiment_options *o = &e->options;
    const att_experiment_result *r = &e->result;
    cli_print("%s: %s\n", info->name, info->summary);
    cli_print_wrapped(stdout, info->reading, 0);
    cli_print("\n");
    cli_print(
        "%d layer%s, %d head%s, width %d, dropout 0.1%s; %s, learning rate %g, batches of %d, %d epoch%s, "
        "%lld update%s; seed %llu\n",
        info->depth, cli_plural(info->depth), info->heads, cli_plural(info->heads), info->width,
        o->mlp ? ", MLP in every layer" : "", info->optimizer, r->lr, info->batch_size, r->epochs,
        cli_plural(r->epochs), (long long)r->updates, cli_plural(r->updates), (unsigned long long)o->seed);
    if (info->texts)
        cli_print("%d %s%s, %d different tokens%s%s\n", r->training_samples, o->texts ? "texts of " : "made texts",
                  o->texts ? o->texts : "", r->vocabulary, o->tokenizer ? " of the tokenizer " : "",
                  o->tokenizer ? o->tokenizer : "");
    for (int i = 0; i < o->quirk_count; i++)
        cli_print("%s%s%s", i == 0 ? "quirks of the public code: " : ", ", o->quirks[i],
                  i + 1 == o->quirk_count ? "\n" : "");
    if (info->paths)
        print_paths(info, o, r);
    else
        print_circle(o, r);
    if (o->folder)
        cli_print("\n%s\n", o->folder);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_score_members(att_json_writer *writer, const att_experiment_score *score)
{
    att_json_put_number(writer, "mean", score->mean);
    att_json_put_number(writer, "deviation", score->deviation);
    att_json_put_integer(writer, "n", score->n);
}

static void write_score(att_json_writer *writer, const char *key, const att_experiment_score *score)
{
    att_json_put_object(writer, key);
    write_score_members(writer, score);
    att_json_end_object(writer);
}

static void write_sums(att_json_writer *writer, const att_experiment_result *r)
{
    att_json_put_array(writer, "paths");
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++) {
        att_json_begin_object(writer);
        att_json_put_integer(writer, "summed", r->sums[sum]);
        att_json_put_array(writer, "by_length");
        for (int length = 0; length < r->lengths; length++) {
            att_json_begin_object(writer);
            write_score_members(writer, &r->paths[sum][length]);
            att_json_end_object(writer);
        }
        att_json_end_array(writer);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* The head of a layer that the path bypasses is null. */
static void write_sampled(att_json_writer *writer, const att_experiment_result *r)
{
    att_json_put_array(writer, "sampled");
    for (int i = 0; i < r->sampled_count; i++) {
        att_json_begin_object(writer);
        att_json_put_array(writer, "heads");
        for (int layer = 0; layer + 1 < r->lengths; layer++) {
            int head = r->sampled[i].heads[layer];
            if (head > 0)
                att_json_integer(writer, head - 1);
            else
                att_json_string(writer, NULL);
        }
        att_json_end_array(writer);
        att_json_put_number(writer, "accuracy", r->sampled[i].accuracy);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static void write_paths(att_json_writer *writer, const att_experiment_options *o, const att_experiment_result *r)
{
    att_json_put_integer(writer, "evaluation_samples", r->evaluation_samples);
    att_json_put_integer(writer, "repeats", o->repeats);
    att_json_put_string(writer, "deviation_over", o->seeds > 1 ? "networks" : "draws of paths");
    att_json_put_integer(writer, "tokens", r->tokens);
    write_score(writer, "loss", &r->loss);
    write_score(writer, "whole", &r->whole);
    write_score(writer, "baseline", &r->baseline);
    write_sums(writer, r);
    write_sampled(writer, r);
}

static void write_point(att_json_writer *writer, const double point[2])
{
    att_json_begin_array(writer);
    att_json_number(writer, point[0]);
    att_json_number(writer, point[1]);
    att_json_end_array(writer);
}

static void write_variant(att_json_writer *writer, const att_circle_result *c)
{
    static const char *const keys[] = {"first", "second"};
    att_json_begin_object(writer);
    att_json_put_string(writer, "variant", c->name);
    write_score(writer, "loss", &c->loss);
    write_score(writer, "radius_error", &c->radius_error);
    write_score(writer, "distance_end", &c->distance);
    for (int n = 0; n < 2; n++) {
        att_json_put_array(writer, keys[n]);
        for (int i = 0; i < ATT_CIRCLE_STEPS; i++)
            write_point(writer, c->points[i][n]);
        att_json_end_array(writer);
    }
    att_json_end_object(writer);
}

static void write_circle(att_json_writer *writer, const att_experiment_result *r)
{
    att_json_put_array(writer, "circle");
    for (int i = 0; i < r->circle_count; i++)
        write_variant(writer, &r->circle[i]);
    att_json_end_array(writer);
}

static void write_quirks(att_json_writer *writer, const att_experiment_options *o)
{
    att_json_put_array(writer, "quirks");
    for (int i = 0; i < o->quirk_count; i++)
        att_json_string(writer, o->quirks[i]);
    att_json_end_array(writer);
}

void experiment_write(att_json_writer *writer, const void *from)
{
    const experiment *e = from;
    const att_experiment_info *info = e->info;
    const att_experiment_options *o = &e->options;
    const att_experiment_result *r = &e->result;
    att_json_put_string(writer, "experiment", info->name);
    att_json_put_string(writer, "reading", info->reading);
    write_quirks(writer, o);
    att_json_put_integer(writer, "seed", (int64_t)o->seed);
    att_json_put_integer(writer, "seeds", o->seeds);
    att_json_put_integer(writer, "epochs", r->epochs);
    att_json_put_integer(writer, "updates", r->updates);
    att_json_put_number(writer, "lr", r->lr);
    att_json_put_integer(writer, "training_samples", r->training_samples);
    if (info->texts) {
        att_json_put_string(writer, "texts", o->texts);
        att_json_put_string(writer, "tokenizer", o->tokenizer);
        att_json_put_integer(writer, "vocabulary", r->vocabulary);
    }
    if (info->paths)
        write_paths(writer, o, r);
    else
        write_circle(writer, r);
}
