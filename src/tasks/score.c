#include "tasks/score.h"

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

double att_score_loss(const float *logits, int classes, int label)
{
    double most = logits[0], sum = 0;
    for (int c = 1; c < classes; c++)
        most = fmax(most, logits[c]);
    for (int c = 0; c < classes; c++)
        sum += exp(logits[c] - most);
    return log(sum) + most - logits[label];
}

double att_scores_add(att_scores *scores, const float *logits, int classes, int label)
{
    int rank = att_score_rank(logits, classes, label);
    double loss = att_score_loss(logits, classes, label);
    scores->count++;
    scores->first += rank < 1;
    scores->among_five += rank < ATT_SCORE_TOP && rank < classes;
    scores->loss += loss;
    return loss;
}

void att_scores_merge(att_scores *scores, const att_scores *more)
{
    scores->count += more->count;
    scores->first += more->first;
    scores->among_five += more->among_five;
    scores->loss += more->loss;
}
