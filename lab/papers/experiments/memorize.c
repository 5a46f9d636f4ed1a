/* The memorisation task: texts whose tokens have random classes. */
#include <math.h>

#include <attscope/ops.h>

#include "lab/papers/experiments/list.h"
#include "lab/papers/experiments/texts.h"

enum { TEXTS = 500, TOKENS = 128, CLASSES = 2 };

static void fill(const att_experiment_job *job, const att_texts_table *texts, att_samples *samples)
{
    for (int i = 0; i < texts->count; i++) {
        att_random random = att_experiment_random(job, "classes", i);
        for (int n = 0; n < samples->tokens; n++) {
            int64_t at = (int64_t)i * samples->tokens + n;
            bool pads = n >= texts->lengths[i];
            ((int32_t *)samples->x)[at] = texts->ids[(int64_t)i * texts->tokens + n];
            ((int32_t *)samples->target)[at] = pads ? ATT_NO_CLASS : (int32_t)att_random_below(&random, CLASSES);
            samples->keys[at] = pads ? -INFINITY : 0;
        }
    }
}

static int longest(const att_texts_table *texts)
{
    int most = 0;
    for (int i = 0; i < texts->count; i++)
        most = texts->lengths[i] > most ? texts->lengths[i] : most;
    return most;
}

static att_status make(const att_experiment_job *job, att_san_spec *spec, att_samples *samples)
{
    const att_experiment_options *options = job->options;
    att_texts_table texts;
    if (options->tokenizer)
        ATT_TRY(att_texts_tokenize(job->arena, options->texts, options->tokenizer, TEXTS, TOKENS, &texts));
    else if (options->texts)
        ATT_TRY(att_texts_read(job->arena, options->texts, TEXTS, TOKENS, &texts));
    else
        ATT_TRY(att_texts_make(job->arena, att_experiment_seed(job), TEXTS, TOKENS, &texts));
    if (texts.count < 2)
        return att_fail(job->arena->context, ATT_ERR_FORMAT, "\"%s\" has one text; expected at least 2, one per line",
                        options->texts);
    spec->tokens = longest(&texts);
    spec->vocabulary = texts.vocabulary;
    size_t bytes = (size_t)spec->tokens * sizeof(int32_t);
    ATT_TRY(att_samples_create(job->arena, texts.count, spec->tokens, bytes, bytes, true, samples));
    fill(job, &texts, samples);
    return ATT_OK;
}

const att_experiment att_experiment_memorize = {
    .info = {.name = "memorize",
             .summary = "memorises random classes of the tokens of texts",
             .reading =
                 "Every token of a text, which is cut after 128 tokens, has a random class of two; the same texts "
                 "are evaluated. The paper takes its texts from RTE and divides them by BERT's WordPiece. Here "
                 "--texts FILE has one text per line, of which the first 500 are taken; --tokenizer PATH divides them, "
                 "as BERT's does with [CLS] and [SEP], and without it tokens are words in small letters and single "
                 "other characters. Without --texts, 500 texts are made: 20 to 128 tokens from Zipf's law over 5,000 "
                 "words. The learning rate falls linearly to 0; gradients are clipped to norm 1.",
             .depth = 6,
             .heads = 2,
             .width = 250,
             .optimizer = "adamw",
             .lr = 3e-4,
             .batch_size = 8,
             .epochs = 50,
             .paths = true,
             .texts = true,
             .published_whole = 0.85,
             .published_baseline = 0.5},
    .spec = {.outputs = CLASSES, .padded = true},
    .clip_norm = 1,
    .schedule = ATT_RATE_LINEAR,
    .make = make,
};
