/* Converts tensor names as training scripts write them to the names in the network. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/tensors.h"
#include "base/io/torch_state.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- tensors that only training uses ------------------------------------------------------------------------------ */

/* Which files and names a pattern applies to. */
enum {
    ANYWHERE = 1,
    CONTRASTIVE = 2, /* files with two encoders, as in MoCo, which are recognised by a prefix of the encoder. In other
                        files a tensor of that name may belong to the network */
    BESIDE = 4,      /* names that lack the prefix of the network: losses, metrics and copies of the network that a
                        training program keeps beside it, as those of Lightning do */
    BESIDE_CLIP = 8, /* the same, in files with a network of images under open_clip's prefix of timm's networks */
    OF_MSN = 16,     /* files with MSN's projection, of three layers and norms; fc may be a classifier in others */
};

/* Names of tensors to skip. The first pattern that matches counts. */
static const struct training_pattern {
    const char *pattern;
    int where;
} training_only[] = {
    {"mask_token", ANYWHERE},
    {"decoder_pos_embed", ANYWHERE},
    {"decoder_embed.*", ANYWHERE},
    {"decoder_blocks.*", ANYWHERE},
    {"decoder_norm.*", ANYWHERE},
    {"decoder_pred.*", ANYWHERE},
    {"head.mlp.weight", ANYWHERE}, /* DINO's; head.mlp.fc1 is a part of SigLIP's pooling */
    {"head.mlp.bias", ANYWHERE},
    {"head.mlp.?.*", ANYWHERE},
    {"head.last_layer*", ANYWHERE},
    {"lm_head.*", ANYWHERE}, /* of BEiT and EVA-02, which predicts tokens or features of patches */
    {"fc.fc?.*", OF_MSN},
    {"fc.bn?.*", OF_MSN},
    {"projection_head.*", ANYWHERE}, /* SwAV's */
    {"prototypes.*", ANYWHERE},
    {"dino_head.*", ANYWHERE},
    {"ibot_head.*", ANYWHERE},
    {"dino_loss.*", ANYWHERE},
    {"ibot_patch_loss.*", ANYWHERE},
    {"encoder_k.*", CONTRASTIVE},
    {"momentum_encoder.*", CONTRASTIVE},
    {"predictor.*", CONTRASTIVE},
    {"queue*", CONTRASTIVE},
    {"fc.*", CONTRASTIVE},
    {"head.*", CONTRASTIVE},
    {"criterion*", BESIDE},
    {"*_criterion.*", BESIDE},
    {"loss*", BESIDE},
    {"*loss.*", BESIDE},
    {"*_loss_*", BESIDE},
    {"class_weight*", BESIDE},
    {"pos_weight", BESIDE},
    {"*metric*", BESIDE},
    {"*acc.*", BESIDE},
    {"*accuracy*", BESIDE},
    {"*.tp", BESIDE}, /* the states of torchmetrics */
    {"*.fp", BESIDE},
    {"*.tn", BESIDE},
    {"*.fn", BESIDE},
    {"*.confmat", BESIDE},
    {"*.preds", BESIDE},
    {"*.target", BESIDE},
    {"*.correct", BESIDE},
    {"*.total", BESIDE},
    {"*.num_batches", BESIDE},
    {"*.*_value", BESIDE},
    {"ema.*", BESIDE},
    {"ema_*", BESIDE},
    {"*_ema.*", BESIDE},
    {"teacher.*", BESIDE},
    {"initted", BESIDE}, /* of ema_pytorch */
    {"step", BESIDE},
    {"projector.*", BESIDE},
    /* Barlow Twins' last norm has no weights. Another norm beside the network may be a part of it. */
    {"bn.running_mean", BESIDE},
    {"bn.running_var", BESIDE},
    {"bn.num_batches_tracked", BESIDE},
    {"text.*", BESIDE_CLIP},
    {"transformer.*", BESIDE_CLIP},
    {"token_embedding.*", BESIDE_CLIP},
    {"positional_embedding", BESIDE_CLIP},
    {"text_projection*", BESIDE_CLIP},
    {"ln_final.*", BESIDE_CLIP},
    {"attn_mask", BESIDE_CLIP},
    {"logit_*", BESIDE_CLIP},
    {"visual.head.*", BESIDE_CLIP},
};

