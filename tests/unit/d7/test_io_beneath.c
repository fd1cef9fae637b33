/* Files below an open folder: found as ever, but through no link and never outside; by openat2() and without it. */
#define d7_io_beneath beneath_tested
#include "io_beneath.c"
#undef d7_io_beneath

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct place {
    char path[64], outside[80];
    d7_io_folder folder;
} place;

static void make(const char *base, const char *name, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", base, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void begin(place *p) {
    char path[200];
    strcpy(p->path, "/tmp/beneath.XXXXXX");
    assert_non_null(mkdtemp(p->path));
    snprintf(p->outside, sizeof p->outside, "%s/outside", p->path);
    snprintf(path, sizeof path, "%s/data", p->path);
    assert_int_equal(mkdir(path, 0700) | mkdir(p->outside, 0700), 0);
    snprintf(path, sizeof path, "%s/data/in", p->path);
    assert_int_equal(mkdir(path, 0700), 0);
    make(path, "file", "inside");
    make(p->outside, "file", "outside");
    snprintf(path, sizeof path, "%s/data/out", p->path);
    assert_int_equal(symlink(p->outside, path), 0);
    snprintf(path, sizeof path, "%s/data/link", p->path);
    assert_int_equal(symlink("in/file", path), 0);
    snprintf(path, sizeof path, "%s/data", p->path);
    p->folder = (d7_io_folder){.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .path = strdup(path)};
    assert_true(p->folder.fd >= 0);
}

static void end(place *p) {
    char command[100];
    close(p->folder.fd);
    free((char *)(uintptr_t)p->folder.path);
    snprintf(command, sizeof command, "rm -rf %s", p->path);
    assert_int_equal(system(command), 0);
}

/* What opening gives: 0, or why not. */
static int opens(const place *p, const char *rest, int flags, bool slowly) {
    int how = d7__io_open_flags(flags);
    int fd = slowly ? beneath_open_slowly(p->folder.fd, rest, how, 0600)
                    : beneath_open_fd(&p->folder, rest, how, 0600);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

static void only_what_is_inside_is_opened(void **state) {
    (void)state;
    place p;
    begin(&p);
    for (int slowly = 0; slowly < 2; slowly++) {
        assert_int_equal(opens(&p, "in/file", D7_IO_WRITE, slowly), 0);
        assert_int_equal(opens(&p, "in//file", D7_IO_READ, slowly), 0);
        assert_int_equal(opens(&p, "in/missing", D7_IO_READ, slowly), -ENOENT);
        assert_int_equal(opens(&p, "in/file/more", D7_IO_READ, slowly), slowly ? -ELOOP : -ENOTDIR);
        assert_int_equal(
            opens(&p, slowly ? "in/made2" : "in/made1", D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE, slowly),
            0);
        assert_int_equal(opens(&p, "in/file", D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE, slowly), -EEXIST);
        assert_int_equal(opens(&p, "link", D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE, slowly), -EEXIST);
        assert_int_equal(opens(&p, "out/new", D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE, slowly), -ELOOP);
        assert_int_equal(opens(&p, "out/file", D7_IO_READ, slowly), -ELOOP);
        assert_int_equal(opens(&p, "out/new", D7_IO_WRITE | D7_IO_CREATE, slowly), -ELOOP);
        assert_int_equal(opens(&p, "link", D7_IO_READ, slowly), -ELOOP);
        assert_int_equal(opens(&p, "../outside/file", D7_IO_READ, slowly), -EXDEV);
        assert_int_equal(opens(&p, "in/../../outside/file", D7_IO_READ, slowly), -EXDEV);
        assert_int_equal(opens(&p, "..", D7_IO_READ, slowly), -EXDEV);
    }
    end(&p);
}

static void the_table_goes_by_paths(void **state) {
    (void)state;
    place p;
    char path[200];
    void *file;
    bool same;
    begin(&p);
    d7_io io = beneath_tested(&p.folder);
    snprintf(path, sizeof path, "%s/data/in/file", p.path);
    assert_int_equal(io.open(io.ctx, path, D7_IO_WRITE, 0, &file), 0);
    assert_int_equal(io.pwrite(io.ctx, file, "I", 1, 0), 1);
    assert_int_equal(io.same(io.ctx, file, path, &same), 0);
    assert_true(same);
    assert_int_equal(io.sync_directory(io.ctx, path), 0);
    assert_int_equal(io.remove(io.ctx, path), 0);
    assert_int_equal(io.same(io.ctx, file, path, &same), -ENOENT);
    assert_int_equal(io.close(io.ctx, file), 0);
    snprintf(path, sizeof path, "%s/data/out/file", p.path);
    assert_int_equal(io.open(io.ctx, path, D7_IO_READ, 0, &file), -ELOOP);
    assert_int_equal(io.remove(io.ctx, path), -ELOOP);
    assert_int_equal(io.sync_directory(io.ctx, path), -ELOOP);
    snprintf(path, sizeof path, "%s/file", p.outside);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(io.open(io.ctx, path, D7_IO_READ, 0, &file), -EXDEV);
    assert_int_equal(io.open(io.ctx, p.folder.path, D7_IO_READ, 0, &file), -EXDEV);
    end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_inside_is_opened),
        cmocka_unit_test(the_table_goes_by_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
