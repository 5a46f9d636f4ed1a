/* flags/unsupported_flags.h - flags of timm's scripts that attscope does not have: those that only concern speed are
 * ignored, the others refused by name. */
#ifndef ATT_FLAGS_UNSUPPORTED_FLAGS_H
#define ATT_FLAGS_UNSUPPORTED_FLAGS_H

#include <attscope/lab/flags.h>

/* True where timm has a flag or config key of this name, dashes or underscores. *instead: what there is instead of it;
 * NULL: nothing. */
bool att_unsupported_flag_is_missing(const char *name, const char **instead);
/* True where attscope lacks the flag, but this value of its leaves it without effect: "--cooldown-epochs 0". */
bool att_unsupported_flag_is_idle(const char *name, const char *word);
/* The same of an entry of a file, as in the args.yaml of a timm run, and of flags that only concern speed. */
bool att_unsupported_entry_is_idle(const char *name, const char *const *values, int count);

/* How many words after a flag are its value, as timm's parser takes them. */
typedef enum att_flag_words {
    ATT_TAKES_UNKNOWN, /* no flag that may be ignored */
    ATT_TAKES_NOTHING,
    ATT_TAKES_ONE,
    ATT_TAKES_COMPILER, /* one, where the next word names a backend of torch.compile(); else none */
    ATT_TAKES_SEVERAL,  /* up to the next flag */
} att_flag_words;

/* Of a flag or config key that only concerns the speed, memory, device or processes of PyTorch: attscope's results are
 * the same with and without it. */
att_flag_words att_unsupported_flag_takes(const char *name);
bool att_is_torch_compiler(const char *word);
/* Whether such a flag may have this value: one that takes nothing is true or false. */
bool att_unsupported_flag_may_be(const char *name, const char *word);
/* The names of such flags, NULL past the last. */
const char *att_unsupported_flag_ignored_name(int index);
/* Adds such a flag to the list, where it is not in there; other names are passed over. */
void att_unsupported_flag_ignore(att_ignored_flags *list, const char *name);

#endif