static const struct prefix {
    const char *text;
    int kind; /* CONTRASTIVE: prefix of the encoder to load, in a file with two encoders; BESIDE_CLIP; or 0 */
    const char *with[2]; /* only in files with names that begin like these; NULL: in all */
} prefixes[] = {
    {"module.", 0, {NULL}},
    {"_orig_mod.", 0, {NULL}},
    {"model.", 0, {NULL}},
    {"backbone.", 0, {NULL}},
    {"net.", 0, {NULL}},
    {"network.", 0, {NULL}},
    {"timm_model.", 0, {NULL}},
    {"visual.trunk.", BESIDE_CLIP, {NULL}},
    {"encoder_q.", CONTRASTIVE, {NULL}},
    {"base_encoder.", CONTRASTIVE, {NULL}},
    /* SimSiam, with a projection in the encoder. In other files networks have parts of this name. */
    {"encoder.", CONTRASTIVE, {"predictor.0.", "encoder.fc.0."}},
};

static bool has_prefix(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && name[length] != '\0';
}

/* Returns what follows "PART." in a name; NULL: the tensor is in no such part. */
static const char *after_part(const char *name, const char *part)
{
    const size_t length = strlen(part);
    return length > 0 && strncmp(name, part, length) == 0 && name[length] == '.' && name[length + 1] ? name + length + 1
                                                                                                     : NULL;
}

