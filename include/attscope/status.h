/* attscope/status.h - the status codes that functions return.
 *
 * A function that can fail returns att_status. After a failure att_context_message() holds one sentence: what failed,
 * where, and what was expected. Unless a function says otherwise, a failed call leaves every output parameter unchanged
 * and frees everything that it allocated.
 */
#ifndef ATTSCOPE_STATUS_H
#define ATTSCOPE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATT_API __attribute__((visibility("default")))
#define ATT_PRINTF(format_at, first) __attribute__((format(printf, format_at, first)))
#define ATT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define ATT_API
#define ATT_PRINTF(format_at, first)
#define ATT_MUST_CHECK
#endif

/* X(name, value, meaning). The enum, the names and the meanings are made from this list. */
#define ATT_STATUS_LIST(X)                                                       \
    X(OK, 0, "success")                                                          \
    X(ERR_MEMORY, 1, "out of memory")                                            \
    X(ERR_ARGUMENT, 2, "the caller passed a value outside its stated range")     \
    X(ERR_IO, 3, "a file or device could not be read or written")                \
    X(ERR_FORMAT, 4, "data from outside does not follow its format")             \
    X(ERR_NOT_FOUND, 5, "a name or file does not exist")                         \
    X(ERR_UNSUPPORTED, 6, "valid, but this build or processor does not do it")   \
    X(ERR_MISMATCH, 7, "two things that must fit do not (shapes, fingerprints)") \
    X(ERR_NONFINITE, 8, "NaN or infinity where a finite number is required")     \
    X(ERR_STOPPED, 9, "a callback asked to stop")                                \
    X(ERR_INTERNAL, 10, "a library underneath failed, or a defect in attscope")

typedef enum att_status {
#define ATT_STATUS_ENUM(name, value, meaning) ATT_##name = (value),
    ATT_STATUS_LIST(ATT_STATUS_ENUM)
#undef ATT_STATUS_ENUM
} att_status;

/* Returns "ERR_IO" and the like; never NULL, also for values outside the list. Thread-safe. */
ATT_API const char *att_status_name(att_status status);
/* Returns the meaning from the list above; never NULL. Thread-safe. */
ATT_API const char *att_status_meaning(att_status status);

#ifdef __cplusplus
}
#endif
#endif
