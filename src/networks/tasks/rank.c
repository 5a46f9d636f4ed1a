#include <math.h>

#include <attscope/task.h>

#include "networks/tasks/score.h"

/* Whether class a comes before class b. */
static bool before(const float *logits, int a, int b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static int insert(const float *logits, int class_number, att_ranked *top, int count, int k)
{
    int at = count;
    while (at > 0 && before(logits, class_number, top[at - 1].class_number))
        at--;
    if (at == k)
        return count;
    for (int i = count < k ? count : k - 1; i > at; i--)
        top[i] = top[i - 1];
    top[at] = (att_ranked){.class_number = class_number, .logit = logits[class_number]};
    return count < k ? count + 1 : k;
}

int att_rank_classes(const float *logits, int classes, att_ranked *top, int k)
{
    int count = 0;
    if (k < 1)
        return 0;
    for (int c = 0; c < classes; c++)
        count = insert(logits, c, top, count, k);
    if (count == 0)
        return 0;
    double sum = 0;
    for (int c = 0; c < classes; c++)
        sum += exp((double)logits[c] - top[0].logit);
    for (int i = 0; i < count; i++)
        top[i].probability = exp((double)top[i].logit - top[0].logit) / sum;
    return count;
}
