/* The configuration: what is read, printed and refused, and how it is said. */
#include <unistd.h>

#include "capture.h"
#include "config.h"
#include "config_keys.h"
#include "config_lines.h"
#include "testing.h"

static int parse(pd_config *config, const char *text, pd_error *err) {
    assert_int_equal(pd_config_init(config, err), 0);
    return pd_config_parse(config, "photond.json", text, strlen(text), err);
}

static void refused(const char *text, const char *sentence) {
    pd_config config;
    pd_error err = {.text = ""};
    assert_int_equal(parse(&config, text, &err), -1);
    assert_string_equal(err.text, sentence);
    pd_config_free(&config);
}

static void every_key_has_a_default(void **state) {
    (void)state;
    pd_config config;
    pd_error err;
    if (pd_config_init(&config, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(pd_config_check(&config, &err), 0);
    assert_string_equal(config.data_dir, "/var/lib/photond");
    assert_int_equal(config.listen.n, 1);
    assert_int_equal(config.ring_bytes, 64 * 1024 * 1024);
    assert_int_equal(config.sync_interval_ms, 1000);
    assert_int_equal(config.resume_timeout_ms, 30000);
    assert_int_equal(config.file_mode, 0644);
    assert_int_equal(config.summaries.pixels, 512);
    assert_true(config.summaries.enabled);
    assert_non_null(pd_profiles_find(config.profiles, "lincam-dual"));
    pd_config_free(&config);
}

static void values_in_units(void **state) {
    (void)state;
    pd_config config;
    pd_error err;
    if (parse(
            &config,
            "{\"sync_interval_ms\": \"0.5s\", \"export_interval_s\": 0.3, \"resume_timeout_s\": \"2 min\",\n"
            " \"idle_timeout_s\": \"1h\", \"ring_mb\": \"1GiB\", \"batch_bytes\": \"2MB\", \"receive_mb\": "
            "1.5,\n"
            " \"file_mode\": \"0640\", \"listen\": [\"tcp://[::1]:7\", \"unix:/a b\"], \"export_codec\": "
            "\"gzip\",\n"
            " \"log_level\": \"debug\", \"allow_insecure_remote\": true, \"summaries\": {\"image\": "
            "{\"pixels\": "
            "1024}}}",
            &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(config.sync_interval_ms, 500);
    assert_int_equal(config.export_interval_ms, 300);
    assert_int_equal(config.resume_timeout_ms, 120000);
    assert_int_equal(config.idle_timeout_ms, 3600000);
    assert_int_equal(config.ring_bytes, 1024 * 1024 * 1024);
    assert_int_equal(config.batch_bytes, 2000000);
    assert_int_equal(config.receive_bytes, 1536 * 1024);
    assert_int_equal(config.file_mode, 0640);
    assert_int_equal(config.listen.n, 2);
    assert_string_equal(config.listen.items[1], "unix:/a b");
    assert_int_equal(config.export_codec, PD_CODEC_GZIP);
    assert_int_equal(config.log_level, PD_LOG_DEBUG);
    assert_true(config.allow_insecure_remote);
    assert_int_equal(config.summaries.pixels, 1024);
    pd_config_free(&config);
}

static void unknown_keys_name_the_nearest(void **state) {
    (void)state;
    refused("{\n  \"summaries\": {\n    \"image\": {\n      \"pixel\": 512\n    }\n  }\n}",
            "photond.json:4: summaries.image.pixel: unknown key; did you mean \"summaries.image.pixels\"?");
    refused("{\"data_dri\": \"/x\"}", "photond.json:1: data_dri: unknown key; did you mean \"data_dir\"?");
    refused("{\"pixels\": 512}",
            "photond.json:1: pixels: unknown key; did you mean \"summaries.image.pixels\"?");
    refused("{\n\n\"frobnicate\": 1}", "photond.json:3: frobnicate: unknown key");
    refused("{\"a\\u001bb\": 1}", "photond.json:1: a\\x1bb: unknown key");
}

static void wrong_types_say_what_is_there_and_what_must_be(void **state) {
    (void)state;
    refused("{\"max_runs\": \"12\"}", "photond.json:1: max_runs: is a string, must be a whole number");
    refused("{\"max_runs\": 1.5}", "photond.json:1: max_runs: is a number, must be a whole number");
    refused("{\"file_mode\": 420}",
            "photond.json:1: file_mode: is a number, must be a string of octal digits such as \"0644\"");
    refused("{\"summaries\": true}", "photond.json:1: summaries: is true or false, must be an object");
    refused("{\"allow_insecure_remote\": \"yes\"}",
            "photond.json:1: allow_insecure_remote: is a string, must be true or false");
    refused("{\"listen\": \"tcp://h:1\"}", "photond.json:1: listen: is a string, must be a list of strings");
    refused("{\"listen\": [\"tcp://h:1\",\n 7]}", "photond.json:2: listen[1]: is a number, must be a string");
    refused("{\"ring_mb\": null}",
            "photond.json:1: ring_mb: is null, must be a number, or a string such as \"64MiB\"");
    refused("[]", "photond.json:1: is a list, must be an object");
    refused("{\"data_dir\": []}", "photond.json:1: data_dir: is a list, must be a string");
}

static void values_out_of_range(void **state) {
    (void)state;
    refused("{\"max_runs\": 0}", "photond.json:1: max_runs: 0 is out of range (1 to 65536)");
    refused("{\"max_runs\": -1}", "photond.json:1: max_runs: \"-1\" is not a whole number");
    refused("{\"sync_interval_ms\": 1}",
            "photond.json:1: sync_interval_ms: 1 is out of range (10 to 86400000 ms)");
    refused(
        "{\"sync_interval_ms\": \"1 fortnight\"}",
        "photond.json:1: sync_interval_ms: \"1 fortnight\" has an unknown unit (ms, s, min, h, d are known)");
    refused("{\"ring_mb\": \"64M\"}",
            "photond.json:1: ring_mb: \"64M\" has an unknown unit (B, KiB, MiB, GiB, TiB, kB, "
            "MB, GB, TB are known)");
    refused("{\"ring_mb\": \"lots\"}", "photond.json:1: ring_mb: \"lots\" is not a number");
    refused("{\"ring_mb\": 1e300}",
            "photond.json:1: ring_mb: 1.0000000000000001e+300 is out of range (1048576 to "
            "1099511627776 bytes)");
    refused("{\"summaries\": {\"image\": {\"pixels\": 500}}}",
            "photond.json:1: summaries.image.pixels: 500 is not a power of two");
    refused("{\"file_mode\": \"0844\"}",
            "photond.json:1: file_mode: \"0844\" is not an octal number such as 0644");
    refused("{\"file_mode\": \"4755\"}", "photond.json:1: file_mode: 4755 is out of range (0400 to 0777)");
    refused("{\"log_level\": \"loud\"}",
            "photond.json:1: log_level: \"loud\" is no level (error, warning, info, debug)");
    refused("{\"export_format\": \"hdf5\"}",
            "photond.json:1: export_format: \"hdf5\" is no format of exports (daf, zarr, both)");
    refused("{\"export_codec\": \"lz4\"}", "photond.json:1: export_codec: \"lz4\" is no codec (zstd, gzip)");
    refused("{\"data_dir\": \"\"}", "photond.json:1: data_dir: must not be empty");
    refused("{\"control\": \"tcp://h:1\"}",
            "photond.json:1: control: \"tcp://h:1\": control goes over Unix sockets only "
            "(unix:PATH, auto or none)");
    refused("{\"control\": \"tcp://1\"}",
            "photond.json:1: control: \"tcp://1\": control goes over Unix sockets only "
            "(unix:PATH, auto or none)");
    refused("{\"listen\": [\"tcp://h\"]}",
            "photond.json:1: listen[0]: \"tcp://h\": the port is missing: tcp://HOST:PORT");
}

static void refused_as(const char *text, const char *part) {
    pd_config config;
    pd_error err = {.text = ""};
    assert_int_equal(parse(&config, text, &err), -1);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" without \"%s\"", err.text, part);
    pd_config_free(&config);
}

static void json_errors_have_line_and_column(void **state) {
    (void)state;
    refused_as("{\n\"ring_mb\": 1,\n\"ring_mb\": 2}", "photond.json:3: column 9: duplicate object key");
    refused_as("{\n\"ring_mb\": }", "photond.json:2: column 12: ");
    refused_as("", "photond.json:1: column 0: ");
    refused_as("{\"data_dir\": \"a\\u0000b\"}", "photond.json:1: column ");
    refused_as("{\"data_dir\": \"\xff\"}", "photond.json:1: column ");
}

static void a_text_over_the_limit_is_not_read(void **state) {
    (void)state;
    char *text = malloc(PD_CONFIG_MAX_BYTES + 1);
    assert_non_null(text);
    memset(text, ' ', PD_CONFIG_MAX_BYTES + 1);
    pd_config config;
    pd_error err;
    assert_int_equal(pd_config_init(&config, &err), 0);
    assert_int_equal(pd_config_parse(&config, "f", text, PD_CONFIG_MAX_BYTES + 1, &err), -1);
    assert_string_equal(err.text, "f: longer than 1048576 bytes");
    pd_config_free(&config);
    free(text);
}

static void settings_that_contradict_each_other(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {{"{\"batch_bytes\": \"2MiB\", \"message_bytes\": \"1MiB\"}",
                  "batch_bytes (2097152) is more than message_bytes"},
                 {"{\"receive_mb\": 8}", "message_bytes (16777216) is more than receive_mb"},
                 {"{\"heartbeat_ms\": 60000}", "heartbeat_ms (60000 ms) is not less than idle_timeout_s"},
                 {"{\"listen\": []}", "listen is empty"},
                 {"{\"export_codec\": \"gzip\", \"export_level\": 10}", "more than 9"},
                 {"{\"message_bytes\": \"64KiB\", \"batch_bytes\": \"64KiB\"}", "max_attribute_bytes"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pd_config config;
        pd_error err;
        assert_int_equal(parse(&config, cases[i].text, &err), 0);
        assert_int_equal(pd_config_check(&config, &err), -1);
        assert_non_null(strstr(err.text, cases[i].part));
        pd_config_free(&config);
    }
}

static char *print(const pd_config *config, size_t *bytes) {
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes);
    assert_non_null(f);
    assert_int_equal(pd_config_print(config, f), 0);
    fclose(f);
    return text;
}

static void what_is_printed_reads_back_to_the_same(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}", "{\"listen\": [], \"export_interval_s\": 0.3, \"receive_mb\": 17.5, \"batch_bytes\": 65537, "
              "\"file_mode\": \"0400\",\n"
              " \"group\": \"lab\", \"summaries\": {\"enabled\": false, \"rate\": {\"max_seconds\": 3600}},\n"
              " \"profiles\": {\"my.cam\": [{\"name\": \"/a\", \"type\": \"int32\"},\n"
              "   {\"name\": \"/b\", \"type\": \"double\", \"group\": \"/a\", \"role\": \"start\", \"unit\": "
              "\"ns\", \"scale\": 0.25}]},\n \"volumes\": {\"b.2\": {\"data_dir\": \"/b\"}, \"a\": "
              "{\"data_dir\": \"/a\"}}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pd_config config, again;
        pd_error err;
        if (parse(&config, texts[i], &err) != 0)
            fail_msg("%s", err.text);
        size_t bytes, bytes_again;
        char *text = print(&config, &bytes);
        if (parse(&again, text, &err) != 0)
            fail_msg("%s in %s", err.text, text);
        char *text_again = print(&again, &bytes_again);
        assert_string_equal(text, text_again);
        for (size_t k = 0; k < pd_config_n_keys; k++)
            assert_int_not_equal(pd_json_line(text, bytes, pd_config_keys[k].path), 0);
        free(text);
        free(text_again);
        pd_config_free(&config);
        pd_config_free(&again);
    }
}

static void profiles_of_the_configuration(void **state) {
    (void)state;
    pd_config config;
    pd_error err;
    assert_int_equal(
        parse(&config,
              "{\"profiles\": {\"cam\": [\n"
              "  {\"name\": \"/p/x\", \"type\": \"uint32\", \"group\": \"p\", \"role\": \"position_x\"},\n"
              "  {\"name\": \"/p/t\", \"type\": \"float\", \"group\": \"p\", \"role\": \"micro_time\", "
              "\"unit\": \"ns\",\n"
              "   \"scale\": 0.1}]}}",
              &err),
        0);
    const pd_profile *cam = pd_profiles_find(config.profiles, "cam");
    assert_non_null(cam);
    assert_int_equal(cam->n_datasets, 2);
    assert_false(cam->lincam);
    assert_int_equal(cam->datasets[0].type, D7_UINT32);
    assert_int_equal(cam->datasets[1].role, PD_ROLE_MICRO_TIME);
    assert_string_equal(cam->datasets[1].unit, "ns");
    assert_true(cam->datasets[1].scale == 0.1);
    pd_config_free(&config);
}

static void volumes_of_the_configuration(void **state) {
    (void)state;
    pd_config config;
    pd_error err;
    assert_int_equal(
        parse(&config, "{\"volumes\": {\"b\": {\"data_dir\": \"/b\"}, \"a\": {\"data_dir\": \"/a\"}}}", &err),
        0);
    assert_int_equal(config.volumes.n, 2);
    assert_string_equal(config.volumes.items[0].name, "b");
    assert_string_equal(config.volumes.items[1].data_dir, "/a");
    assert_int_equal(pd_config_check(&config, &err), 0);
    pd_config_free(&config);
    assert_int_equal(
        parse(&config, "{\"volumes\": {\"b\": {\"data_dir\": \"/b\"}, \"a\": {\"data_dir\": \"/b\"}}}", &err),
        0);
    assert_int_equal(pd_config_check(&config, &err), -1);
    assert_string_equal(err.text, "volumes.b and volumes.a have one data_dir");
    pd_config_free(&config);
    refused("{\"volumes\": [\"/b\"]}", "photond.json:1: volumes: must be an object of folders by name");
    refused("{\"volumes\": {\"b\": {}}}",
            "photond.json:1: volumes.b.data_dir: must be given, as the path of a folder");
    refused("{\"volumes\": {\n\"b\": {\"data_dir\": \"/b\", \"dir\": 1}}}",
            "photond.json:2: volumes.b.dir: unknown key; did you mean \"data_dir\"?");
    refused(
        "{\"volumes\": {\".b\": {\"data_dir\": \"/b\"}}}",
        "photond.json:1: volumes..b: is no name of a volume: 1 to 64 letters, digits and ._-, a letter or "
        "digit first");
}

static void bad_profiles_are_refused_with_their_place(void **state) {
    (void)state;
    refused("{\"profiles\": {\"cam\": [{\"name\": \"/a\", \"type\": \"uint8\"},\n{\"name\": "
            "\"/b\",\n\"type\": \"uint7\"}]}}",
            "photond.json:3: profiles.cam[1].type: \"uint7\" is no element type (int8, ..., uint64, float, "
            "double)");
    refused("{\"profiles\": {\"cam\": [{\"name\": \"/a\", \"type\": \"uint8\", \"color\": 1}]}}",
            "photond.json:1: profiles.cam[0].color: unknown key (name, type, group, role, unit, scale are "
            "known)");
    refused("{\"profiles\": {\"cam\": [{\"name\": \"/a\"}]}}",
            "photond.json:1: profiles.cam[0]: needs a name and a type");
    refused("{\"profiles\": {\"cam\": []}}",
            "photond.json:1: profiles.cam: must be a list of 1 to 256 datasets");
    refused("{\"profiles\": {\"lincam\": [{\"name\": \"/a\", \"type\": \"uint8\"}]}}",
            "photond.json:1: profiles.lincam: is the name of a built-in profile");
    refused("{\"profiles\": {\"c\": [{\"name\": \"/a\", \"type\": \"uint8\"}, {\"name\": \"/a\", \"type\": "
            "\"uint8\"}]}}",
            "photond.json:1: profiles.c[1].name: /a is there twice");
    refused("{\"profiles\": {\"c\": [{\"name\": \"/a\", \"type\": \"uint8\", \"role\": \"colour\"}]}}",
            "photond.json:1: profiles.c[0].role: \"colour\" is no role (none, position_x, position_y, "
            "micro_time, channel, "
            "time_stamp, ms_index, start, stop)");
    refused("{\"profiles\": {\"c\": [{\"name\": \"/a\", \"type\": \"uint8\", \"scale\": -1}]}}",
            "photond.json:1: profiles.c[0].scale: /a: the scale must be a positive number");
    refused("{\"profiles\": []}", "photond.json:1: profiles: must be an object of profiles by name");
}

static void datasets_that_contradict_each_other(void **state) {
    (void)state;
    const pd_dataset same_role[] = {{"/a", D7_UINT8, "g", PD_ROLE_CHANNEL, "", 1},
                                    {"/b", D7_UINT8, "g", PD_ROLE_CHANNEL, "", 1}};
    const pd_dataset ms_in_group[] = {{"/a", D7_UINT8, "g", PD_ROLE_NONE, "", 1},
                                      {"/b", D7_UINT64, "g", PD_ROLE_MS_INDEX, "", 1}};
    const pd_dataset other_groups[] = {{"/a", D7_UINT8, "", PD_ROLE_CHANNEL, "", 1},
                                       {"/b", D7_UINT8, NULL, PD_ROLE_CHANNEL, NULL, 0}};
    size_t index = 0;
    const char *field = NULL;
    pd_error err;
    assert_int_equal(pd_datasets_check(same_role, 2, &index, &field, &err), -1);
    assert_int_equal(index, 1);
    assert_string_equal(field, "role");
    assert_int_equal(pd_datasets_check(ms_in_group, 2, &index, &field, &err), -1);
    assert_string_equal(field, "group");
    assert_int_equal(pd_datasets_check(other_groups, 2, NULL, NULL, &err), 0);
}

/* ---- what is written about it ---- */

static char *read_file(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s cannot be opened", path);
    char *text = calloc(1, PD_CONFIG_MAX_BYTES);
    assert_non_null(text);
    *bytes = fread(text, 1, PD_CONFIG_MAX_BYTES - 1, f);
    fclose(f);
    return text;
}

static void the_document_has_a_line_for_each_key_with_its_default(void **state) {
    (void)state;
    size_t bytes;
    char *text = read_file(TEST_FIXTURES "/../../docs/configuration.md", &bytes);
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        const pd_config_key *key = &pd_config_keys[i];
        const char *value = pd_config_key_is_file_only(key) ? "{}" : key->value[0] ? key->value : "\"\"";
        char line[256];
        snprintf(line, sizeof line, "\n| `%s` | `%s` | ", key->path, value);
        if (!strstr(text, line))
            fail_msg("docs/configuration.md has no line \"%s\"", line + 1);
    }
    free(text);
}

static void the_sample_file_is_good(void **state) {
    (void)state;
    pd_config config;
    pd_error err;
    assert_int_equal(pd_config_init(&config, &err), 0);
    if (pd_config_read(&config, TEST_FIXTURES "/../../daemon/etc/photond.json", &err) != 0 ||
        pd_config_check(&config, &err) != 0)
        fail_msg("%s", err.text);
    assert_non_null(pd_profiles_find(config.profiles, "example-detector"));
    pd_config_free(&config);
}

/* ---- the command line ---- */

static char *const_argument(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    return copy;
}

/* Runs pd_config_from_args; what was printed is in `out` and `errors`. */
static pd_config_action run(pd_config *config, capture *out, capture *errors, int n,
                            const char *const *arguments) {
    char *argv[16] = {const_argument("photond")};
    for (int i = 0; i < n; i++)
        argv[i + 1] = const_argument(arguments[i]);
    capture_start(out, STDOUT_FILENO);
    capture_start(errors, STDERR_FILENO);
    pd_config_action action = pd_config_from_args(config, n + 1, argv);
    fflush(stdout);
    capture_end(errors);
    capture_end(out);
    for (int i = 0; i <= n; i++)
        free(argv[i]);
    return action;
}

#define RUN(config, ...)                                                                                     \
    run(config, &out, &errors, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                \
        (const char *[]){__VA_ARGS__})

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void options_override_the_file(void **state) {
    (void)state;
    char path[] = "/tmp/photond-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "{\"ring_mb\": 32, \"max_runs\": 3, \"listen\": [\"tcp://h:1\", \"tcp://h:2\"]}");
    pd_config config;
    capture out, errors;
    assert_int_equal(RUN(&config, "--listen", "tcp://h:3", "--ring-mb=128MiB", "--config", path,
                         "--listen=unix:/s", "--allow-insecure-remote", "--summaries-image-pixels", "256"),
                     PD_CONFIG_RUN);
    assert_string_equal(errors.text, "");
    assert_int_equal(config.ring_bytes, 128 << 20);
    assert_int_equal(config.max_runs, 3);
    assert_int_equal(config.listen.n, 2);
    assert_string_equal(config.listen.items[0], "tcp://h:3");
    assert_string_equal(config.listen.items[1], "unix:/s");
    assert_true(config.allow_insecure_remote);
    assert_int_equal(config.summaries.pixels, 256);
    assert_int_equal(config.encoder_threads, 0); /* as given, not what this machine makes of it */
    pd_config_free(&config);

    assert_int_equal(RUN(&config, "--check-config", path), PD_CONFIG_EXIT);
    assert_non_null(strstr(out.text, ": good\n"));
    pd_config_free(&config);

    write_file(path, "{\"group\": \"no such group\"}");
    assert_int_equal(RUN(&config, "--check-config", path), PD_CONFIG_FAIL);
    assert_non_null(strstr(errors.text, "group no such group: there is no such group\n"));
    pd_config_free(&config);

    write_file(path, "{\"ring_mb\": 32,\n \"max_rnus\": 3}");
    assert_int_equal(RUN(&config, "--check-config", path), PD_CONFIG_FAIL);
    assert_non_null(strstr(errors.text, ":2: max_rnus: unknown key; did you mean \"max_runs\"?\n"));
    pd_config_free(&config);
    unlink(path);
    assert_int_equal(RUN(&config, "--config", path), PD_CONFIG_FAIL);
    assert_non_null(strstr(errors.text, "cannot be opened: No such file or directory"));
    pd_config_free(&config);
}

static void print_config_prints_all_keys(void **state) {
    (void)state;
    pd_config config, again;
    capture out, errors;
    pd_error err;
    assert_int_equal(RUN(&config, "--print-config", "--ring-mb", "7"), PD_CONFIG_EXIT);
    pd_config_free(&config);
    assert_int_equal(parse(&again, out.text, &err), 0);
    assert_int_equal(again.ring_bytes, 7 << 20);
    assert_int_equal(again.encoder_threads, 0); /* as given, not what this machine makes of it */
    pd_config_free(&again);
}

static void help_names_every_option(void **state) {
    (void)state;
    pd_config config;
    capture out, errors;
    assert_int_equal(RUN(&config, "--help"), PD_CONFIG_EXIT);
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        char option[PD_CONFIG_OPTION_BYTES + 3] = "--";
        pd_config_option(&pd_config_keys[i], option + 2);
        if (!pd_config_key_is_file_only(&pd_config_keys[i]))
            assert_non_null(strstr(out.text, option));
    }
    pd_config_free(&config);
    assert_int_equal(RUN(&config, "--version"), PD_CONFIG_EXIT);
    assert_int_equal(strncmp(out.text, "photond ", 8), 0);
    pd_config_free(&config);
}

