#include "say.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Of a string's bytes before: C0 and DEL, and C1 as UTF-8 has it. */
static bool say_is_control(unsigned char before, unsigned char c) {
    return c < 0x20 || c == 0x7f || (before == 0xc2 && c >= 0x80 && c < 0xa0);
}

void send_say(const char *format, ...) {
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fputs("photon-send: ", stderr);
    unsigned char before = 0;
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];
        if (say_is_control(before, c) || (c == 0xc2 && say_is_control(c, next) && next >= 0x80))
            fprintf(stderr, "\\x%02x", c);
        else
            fputc(c, stderr);
        before = c;
    }
    fputc('\n', stderr);
}
