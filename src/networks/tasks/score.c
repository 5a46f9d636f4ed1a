#include "networks/tasks/score.h"

#include <math.h>

int att_score_rank(const float *logits, int classes, int label)
{
    int rank = 0;
    for (int c = 0; c < classes; c++) {
        if (isnan(logits[c]))
            return classes;
        rank += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
    }
    return rank;
}

/* -ln softmax(logits)_label. */
static double loss_of(const float *logits, int classes, int label)
{
    double most = logits[0], sum = 0;
    for (int c = 1; c < classes; c++)
        most = fmax(most, logits[c]);
    for (int c = 0; c < classes; c++)
        sum += exp(logits[c] - most);
    return log(sum) + most - logits[label];
}

static void add_rank(att_scores *scores, int rank, int classes)
{
    scores->first += rank < 1 && rank < classes;
    scores->among_five += rank < ATT_SCORE_TOP && rank < classes;
}

double att_scores_add(att_scores *scores, const float *logits, int classes, int label)
{
    int rank = att_score_rank(logits, classes, label);
    double loss = loss_of(logits, classes, label);
    scores->count++;
    scores->judged++;
    add_rank(scores, rank, classes);
    scores->loss += loss;
    return loss;
}

double att_scores_add_set(att_scores *scores, const float *logits, int classes, int label, const int32_t *right,
                          int right_count)
{
    double loss = loss_of(logits, classes, label);
    int best = classes;
    for (int i = 0; i < right_count; i++) {
        int rank = att_score_rank(logits, classes, right[i]);
        best = rank < best ? rank : best;
    }
    scores->count++;
    scores->judged += right_count > 0;
    add_rank(scores, best, classes);
    scores->loss += loss;
    return loss;
}

void att_scores_merge(att_scores *scores, const att_scores *more)
{
    scores->count += more->count;
    scores->judged += more->judged;
    scores->first += more->first;
    scores->among_five += more->among_five;
    scores->loss += more->loss;
}
