/* hub/digest.h - SHA-256 and SHA-1 (FIPS 180-4), to verify downloaded files. SHA-1 is git's name of a file's contents;
 * it protects against damage, not against a malicious server. */
#ifndef ATT_HUB_DIGEST_H
#define ATT_HUB_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef enum att_digest_kind { ATT_SHA256, ATT_GIT_SHA1 } att_digest_kind;

typedef struct att_digest {
    att_digest_kind kind;
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
} att_digest;

enum { ATT_DIGEST_TEXT = 65 };

/* size: of the whole contents, which git's SHA-1 includes; unused for SHA-256. */
void att_digest_begin(att_digest *digest, att_digest_kind kind, uint64_t size);
void att_digest_add(att_digest *digest, const void *bytes, size_t size);
/* Writes the hash of all added bytes in hexadecimal, 64 or 40 lower-case digits. */
void att_digest_end(att_digest *digest, char text[ATT_DIGEST_TEXT]);

#endif
