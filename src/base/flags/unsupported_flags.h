/* flags/unsupported_flags.h - flags of timm's and DeiT's scripts that attscope does not have, or has by another name.
 * Flags that only affect speed are ignored; the others are refused with a reason. */
#ifndef ATT_FLAGS_UNSUPPORTED_FLAGS_H
#define ATT_FLAGS_UNSUPPORTED_FLAGS_H

#include "base/flags/flags.h"

/* A flag or config key of these scripts that attscope refuses. */
typedef struct att_unsupported_flag {
    const char *script;  /* whose flag it is, if attscope lacks it: "timm's", "DeiT's"; NULL: it does not lack it */
    const char *own;     /* the flag of attscope that has its meaning; "": a command has it; NULL: none has */
    const char *instead; /* what to do instead; NULL: nothing */
} att_unsupported_flag;

/* name: with dashes or underscores. All members are NULL if there is no such flag. */
att_unsupported_flag att_unsupported_flag_find(const char *name);
/* Whether attscope lacks the flag, but this value turns it off: "--cooldown-epochs 0". */
bool att_unsupported_flag_is_off(const char *name, const char *word);
/* As att_unsupported_flag_is_off(), for an entry of a file such as the args.yaml of a timm run, and also for flags
 * that only affect speed. */
bool att_unsupported_entry_is_off(const char *name, const char *const *values, int count);

/* How many words after a flag are its values, as in timm's parser. */
typedef enum att_flag_words {
    ATT_TAKES_UNKNOWN, /* not a flag that is ignored */
    ATT_TAKES_NOTHING,
    ATT_TAKES_ONE,
    ATT_TAKES_COMPILER, /* one if the next word is a backend of torch.compile(), otherwise none */
    ATT_TAKES_SEVERAL,  /* up to the next flag */
} att_flag_words;

/* How many values a flag or config key takes that only affects the speed, memory, device or processes of PyTorch.
 * attscope's results do not depend on such a flag. */
att_flag_words att_unsupported_flag_takes(const char *name);
bool att_is_torch_compiler(const char *word);
/* Whether a flag that att_unsupported_flag_takes() knows accepts this value: flags of ATT_TAKES_NOTHING accept true and
 * false only. */
bool att_unsupported_flag_accepts(const char *name, const char *word);
/* Name `index` of these flags; NULL past the last. */
const char *att_unsupported_flag_ignored_name(int index);
/* Adds one of these flags to the list unless it is in the list already. Ignores other names. */
void att_unsupported_flag_ignore(att_ignored_flags *list, const char *name);

#endif