/* Returns the index of the first pattern with one of these places that matches a name, or -1. */
static int training_pattern_of(const char *name, int where)
{
    for (size_t i = 0; i < COUNT(training_only); i++)
        if ((training_only[i].where & where) && att_text_matches(training_only[i].pattern, name))
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

/* Removes the tensors that a pattern with one of these places matches, unless they have the prefix, which is removed
 * from their names. prefix: NULL means that no name has it. Adds the number of removed tensors to counts. */
static void remove_training_only(att_tensors *file, int first, const char *prefix, int where,
                                 int counts[COUNT(training_only)])
{
    int kept = first;
    for (int i = first; i < file->count; i++) {
        att_tensors_item item = file->items[i];
        bool has_it = prefix && has_prefix(item.info.name, prefix);
        int pattern = has_it ? -1 : training_pattern_of(item.info.name, where);
        if (has_it)
            item.info.name += strlen(prefix);
        if (pattern < 0)
            file->items[kept++] = item;
        else
            counts[pattern]++;
    }
    file->count = kept;
}

/* --- prefixes ----------------------------------------------------------------------------------------------------- */

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

static bool any_has_prefix(const att_tensors *file, int first, const char *prefix)
{
    bool any = false;
    for (int i = first; i < file->count && !any; i++)
        any = has_prefix(file->items[i].info.name, prefix);
    return any;
}

/* Returns how many tensors at or after item `first` lack the prefix, if it can be removed from the others. Returns -1
 * if it cannot: no tensor has it, too many lack it, or two tensors would get the same name. A few tensors without the
 * prefix, such as a counter or the weights of a loss, are allowed. Tensors to skip are not counted. */
static int count_without_prefix(const att_tensors *file, int first, const struct prefix *prefix)
{
    enum { MAX_WITHOUT = 16, SHARE = 4 };
    const int where = ANYWHERE | BESIDE | prefix->kind;
    int without = 0, with = 0;
    for (int i = 0; i < 2 && prefix->with[i]; i++)
        if (!any_has_prefix(file, first, prefix->with[i]))
            return -1;
    for (int i = first; i < file->count; i++) {
        const char *name = file->items[i].info.name;
        if (has_prefix(name, prefix->text))
            with++;
        else if (training_pattern_of(name, where) < 0) {
            if (++without > MAX_WITHOUT || is_taken(file, first, prefix->text, name))
                return -1;
        }
    }
    return with > 0 && without <= (with + without) / SHARE ? without : -1;
}

enum { MOST_PREFIXES = 8, OWN_PREFIX = 64 }; /* MOST_PREFIXES: limit on prefixes that follow each other */

/* Writes what stands in front of a name that only the first layers of ViTs and ResNets have, with its dot: the name
 * that a program gives the network in it. "visual." belongs to CLIP's own names. Returns false if there is none. */
static bool find_own_prefix(const att_tensors *file, int first, char text[OWN_PREFIX])
{
    static const char *const layers[] = {".patch_embed.proj.weight", ".layer1.0.conv1.weight"};
    for (int i = first; i < file->count; i++)
        for (size_t k = 0; k < COUNT(layers); k++) {
            const size_t length = strlen(file->items[i].info.name), end = strlen(layers[k]);
            if (length <= end || length - end > OWN_PREFIX - 2 || has_prefix(file->items[i].info.name, "visual.") ||
                strcmp(file->items[i].info.name + length - end, layers[k]) != 0)
                continue;
            snprintf(text, OWN_PREFIX, "%.*s", (int)(length - end) + 1, file->items[i].info.name);
            return true;
        }
    return false;
}

/* Removes common prefixes, and tensors beside the network that lack them. Sets file->encoder. unwrapped: names of
 * wrappers have been removed. */
static void strip(att_tensors *file, int first, bool unwrapped, att_text *changes, int counts[COUNT(training_only)])
{
    const char *word = unwrapped ? " and the prefix " : " without the prefix ";
    int without = 0, stripped = 0;
    char text[OWN_PREFIX];
    const struct prefix own = {text, 0, {NULL}};
    for (size_t p = 0; p <= COUNT(prefixes) && stripped < MOST_PREFIXES; p++) {
        const struct prefix *prefix = p < COUNT(prefixes) ? &prefixes[p] : &own;
        if (prefix == &own && !find_own_prefix(file, first, text))
            break;
        int lacking = count_without_prefix(file, first, prefix);
        if (lacking < 0)
            continue;
        remove_training_only(file, first, prefix->text, BESIDE | (prefix->kind & BESIDE_CLIP), counts);
        att_text_append(changes, "%s%s", word, prefix->text);
        word = "";
        without = lacking;
        stripped++;
        if (prefix->kind == CONTRASTIVE)
            file->encoder = prefix->text;
        p = (size_t)-1;
    }
    if (without > 0)
        att_text_append(changes, " (%d other tensor%s)", without, without > 1 ? "s" : "");
}

/* --- a part of the file ------------------------------------------------------------------------------------------- */

/* Returns the length of the longest beginning of the part, up to one of its dots, in which there are tensors. */
static size_t known_length(const att_tensors *file)
{
    size_t known = 0;
    char beginning[512];
    for (size_t length = strcspn(file->part, "."); file->part[length] && length < sizeof beginning;) {
        snprintf(beginning, sizeof beginning, "%.*s", (int)length, file->part);
        for (int i = 0; i < file->count && known < length; i++)
            known = after_part(file->items[i].info.name, beginning) ? length : known;
        length += 1 + strcspn(file->part + length + 1, ".");
    }
    return known;
}

/* Whether an item before item `index` is in the part that the name begins with, up to `length`. */
static bool is_listed(const att_tensors *file, int index, size_t length)
{
    const char *name = file->items[index].info.name;
    bool listed = false;
    for (int i = 0; i < index && !listed; i++)
        listed = strncmp(file->items[i].info.name, name, length) == 0 && file->items[i].info.name[length] == '.';
    return listed;
}

/* Refuses the part, and lists those that there are beside it. */
static att_status refuse_part(const att_tensors *file)
{
    enum { LISTED = 12 };
    const size_t known = known_length(file);
    att_text list = {.context = file->context};
    int count = 0;
    for (int i = 0; i < file->count && count <= LISTED; i++) {
        const char *name = file->items[i].info.name;
        const size_t from = known ? known + 1 : 0;
        if (known && (strncmp(name, file->part, known) != 0 || name[known] != '.'))
            continue;
        const size_t length = from + strcspn(name + from, ".");
        if (!name[length] || is_listed(file, i, length))
            continue;
        if (count++ < LISTED)
            att_text_append(&list, "%s%.*s", count > 1 ? ", " : "", (int)(length < 200 ? length : 200), name);
        else
            att_text_append(&list, ", ...");
    }
    att_status status =
        list.failed
            ? att_fail_memory(file->context, 256, file->path)
            : att_fail(file->context, ATT_ERR_NOT_FOUND, "%s: no tensor's name begins with \"%.200s.\"; %s%s",
                       file->path, file->part, count > 0 ? "expected one of these parts: " : "the file has no parts",
                       count > 0 ? list.data : "");
    att_text_free(&list);
    return status;
}

static att_status select_part(att_tensors *file)
{
    int kept = 0;
    for (int i = 0; i < file->count; i++) {
        att_tensors_item item = file->items[i];
        item.info.name = after_part(item.info.name, file->part);
        if (item.info.name)
            file->items[kept++] = item;
    }
    if (kept == 0)
        return refuse_part(file);
    file->count = kept;
    return ATT_OK;
}

/* --- wrappers ----------------------------------------------------------------------------------------------------- */

static const char *const wrappers[] = {"module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};
enum { MODULE = 0, BEGINNING = 2, WRAPPERS = COUNT(wrappers) }; /* strip() removes the first ones from the beginning */

/* Returns the length of the wrapper's name, with its dot, that `name` begins with, of wrappers first..end-1; 0: none.
 */
static size_t wrapper_at(const char *name, int first, int end)
{
    for (int i = first; i < end; i++)
        if (has_prefix(name, wrappers[i]))
            return strlen(wrappers[i]);
    return 0;
}

/* Copies `name` to `out`, which is as long, without the names of wrappers inside it. "module" is one as the first or
 * second part of a name: further inside, networks have parts of this name. Returns whether there were any. */
static bool unwrap(const char *name, char *out)
{
    bool found = false;
    size_t length;
    for (; (length = wrapper_at(name, 0, BEGINNING)) > 0; name += length, out += length)
        memcpy(out, name, length);
    for (int parts = 0; *name; parts++) {
        while ((length = wrapper_at(name, parts <= 1 ? MODULE : MODULE + 1, WRAPPERS)) > 0) {
            name += length;
            found = true;
        }
        length = strcspn(name, ".");
        length += name[length] == '.';
        memcpy(out, name, length);
        name += length;
        out += length;
    }
    *out = '\0';
    return found;
}

static att_status remove_wrappers(att_tensors *file, int first, att_text *changes, bool *any)
{
    *any = false;
    for (int i = first; i < file->count; i++) {
        const size_t size = strlen(file->items[i].info.name) + 1;
        char *name = att_arena_allocate(&file->arena, size);
        if (!name)
            return att_fail_memory(file->context, size, file->path);
        if (unwrap(file->items[i].info.name, name)) {
            file->items[i].info.name = name;
            *any = true;
        }
    }
    if (*any)
        att_text_append(changes, " without the names of wrappers");
    return ATT_OK;
}

/* --- the classifier ----------------------------------------------------------------------------------------------- */

/* The classifier of ViTs and of residual networks, by a tensor that each of them has. */
static const struct classifier {
    const char *sign, *name;
} classifiers[] = {{"patch_embed.proj.weight", "head"}, {"layer1.0.conv1.weight", "fc"}};

/* Whether a tensor at or after item `first` is called exactly so. */
static const att_tensors_item *find_named(const att_tensors *file, int first, const char *name)
{
    for (int i = first; i < file->count; i++)
        if (strcmp(file->items[i].info.name, name) == 0)
            return &file->items[i];
    return NULL;
}

/* Whether all tensors below `scope`, of which there are any, are weight and bias of one linear layer, which has the
 * name `layer`: the scope itself, or a number below it, as in nn.Sequential(nn.Dropout(), nn.Linear()). */
static bool is_one_layer(const att_tensors *file, int first, const char *scope, char layer[OWN_PREFIX])
{
    char name[OWN_PREFIX + 8];
    *layer = '\0';
    for (int i = first; i < file->count; i++) {
        const char *rest = after_part(file->items[i].info.name, scope);
        if (!rest)
            continue;
        const int digits = (int)strspn(rest, "0123456789");
        const bool numbered = digits > 0 && digits < 4 && rest[digits] == '.';
        char found[OWN_PREFIX];
        snprintf(found, sizeof found, "%s%s%.*s", scope, numbered ? "." : "", numbered ? digits : 0, rest);
        rest += numbered ? digits + 1 : 0;
        if ((strcmp(rest, "weight") != 0 && strcmp(rest, "bias") != 0) || (*layer && strcmp(layer, found) != 0))
            return false;
        memcpy(layer, found, sizeof found);
    }
    snprintf(name, sizeof name, "%s.weight", layer);
    const att_tensors_item *weight = *layer ? find_named(file, first, name) : NULL;
    return weight && weight->info.shape.rank == 2;
}

/* Names the only layer of a classifier as timm does, whatever the program calls it: "fc.1", "classifier". */
static att_status name_classifier(att_tensors *file, int first, att_text *changes)
{
    static const char *const scopes[] = {"head", "fc", "classifier", "linear"};
    const struct classifier *own = NULL;
    const char *scope = NULL;
    char layer[OWN_PREFIX];
    for (size_t i = 0; i < COUNT(classifiers) && !own; i++)
        own = find_named(file, first, classifiers[i].sign) ? &classifiers[i] : NULL;
    for (size_t i = 0; i < COUNT(scopes) && own; i++) {
        bool any = false;
        for (int k = first; k < file->count; k++)
            any = any || after_part(file->items[k].info.name, scopes[i]);
        if (any && scope)
            return ATT_OK; /* two classifiers */
        scope = any ? scopes[i] : scope;
    }
    if (!scope || any_has_prefix(file, first, "layers.0.") || !is_one_layer(file, first, scope, layer) ||
        strcmp(layer, own->name) == 0 || (strcmp(own->name, "fc") == 0 && strcmp(layer, "linear") == 0))
        return ATT_OK;
    for (int i = first; i < file->count; i++) {
        const char *rest = after_part(file->items[i].info.name, layer);
        const size_t size = rest ? strlen(own->name) + 1 + strlen(rest) + 1 : 0;
        char *name = rest ? att_arena_allocate(&file->arena, size) : NULL;
        if (rest && !name)
            return att_fail_memory(file->context, size, file->path);
        if (!rest)
            continue;
        snprintf(name, size, "%s.%s", own->name, rest);
        file->items[i].info.name = name;
    }
    att_text_append(changes, " with %s as %s", layer, own->name);
    return ATT_OK;
}

/* --- several networks in one dictionary --------------------------------------------------------------------------- */

/* The networks of a file whose names begin with their keys: "model.blocks.0...", "ema.blocks.0...". NULL: none. */
typedef struct divided {
    const char *weights, *average;
} divided;

static int count_below(const att_tensors *file, const char *key)
{
    int count = 0;
    for (int i = 0; i < file->count; i++)
        count += after_part(file->items[i].info.name, key) != NULL;
    return count;
}

/* Whether the tensors below `key` are named as those below `like`: one name ends as the first one there. */
static bool is_named_like(const att_tensors *file, const char *key, const char *like)
{
    const char *first = NULL;
    bool found = false;
    for (int i = 0; i < file->count && !first; i++)
        first = after_part(file->items[i].info.name, like);
    const char *inner = first ? after_part(first, "module") : NULL;
    first = inner ? inner : first;
    for (int i = 0; i < file->count && first && !found; i++) {
        const char *name = after_part(file->items[i].info.name, key);
        const size_t length = name ? strlen(name) : 0, end = strlen(first);
        found = length >= end && strcmp(name + length - end, first) == 0 &&
                (length == end || name[length - end - 1] == '.');
    }
    return found;
}

/* Finds the networks by the keys under which programs store them, in the order of att_torch_weight_key(). Returns false
 * if there is one only, or if too many tensors are in none. */
static bool find_networks(const att_tensors *file, divided *found)
{
    enum { LEAST = 4, MAX_WITHOUT = 16 }; /* LEAST: tensors of a network */
    const char *key;
    int networks = 0, others = 0;
    *found = (divided){NULL, NULL};
    for (int k = 0; (key = att_torch_weight_key(k)); k++)
        if (count_below(file, key) >= LEAST) {
            networks++;
            found->weights = found->weights ? found->weights : key;
        }
    for (int k = 0; (key = att_torch_average_key(k)) && found->weights && !found->average; k++)
        if (count_below(file, key) >= LEAST && is_named_like(file, key, found->weights))
            found->average = key;
    for (int i = 0; i < file->count; i++) {
        bool below = found->average && after_part(file->items[i].info.name, found->average);
        for (int k = 0; (key = att_torch_weight_key(k)) && !below; k++)
            below = after_part(file->items[i].info.name, key);
        others += !below && training_pattern_of(file->items[i].info.name, ANYWHERE | BESIDE) < 0;
    }
    return networks + (found->average != NULL) > 1 && others <= MAX_WITHOUT;
}

/* Whether the name is below a key of a network that is not read. */
static const char *other_network(const char *name, const divided *d)
{
    const char *key;
    for (int k = 0; (key = att_torch_weight_key(k)); k++)
        if (key != d->weights && after_part(name, key))
            return key;
    return NULL;
}

/* Names, as skipped, the networks that are not read. */
static att_status record_networks(att_tensors *file, const divided *d)
{
    att_text text = {.context = file->context};
    const char *key, *scope = file->scope ? file->scope : "";
    att_text_append(&text, "%s", file->skipped);
    for (int k = 0; (key = att_torch_weight_key(k)); k++)
        if (key != d->weights && count_below(file, key) > 0)
            att_text_append(&text, "%sthe network %s, which \"%s#%s%s%s\" reads", text.length ? ", " : "", key,
                            file->path, scope, *scope ? "." : "", key);
    const char *copy = text.failed ? NULL : att_arena_string(&file->arena, text.data ? text.data : "");
    if (copy)
        file->skipped = copy;
    att_text_free(&text);
    return copy ? ATT_OK : att_fail_memory(file->context, 256, file->path);
}

/* Whether a tensor of neither the weights nor their average is to be removed: it is of another network, or one that a
 * training program keeps beside its networks. */
static bool is_beside(const char *name, const divided *d, int counts[COUNT(training_only)])
{
    if (other_network(name, d))
        return true;
    const int pattern = training_pattern_of(name, BESIDE);
    if (pattern >= 0)
        counts[pattern]++;
    return pattern >= 0;
}

/* Keeps the tensors of the weights, without their key, and those in no network; after them, *average tensors of the
 * average, without its key. */
static att_status divide(att_tensors *file, const divided *d, int *average)
{
    int counts[COUNT(training_only)] = {0};
    att_tensors_item *sorted = att_allocate_array(file->context, (size_t)file->count, sizeof *sorted);
    int kept = 0;
    *average = 0;
    if (!sorted)
        return att_fail_memory(file->context, (size_t)file->count * sizeof *sorted, file->path);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < file->count; i++) {
            att_tensors_item item = file->items[i];
            const char *own = after_part(item.info.name, d->weights),
                       *averaged = d->average ? after_part(item.info.name, d->average) : NULL;
            if ((averaged != NULL) != (pass == 1) || (!own && !averaged && is_beside(item.info.name, d, counts)))
                continue;
            item.info.name = own ? own : averaged ? averaged : item.info.name;
            sorted[kept++] = item;
            *average += pass;
        }
    memcpy(file->items, sorted, (size_t)kept * sizeof *sorted);
    file->count = kept;
    att_free(file->context, sorted);
    return record_skipped(file, counts);
}

att_status att_tensors_name_average(att_tensors *file, int first)
{
    for (int i = first; i < file->count; i++) {
        const size_t size = strlen(file->items[i].info.name) + sizeof "ema.";
        char *name = att_arena_allocate(&file->arena, size);
        if (!name)
            return att_fail_memory(file->context, size, file->path);
        snprintf(name, size, "ema.%s", file->items[i].info.name);
        file->items[i].info.name = name;
    }
    file->has_average = true;
    return ATT_OK;
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

/* key: has been removed from the names; NULL: none has. */
static att_status normalize(att_tensors *file, int first, const char *key, att_text *changes)
{
    int counts[COUNT(training_only)] = {0};
    bool unwrapped;
    if (key)
        att_text_append(changes, " without the prefix %s.", key);
    ATT_TRY(remove_wrappers(file, first, changes, &unwrapped));
    const int count = file->count;
    strip(file, first, unwrapped || key, changes, counts);
    const bool msn = any_has_prefix(file, first, "fc.bn1.") && any_has_prefix(file, first, "fc.fc3.");
    remove_training_only(file, first, NULL, ANYWHERE | (file->encoder ? CONTRASTIVE : 0) | (msn ? OF_MSN : 0), counts);
    ATT_TRY(file->count < count ? record_skipped(file, counts) : ATT_OK);
    ATT_TRY(name_classifier(file, first, changes));
    return join_chunks(file, first, changes);
}

/* Reads the networks of one dictionary as those of several dictionaries: see torch_state.c. */
static att_status normalize_networks(att_tensors *file, const divided *d, att_text *changes)
{
    int average;
    ATT_TRY(record_networks(file, d));
    ATT_TRY(divide(file, d, &average));
    const int others = file->count - average;
    file->count = others;
    ATT_TRY(normalize(file, 0, d->weights, changes));
    memmove(file->items + file->count, file->items + others, (size_t)average * sizeof *file->items);
    const int first = file->count;
    file->count += average;
    if (average == 0)
        return ATT_OK;
    att_text_append(changes, "; averaged weights");
    ATT_TRY(normalize(file, first, d->average, changes));
    return att_tensors_name_average(file, first);
}

att_status att_tensors_normalize_names(att_tensors *file, int first, att_text *changes)
{
    divided networks;
    if (file->part)
        ATT_TRY(select_part(file));
    return !file->part && first == 0 && find_networks(file, &networks) ? normalize_networks(file, &networks, changes)
                                                                       : normalize(file, first, NULL, changes);
}
