/* Built without OpenSSL: certificates are not looked at. */
#include "certificate.h"

int certificate_check(const command *self, const char *path, const d7_reader *r, const char *key,
                      d7_problem_fn *tell, void *ctx, certificate_result *ret) {
    (void)r;
    (void)tell;
    (void)ctx;
    *ret = (certificate_result){0};
    return key ? command_fail(self, "%s: this d7 was built without OpenSSL: it cannot prove signatures", path)
               : 0;
}
