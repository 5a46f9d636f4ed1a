/* Converts tensor names as training scripts write them to the names in the network. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "io/tensors.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- tensors that only self-supervised training uses -------------------------------------------------------------- */

/* Names of tensors to skip. The first pattern that matches counts. contrastive: the pattern applies only to files with
 * two encoders, as in MoCo, which are recognised by a prefix of the encoder. In other files a tensor of that name may
 * belong to the network. */
static const struct training_pattern {
    const char *pattern;
    bool contrastive;
} training_only[] = {
    {"mask_token", false},
    {"decoder_pos_embed", false},
    {"decoder_embed.*", false},
    {"decoder_blocks.*", false},
    {"decoder_norm.*", false},
    {"decoder_pred.*", false},
    {"head.mlp.*", false},
    {"head.last_layer*", false},
    {"dino_head.*", false},
    {"ibot_head.*", false},
    {"dino_loss.*", false},
    {"ibot_patch_loss.*", false},
    {"encoder_k.*", true},
    {"momentum_encoder.*", true},
    {"predictor.*", true},
    {"queue*", true},
    {"fc.*", true},
    {"head.*", true},
};

static const struct prefix {
    const char *text;
    bool contrastive; /* prefix of the encoder to load, in a file with two encoders */
} prefixes[] = {{"module.", false}, {"_orig_mod.", false}, {"model.", false},    {"backbone.", false},
                {"net.", false},    {"network.", false},   {"encoder_q.", true}, {"base_encoder.", true}};

/* Returns the index of the pattern that matches a tensor to skip, or -1 for other tensors. */
static int training_pattern_of(const char *name, bool contrastive)
{
    for (size_t i = 0; i < COUNT(training_only); i++)
        if ((contrastive || !training_only[i].contrastive) && att_text_matches(training_only[i].pattern, name))
            return (int)i;
    return -1;
}

/* Appends the patterns to file->skipped, each with the number of tensors that it matches: "mask_token, decoder_blocks.*
 * (96)". */
static att_status record_skipped(att_tensors *file, const int counts[COUNT(training_only)])
{
    att_text text = {.context = file->context};
    att_text_append(&text, "%s", file->skipped);
    for (size_t i = 0; i < COUNT(training_only); i++) {
        if (counts[i] == 0)
            continue;
        att_text_append(&text, "%s%s", text.length ? ", " : "", training_only[i].pattern);
        if (counts[i] > 1)
            att_text_append(&text, " (%d)", counts[i]);
    }
    const char *copy = text.failed ? NULL : att_arena_string(&file->arena, text.data ? text.data : "");
    if (copy)
        file->skipped = copy;
    att_text_free(&text);
    return copy ? ATT_OK : att_fail_memory(file->context, 256, file->path);
}

static att_status skip_training_only(att_tensors *file, int first, bool contrastive)
{
    int counts[COUNT(training_only)] = {0}, kept = first;
    for (int i = first; i < file->count; i++) {
        int pattern = training_pattern_of(file->items[i].info.name, contrastive);
        if (pattern < 0)
            file->items[kept++] = file->items[i];
        else
            counts[pattern]++;
    }
    if (kept == file->count)
        return ATT_OK;
    file->count = kept;
    return record_skipped(file, counts);
}

/* --- prefixes ----------------------------------------------------------------------------------------------------- */

static bool has_prefix(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && name[length] != '\0';
}

/* Returns whether removing the prefix would give this name to a tensor at or after item `first`. */
static bool is_taken(const att_tensors *file, int first, const char *prefix, const char *name)
{
    for (int i = first; i < file->count; i++) {
        const char *other = file->items[i].info.name;
        if (has_prefix(other, prefix) && strcmp(other + strlen(prefix), name) == 0)
            return true;
    }
    return false;
}

/* Returns how many tensors at or after item `first` lack the prefix, if it can be removed from the others. Returns -1
 * if it cannot: no tensor has it, too many lack it, or two tensors would get the same name. A few tensors without the
 * prefix, such as a counter or the weights of a loss, are allowed. Tensors to skip are not counted. */
