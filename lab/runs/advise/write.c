/* Writes an advice as JSON. */
#include "lab/report/sweep.h"
#include "lab/runs/advise/advice.h"

static void write_candidate(att_json_writer *json, const att_advised *candidate)
{
    att_json_begin_object(json);
    att_json_put_integer(json, "block", candidate->block);
    att_json_put_string(json, "node", candidate->node);
    att_json_put_string(json, "modules", candidate->modules);
    att_json_put_number(json, "predicted", candidate->predicted);
    att_json_put_string(json, "verdict", att_advised_verdict(candidate));
    if (candidate->tested) {
        att_json_put_number(json, "score", candidate->score);
        att_json_put_number(json, "score_deviation", candidate->score_deviation);
        att_json_put_object(json, "gain");
        att_paired_write_members(json, &candidate->gain);
        att_json_end_object(json);
    }
    att_json_end_object(json);
}

static void write_methods(att_json_writer *json)
{
    att_json_put_object(json, "methods");
    att_json_put_string(json, "gain",
                        "score with the module minus score without it, paired over seeds, with a simultaneous 95 % "
                        "interval: Student's t, 1 - 0.05 / m for each of the m tested candidates (Bonferroni)");
    for (int i = 0; i < att_correlation_method_count(); i++) {
        const att_correlation_method method = att_correlation_method_at(i);
        att_json_put_string(json, method.name, method.formula);
    }
    att_json_end_object(json);
}

void att_advice_write_json(const att_advice *advice, att_json_writer *writer)
{
    att_json_put_string(writer, "checkpoint", advice->options.checkpoint);
    att_json_put_string(writer, "data", advice->options.data);
    att_json_put_string(writer, "module", advice->module);
    att_json_put_string(writer, "place", advice->place);
    att_json_put_string(writer, "base", advice->base);
    att_json_put_string(writer, "instrument", advice->instrument);
    att_json_put_string(writer, "statistic", advice->statistic);
    att_json_put_string(writer, "metric", advice->metric ? advice->metric->name : NULL);
    att_json_put_number(writer, "score", advice->score);
    att_json_put_number(writer, "score_deviation", advice->score_deviation);
    att_json_put_array(writer, "candidates");
    for (int i = 0; i < advice->count; i++)
        write_candidate(writer, &advice->blocks[i].shown);
    att_json_end_array(writer);
    att_json_put_object(writer, "correlation");
    att_correlation_write_members(writer, &advice->correlation);
    att_json_end_object(writer);
    write_methods(writer);
    att_json_put_string(writer, "folder", att_sweep_plan_folder(advice->plan));
}
