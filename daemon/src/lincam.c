/* What the files of LINCam cameras carry beside the events (specification of the format, "LINCam and LINTag
 * conventions"). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "profile.h"

/* A random UUID (version 4). Without random bytes, the clock has to do. */
static void lincam_guid(char *text, size_t cap) {
    unsigned char b[16];
    if (getrandom(b, sizeof b, GRND_NONBLOCK) != (ssize_t)sizeof b) {
        struct timespec now[2];
        clock_gettime(CLOCK_REALTIME, &now[0]);
        clock_gettime(CLOCK_MONOTONIC, &now[1]);
        memset(b, 0, sizeof b);
        memcpy(b, &now[0].tv_nsec, 4);
        memcpy(b + 4, &now[1].tv_nsec, 4);
        memcpy(b + 8, &now[0].tv_sec, 8);
    }
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, cap, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static void lincam_created(char *text, size_t cap) {
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    size_t n = strftime(text, cap, "%Y-%m-%d %H:%M:%S", &local);
    snprintf(text + n, cap - n, ".%03ld", now.tv_nsec / 1000000);
}

static void lincam_creator(char *text, size_t cap) {
    snprintf(text, cap, "photond %s", PHOTOND_VERSION);
}

size_t pd_lincam_defaults(pd_default_attribute ret[PD_LINCAM_DEFAULTS_MAX], const pd_attribute *attributes,
                          size_t n) {
    static const struct {
        const char *key;
        void (*make)(char *text, size_t cap);
    } defaults[PD_LINCAM_DEFAULTS_MAX] = {
        {"FileGuid", lincam_guid}, {"Created", lincam_created}, {"FileCreator", lincam_creator}};
    size_t made = 0;
    for (size_t i = 0; i < PD_LINCAM_DEFAULTS_MAX; i++) {
        if (pd_attribute_find(attributes, n, defaults[i].key))
            continue;
        snprintf(ret[made].key, sizeof ret[made].key, "%s", defaults[i].key);
        defaults[i].make(ret[made].value, sizeof ret[made].value);
        made++;
    }
    return made;
}

static bool lincam_is_number(const char *text, double low, double high, bool whole) {
    char *end;
    double value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(value) && value >= low && value <= high &&
           (!whole || value == floor(value));
}

void pd_lincam_check(const pd_attribute *attributes, size_t n, void (*warn)(void *user, const char *sentence),
                     void *user) {
    static const struct {
        const char *key;
        double low, high;
        bool whole;
        const char *then;
    } needed[] = {
        {"/photons/PositionBits", 1, 31, true,
         "readers have to guess the size of the image (12 bits are usual)"},
        {"/photons/TacBits", 1, 20, true,
         "readers have to guess the number of TAC channels (12 bits are usual)"},
        {"/photons/TacChannel", 1e-6, 1e12, false, "the decay has no axis in picoseconds"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const char *text = pd_attribute_find(attributes, n, needed[i].key);
        if (text && lincam_is_number(text, needed[i].low, needed[i].high, needed[i].whole))
            continue;
        char sentence[256];
        if (text)
            snprintf(sentence, sizeof sentence, "%s is \"%.40s\", which is no number in its range: %s",
                     needed[i].key, text, needed[i].then);
        else
            snprintf(sentence, sizeof sentence, "%s is missing: %s", needed[i].key, needed[i].then);
        warn(user, sentence);
    }
}