static int count_without_prefix(const att_tensors *file, int first, const struct prefix *prefix)
{
    enum { MAX_WITHOUT = 16, SHARE = 4 };
    int without = 0, with = 0;
    for (int i = first; i < file->count; i++) {
        const char *name = file->items[i].info.name;
        if (has_prefix(name, prefix->text))
            with++;
        else if (training_pattern_of(name, prefix->contrastive) < 0) {
            if (++without > MAX_WITHOUT || is_taken(file, first, prefix->text, name))
                return -1;
        }
    }
    return with > 0 && without <= (with + without) / SHARE ? without : -1;
}

enum { MOST_PREFIXES = 8 }; /* limit on prefixes that follow each other */

/* Removes common prefixes. Sets *contrastive if one of them is that of an encoder in a file with two encoders. */
static void strip(att_tensors *file, int first, att_text *changes, bool *contrastive)
{
    const char *word = " without the prefix ";
    int without = 0, stripped = 0;
    for (size_t p = 0; p < COUNT(prefixes) && stripped < MOST_PREFIXES; p++) {
        int lacking = count_without_prefix(file, first, &prefixes[p]);
        if (lacking < 0)
            continue;
        for (int i = first; i < file->count; i++)
            if (has_prefix(file->items[i].info.name, prefixes[p].text))
                file->items[i].info.name += strlen(prefixes[p].text);
        att_text_append(changes, "%s%s", word, prefixes[p].text);
        word = "";
        without = lacking;
        stripped++;
        *contrastive |= prefixes[p].contrastive;
        p = (size_t)-1;
    }
    if (without > 0)
        att_text_append(changes, " (%d other tensor%s)", without, without > 1 ? "s" : "");
}

/* --- blocks in chunks --------------------------------------------------------------------------------------------- */

enum { MOST_BLOCKS = 1024 };

/* Returns the part "<block>.<rest>" of a name "blocks.<chunk>.<block>.<rest>", or NULL for other names. */
static const char *after_chunk(const char *name, int *chunk, int *block)
{
    int end = 0;
    if (sscanf(name, "blocks.%4d.%n", chunk, &end) != 1 || end == 0 || *chunk < 0)
        return NULL;
    const char *rest = name + end;
    end = 0;
    return isdigit((unsigned char)*rest) && sscanf(rest, "%4d.%n", block, &end) == 1 && end > 0 && *block < MOST_BLOCKS
               ? rest
               : NULL;
}

/* Returns whether the network is a ViT whose blocks are in chunks, as in DINOv2: block numbers continue from chunk to
 * chunk, so that each block number is in one chunk only. */
static bool has_chunks(const att_tensors *file, int first)
{
    int16_t chunk_of[MOST_BLOCKS];
    bool found = false, embeds = false;
    memset(chunk_of, -1, sizeof chunk_of);
    for (int i = first; i < file->count; i++) {
        const char *name = file->items[i].info.name;
        int chunk, block;
        embeds |= strcmp(name, "patch_embed.proj.weight") == 0;
        if (!has_prefix(name, "blocks."))
            continue;
        if (!after_chunk(name, &chunk, &block) || (chunk_of[block] >= 0 && chunk_of[block] != chunk))
            return false;
        chunk_of[block] = (int16_t)chunk;
        found = true;
    }
    return found && embeds;
}

static att_status join_chunks(att_tensors *file, int first, att_text *changes)
{
    if (!has_chunks(file, first))
        return ATT_OK;
    for (int i = first; i < file->count; i++) {
        int chunk, block;
        const char *rest = after_chunk(file->items[i].info.name, &chunk, &block);
        if (!rest)
            continue;
        char *name = att_arena_allocate(&file->arena, strlen(rest) + sizeof "blocks.");
        if (!name)
            return att_fail_memory(file->context, strlen(rest) + sizeof "blocks.", file->path);
        memcpy(name, "blocks.", sizeof "blocks." - 1);
        strcpy(name + sizeof "blocks." - 1, rest);
        file->items[i].info.name = name;
    }
    att_text_append(changes, " with its chunks of blocks joined");
    return ATT_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

att_status att_tensors_normalize_names(att_tensors *file, int first, att_text *changes)
{
    bool contrastive = false;
    strip(file, first, changes, &contrastive);
    ATT_TRY(skip_training_only(file, first, contrastive));
    return join_chunks(file, first, changes);
}
