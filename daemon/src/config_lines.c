#include "config_lines.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINES_PATH_BYTES = 1024, LINES_DEPTH_MAX = 64 };

typedef struct lines_walk {
    const char *at, *end;
    size_t line; /* of `at` */
    const char *wanted;
    size_t found;                /* line of the wanted path, or 0 */
    char path[LINES_PATH_BYTES]; /* of the value at hand */
    size_t path_bytes;
    unsigned depth;
} lines_walk;

static bool lines_value(lines_walk *w);

static void lines_blanks(lines_walk *w) {
    for (; w->at < w->end && *w->at && strchr(" \t\r\n", *w->at); w->at++)
        if (*w->at == '\n')
            w->line++;
}

/* Passes a string; `*at` and `*bytes` are it with its quotes. */
static bool lines_string(lines_walk *w, const char **at, size_t *bytes) {
    if (w->at == w->end || *w->at != '"')
        return false;
    *at = w->at++;
    while (w->at < w->end && *w->at != '"')
        w->at += *w->at == '\\' && w->end - w->at > 1 ? 2 : 1;
    if (w->at == w->end)
        return false;
    w->at++;
    *bytes = (size_t)(w->at - *at);
    return true;
}

/* Makes the member `key`, or the element `index` when it is NULL, part of the path. */
static void lines_push(lines_walk *w, const char *key, size_t index) {
    size_t room = sizeof w->path - w->path_bytes;
    const char *dot = w->path_bytes ? "." : "";
    int n = key ? snprintf(w->path + w->path_bytes, room, "%s%s", dot, key)
                : snprintf(w->path + w->path_bytes, room, "[%zu]", index);
    w->path_bytes += (size_t)n < room ? (size_t)n : room - 1;
    if (!w->found && strcmp(w->path, w->wanted) == 0)
        w->found = w->line;
}

static void lines_pop(lines_walk *w, size_t path_bytes) {
    w->path_bytes = path_bytes;
    w->path[path_bytes] = '\0';
}

/* As lines_push, of a key with its quotes and escapes. */
static bool lines_push_key(lines_walk *w, const char *at, size_t bytes) {
    json_t *key = json_loadb(at, bytes, JSON_DECODE_ANY, NULL);
    if (!json_is_string(key)) {
        json_decref(key);
        return false;
    }
    lines_push(w, json_string_value(key), 0);
    json_decref(key);
    return true;
}

static bool lines_member(lines_walk *w) {
    const char *key;
    size_t bytes;
    if (!lines_string(w, &key, &bytes) || !lines_push_key(w, key, bytes))
        return false;
    lines_blanks(w);
    if (w->at == w->end || *w->at++ != ':')
        return false;
    return lines_value(w);
}

static bool lines_container(lines_walk *w, char close) {
    size_t path_bytes = w->path_bytes;
    w->at++;
    for (size_t index = 0;; index++) {
        lines_blanks(w);
        if (w->at < w->end && *w->at == ',') {
            w->at++;
            lines_blanks(w);
        }
        if (w->at == w->end)
            return false;
        if (*w->at == close) {
            w->at++;
            return true;
        }
        if (close == ']')
            lines_push(w, NULL, index);
        if (!(close == '}' ? lines_member(w) : lines_value(w)))
            return false;
        lines_pop(w, path_bytes);
    }
}

static bool lines_value(lines_walk *w) {
    lines_blanks(w);
    const char *text;
    size_t bytes;
    if (w->at == w->end || w->depth == LINES_DEPTH_MAX)
        return false;
    if (*w->at == '"')
        return lines_string(w, &text, &bytes);
    if (*w->at == '{' || *w->at == '[') {
        w->depth++;
        bool whole = lines_container(w, *w->at == '{' ? '}' : ']');
        w->depth--;
        return whole;
    }
    const char *from = w->at;
    while (w->at < w->end && !strchr(",]} \t\r\n", *w->at))
        w->at++;
    return w->at > from;
}

size_t pd_json_line(const char *text, size_t bytes, const char *path) {
    lines_walk w = {.at = text, .end = text + bytes, .line = 1, .wanted = path};
    lines_value(&w);
    return w.found;
}