static void bad_options_are_told(void **state) {
    (void)state;
    static const struct {
        const char *first, *second, *part;
    } cases[] = {{"--ringmb", "3", "--ringmb: unknown option; did you mean --ring-mb?"},
                 {"--zzz", "3", "--zzz: unknown option; see photond --help"},
                 {"ring", "3", "ring: not an option"},
                 {"--ring-mb", NULL, "--ring-mb: a value is missing"},
                 {"--config", NULL, "--config: a value is missing"},
                 {"--ring-mb", "x", "--ring-mb: \"x\" is not a number"},
                 {"--profiles", "x", "--profiles: unknown option"},
                 {"--", "x", "--: not an option"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pd_config config;
        capture out, errors;
        const char *arguments[] = {cases[i].first, cases[i].second};
        assert_int_equal(run(&config, &out, &errors, cases[i].second ? 2 : 1, arguments), PD_CONFIG_FAIL);
        if (!strstr(errors.text, cases[i].part))
            fail_msg("\"%s\" without \"%s\"", errors.text, cases[i].part);
        assert_int_equal(strncmp(errors.text, "photond: ", 9), 0);
        pd_config_free(&config);
    }
}

/* ---- lines ---- */

static void lines_of_values(void **state) {
    (void)state;
    static const char text[] = "{ \"a\": 1,\n"
                               "  \"b\": [ {\"c\": \"x\\\"}\"},\n"
                               "         {\"c\":\n"
                               "            null} ],\n"
                               "  \"\\u0064\": {\"e.f\": {}}, \"g\": []\n"
                               "}\n";
    static const struct {
        const char *path;
        size_t line;
    } cases[] = {{"a", 1}, {"b", 2},     {"b[0]", 2}, {"b[0].c", 2}, {"b[1]", 3}, {"b[1].c", 3},
                 {"d", 5}, {"d.e.f", 5}, {"g", 5},    {"h", 0},      {"b[2]", 0}, {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(pd_json_line(text, strlen(text), cases[i].path), cases[i].line);
    for (size_t n = 0; n < sizeof text; n++) /* a cut text must not lead past its end */
        pd_json_line(text, n, "g");
}

/* ---- LINCam ---- */

static void count_warning(void *user, const char *sentence) {
    assert_true(strlen(sentence) > 20);
    ++*(int *)user;
}

static void lincam_attributes(void **state) {
    (void)state;
    pd_default_attribute defaults[PD_LINCAM_DEFAULTS_MAX];
    assert_int_equal(pd_lincam_defaults(defaults, NULL, 0), 3);
    assert_string_equal(defaults[0].key, "FileGuid");
    assert_int_equal(strlen(defaults[0].value), 36);
    assert_int_equal(defaults[0].value[14], '4');
    assert_string_equal(defaults[1].key, "Created");
    assert_int_equal(strlen(defaults[1].value), strlen("2026-01-02 03:04:05.678"));
    assert_int_equal(strncmp(defaults[2].value, "photond ", 8), 0);
    pd_default_attribute others[PD_LINCAM_DEFAULTS_MAX];
    pd_lincam_defaults(others, NULL, 0);
    assert_string_not_equal(others[0].value, defaults[0].value);

    pd_attribute given[] = {{"Created", "long ago"}, {"/photons/TacBits", "8"}, {"/photons/TacChannel", "0"}};
    assert_int_equal(pd_lincam_defaults(defaults, given, 3), 2);
    assert_string_equal(defaults[1].key, "FileCreator");
    int n = 0;
    pd_lincam_check(given, 3, count_warning, &n);
    assert_int_equal(n, 2); /* PositionBits is missing, TacChannel is 0 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_a_default),
        cmocka_unit_test(values_in_units),
        cmocka_unit_test(unknown_keys_name_the_nearest),
        cmocka_unit_test(wrong_types_say_what_is_there_and_what_must_be),
        cmocka_unit_test(values_out_of_range),
        cmocka_unit_test(json_errors_have_line_and_column),
        cmocka_unit_test(a_text_over_the_limit_is_not_read),
        cmocka_unit_test(settings_that_contradict_each_other),
        cmocka_unit_test(what_is_printed_reads_back_to_the_same),
        cmocka_unit_test(profiles_of_the_configuration),
        cmocka_unit_test(volumes_of_the_configuration),
        cmocka_unit_test(bad_profiles_are_refused_with_their_place),
        cmocka_unit_test(datasets_that_contradict_each_other),
        cmocka_unit_test(the_document_has_a_line_for_each_key_with_its_default),
        cmocka_unit_test(the_sample_file_is_good),
        cmocka_unit_test(options_override_the_file),
        cmocka_unit_test(print_config_prints_all_keys),
        cmocka_unit_test(help_names_every_option),
        cmocka_unit_test(bad_options_are_told),
        cmocka_unit_test(lines_of_values),
        cmocka_unit_test(lincam_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
