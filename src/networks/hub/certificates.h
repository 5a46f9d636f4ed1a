/* hub/certificates.h - which certificates are trusted. */
#ifndef ATT_HUB_CERTIFICATES_H
#define ATT_HUB_CERTIFICATES_H

typedef struct att_certificates {
    const char *file, *folder; /* NULL: that of libcurl */
} att_certificates;

/* Where systems keep their certificates; ends with NULL. */
extern const char *const att_certificate_files[];

/* Returns what the first variable says that is set, of SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE (a file, or a
 * folder as for Python) and SSL_CERT_DIR. Without these, and if `built_in` (the file for which libcurl was built; may
 * be NULL) does not exist: the first of `files` that does. A libcurl that was built on another system, such as that in
 * a wheel, expects its file at that system's place. The texts are those of the arguments and of the environment. */
att_certificates att_certificates_find(const char *built_in, const char *const *files);

#endif
