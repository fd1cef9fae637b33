/* A file against the certificate beside it: NAME.run.json, of which docs/certificate.md tells. */
#ifndef D7_CLI_CERTIFICATE_H
#define D7_CLI_CERTIFICATE_H

#include "commands.h"

#define CERTIFICATE_SUFFIX ".run.json"

/* What the check came to. */
typedef struct certificate_result {
    bool there;  /* there is a certificate, and it was looked at */
    bool agrees; /* the file is the one that it is of */
    bool asked;  /* for its signature, and */
    bool signed_by_key;
    uint64_t n_problems[2]; /* told: damage, style */
} certificate_result;

/* The path of the certificate beside a .photons file, to be freed; NULL: there is none. */
char *certificate_beside(const char *path);

/* Holds a verified file that no writer holds against its certificate; problems go to `tell`. `key`: a PEM file with the public
 * key that must have signed it; NULL: any signature is left alone. Returns 0, or an exit code after saying why. */
int certificate_check(const command *self, const char *path, const d7_reader *r, const char *key,
                      d7_problem_fn *tell, void *ctx, certificate_result *ret);

#endif
