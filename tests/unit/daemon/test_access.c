/* Rights, tokens, lists of users, and how often addresses connect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <netinet/in.h>

#include "connects.h"
#include "rights.h"
#include "tokens.h"
#include "users.h"

static void rights_read_as_they_are_written(void **state) {
    (void)state;
    pd_error err = {""};
    char text[PD_RIGHTS_TEXT_BYTES];
    for (unsigned rights = 0; rights < 8; rights++) {
        unsigned read = 99;
        assert_int_equal(pd_rights_parse(pd_rights_text(rights, text), &read, &err), 0);
        assert_int_equal(read, rights);
    }
    static const char *const wrong[] = {"fly", "send,", ",send", "send,,view", "Send", "send view", " send"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned read = 99;
        assert_int_equal(pd_rights_parse(wrong[i], &read, &err), -1);
        assert_int_equal(read, 99);
    }
}

static pd_tokens *read_tokens(const char *text, pd_error *err) {
    char path[] = "/tmp/photond-tokens-XXXXXX";
    pd_tokens *tokens = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
    int failed = pd_tokens_read(&tokens, path, err);
    unlink(path);
    assert_true(failed == 0 || (failed == -1 && !tokens));
    return tokens;
}

static void tokens_are_found_by_their_secret_alone(void **state) {
    (void)state;
    pd_error err = {""};
    char secret[2][PD_TOKEN_TEXT_BYTES], line[2][PD_TOKEN_LINE_BYTES], text[1200];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pd_token_make(secret[i], &err), 0);
        assert_int_equal(strlen(secret[i]), 4 + 43);
        assert_int_equal(pd_token_line(i ? "b" : "a", i ? PD_RIGHT_VIEW : PD_RIGHT_SEND, i ? "cam-*" : NULL,
                                       secret[i], line[i], &err),
                         0);
        assert_null(strstr(line[i], secret[i]));
    }
    assert_string_not_equal(secret[0], secret[1]);
    snprintf(text, sizeof text, "# two\n\n%s\r\n%s", line[0], line[1]);
    pd_tokens *tokens = read_tokens(text, &err);
    assert_non_null(tokens);
    assert_int_equal(pd_tokens_count(tokens), 2);
    for (int i = 0; i < 2; i++) {
        const pd_token *found = pd_tokens_find(tokens, (uint8_t *)secret[i], strlen(secret[i]));
        assert_non_null(found);
        assert_string_equal(found->name, i ? "b" : "a");
        assert_int_equal(found->rights, i ? PD_RIGHT_VIEW : PD_RIGHT_SEND);
        assert_true(pd_tokens_still_has(tokens, found));
        assert_null(pd_tokens_find(tokens, (uint8_t *)secret[i], strlen(secret[i]) - 1));
        assert_null(pd_tokens_find(tokens, (uint8_t *)line[i], strlen(line[i])));
        pd_token other = *found;
        other.rights |= PD_RIGHT_CONTROL;
        assert_false(pd_tokens_still_has(tokens, &other));
        other = *found;
        strcpy(other.instances, "other");
        assert_false(pd_tokens_still_has(tokens, &other));
        assert_int_equal(pd_token_speaks_for(found, "it"), i == 0);
        assert_true(pd_token_speaks_for(found, "cam-1"));
    }
    assert_null(pd_tokens_find(tokens, (const uint8_t *)"", 0));
    assert_null(pd_tokens_find(NULL, (const uint8_t *)"x", 1));
    pd_tokens_free(tokens);
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"

static void patterns_of_instances(void **state) {
    (void)state;
    static const struct {
        const char *patterns, *instance;
        bool is;
    } cases[] = {{"", "any", true},
                 {"a", "a", true},
                 {"a", "b", false},
                 {"a", "aa", false},
                 {"aa", "a", false},
                 {"*", "any", true},
                 {"?", "a", true},
                 {"?", "ab", false},
                 {"a*", "a", true},
                 {"a*", "abc", true},
                 {"a*", "ba", false},
                 {"*a", "bca", true},
                 {"*a", "ab", false},
                 {"a*b*c", "aXbYbZc", true},
                 {"a*b*c", "acb", false},
                 {"*ab*", "aaab", true},
                 {"a?c", "a,c", true},
                 {"a?c", "a c", true},
                 {"x,b*", "bcd", true},
                 {"x,b*", "x", true},
                 {"x,b*", "x,b", false},
                 {"[a-c]", "b", false},
                 {"[a-c]", "[a-c]", true},
                 {"a\\*", "a*", false},
                 {"*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pd_token token = {.name = "t"};
        strcpy(token.instances, cases[i].patterns);
        if (pd_token_speaks_for(&token, cases[i].instance) != cases[i].is)
            fail_msg("\"%s\" and \"%s\"", cases[i].patterns, cases[i].instance);
    }
}

static void files_that_are_no_tokens_are_refused_with_their_line(void **state) {
    (void)state;
    static const char *const wrong[] = {"a send",
                                        "a send 1234",
                                        "a send " HASH "0",
                                        "a send " HASH " ",
                                        "a  send " HASH,
                                        "a fly " HASH,
                                        "a/b send " HASH,
                                        " send " HASH,
                                        "good send " HASH,
                                        "a send " HASH "  cam",
                                        "a send " HASH " ,cam",
                                        "a send " HASH " cam,",
                                        "a send " HASH " a,,b",
                                        "a send " HASH " a b",
                                        "a send " HASH " a\tb"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pd_error err = {""};
        char text[256];
        snprintf(text, sizeof text, "good send %s\n%s\n", HASH, wrong[i]);
        assert_null(read_tokens(text, &err));
        assert_non_null(strstr(err.text, "line 2: "));
    }
    pd_error err = {""};
    char text[1000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    assert_null(read_tokens(text, &err));
    pd_tokens *none = read_tokens("", &err);
    assert_non_null(none);
    assert_int_equal(pd_tokens_count(none), 0);
    pd_tokens_free(none);
}

static void lists_of_users_are_read(void **state) {
    (void)state;
    pd_error err = {""};
    pd_users users;
    assert_int_equal(pd_users_parse(&users, "", &err), 0);
    assert_true(users.any);
    assert_int_equal(pd_users_parse(&users, "root,12,@34,@root", &err), 0);
    assert_true(!users.any && users.n_uids == 2 && users.n_gids == 2);
    assert_true(users.uids[0] == 0 && users.uids[1] == 12 && users.gids[0] == 34 && users.gids[1] == 0);
    static const char *const wrong[] = {
        ",", "root,", ",root", "@", "no-such-user-at-all", "@no-such-group", "-1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pd_users_parse(&users, wrong[i], &err), -1);
}

static const struct sockaddr *from(uint32_t host, struct sockaddr_in *address) {
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    return (const struct sockaddr *)address;
}

static void an_address_has_a_reserve_and_then_its_rate(void **state) {
    (void)state;
    pd_connects *connects = calloc(1, sizeof *connects);
    struct sockaddr_in address;
    uint64_t second = UINT64_C(1000000000), now = 50 * second;
    assert_non_null(connects);
    for (int i = 0; i < 20; i++)
        assert_true(pd_connects_allow(connects, from(0x01020304, &address), now, 2));
    assert_false(pd_connects_allow(connects, from(0x01020304, &address), now, 2));
    assert_true(pd_connects_allow(connects, from(0x01020305, &address), now, 2)); /* another's affair */
    assert_true(pd_connects_allow(connects, from(0x01020304, &address), now, 0));
    now += second;
    for (int i = 0; i < 2; i++)
        assert_true(pd_connects_allow(connects, from(0x01020304, &address), now, 2));
    assert_false(pd_connects_allow(connects, from(0x01020304, &address), now, 2));
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    memcpy(mapped.sin6_addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\377\377\1\2\3\4", 16);
    assert_false(pd_connects_allow(connects, (struct sockaddr *)&mapped, now, 2));
    free(connects);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_read_as_they_are_written),
        cmocka_unit_test(tokens_are_found_by_their_secret_alone),
        cmocka_unit_test(patterns_of_instances),
        cmocka_unit_test(files_that_are_no_tokens_are_refused_with_their_line),
        cmocka_unit_test(lists_of_users_are_read),
        cmocka_unit_test(an_address_has_a_reserve_and_then_its_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
