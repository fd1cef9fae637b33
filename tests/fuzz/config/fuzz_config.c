/* Configuration files and control requests of any bytes. What is accepted as a configuration prints as
 * one that reads back to the same, and an answer to a request is always one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "config_lines.h"
#include "control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good, const char *what) {
    if (!good) {
        fprintf(stderr, "fuzz_config: %s\n", what);
        abort();
    }
}

static char *print(const pd_config *config, size_t *bytes) {
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes);
    require(f && pd_config_print(config, f) == 0, "a configuration cannot be printed");
    fclose(f);
    return text;
}

static void read_config(const char *text, size_t bytes) {
    pd_config config, again;
    pd_error err = {.text = ""};
    require(pd_config_init(&config, &err) == 0 && pd_config_init(&again, &err) == 0, "no defaults");
    if (pd_config_parse(&config, "f", text, bytes, &err) == 0) {
        size_t n, n_again;
        char *printed = print(&config, &n);
        require(pd_config_parse(&again, "printed", printed, n, &err) == 0, err.text);
        char *printed_again = print(&again, &n_again);
        require(n == n_again && memcmp(printed, printed_again, n) == 0, "printed twice, different");
        free(printed);
        free(printed_again);
    } else {
        require(strncmp(err.text, "f:", 2) == 0 && !strchr(err.text, '\n'),
                "an error that is no sentence with a place");
    }
    pd_config_free(&config);
    pd_config_free(&again);
}

static json_t *run_echo(void *user, const json_t *request, pd_error *err) {
    (void)user;
    (void)err;
    return json_pack("{s:O}", "request", request);
}

static void answer_request(const char *text, size_t bytes) {
    static const pd_control_command commands[] = {{"echo", run_echo, 1}};
    size_t n = 0;
    char *answer = pd_control_answer(commands, 1, NULL, PD_CONTROL_ALL_RIGHTS, text, bytes, &n);
    require(answer && n > 2 && memchr(answer, '\n', n) == answer + n - 1, "an answer that is no line");
    json_t *json = json_loadb(answer, n, 0, NULL);
    require(json_is_boolean(json_object_get(json, "ok")), "an answer without ok");
    json_decref(json);
    free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    read_config(text, size);
    answer_request(text, size);
    pd_json_line(text, size, "profiles.cam[0].name");
    return 0;
}
