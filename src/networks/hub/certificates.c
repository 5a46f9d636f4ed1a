#include "networks/hub/certificates.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/io/file.h"

const char *const att_certificate_files[] = {"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Gentoo */
                                             "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat */
                                             "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                             "/etc/ssl/ca-bundle.pem", /* SUSE */
                                             "/etc/ssl/cert.pem",      /* Alpine */
                                             NULL};

static att_certificates of_path(const char *path)
{
    return att_file_is_folder(path) ? (att_certificates){.folder = path} : (att_certificates){.file = path};
}

att_certificates att_certificates_find(const char *built_in, const char *const *files)
{
    static const char *const variables[] = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *path = getenv(variables[i]);
        if (path && *path)
            return of_path(path);
    }
    if (built_in && att_file_exists(built_in))
        return (att_certificates){NULL, NULL};
    for (; *files; files++)
        if (att_file_exists(*files))
            return (att_certificates){.file = *files};
    return (att_certificates){NULL, NULL};
}
