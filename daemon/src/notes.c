#include "notes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HIDDEN PD_HIDDEN_NAME "/"

void pd_note_path(char ret[PD_NOTE_BYTES], const char *name, const char *suffix) {
    snprintf(ret, PD_NOTE_BYTES, HIDDEN "%s%s", name, suffix);
}

bool pd_note_is(const char *file, const char *suffix, char name[PD_PART_NAME_BYTES + 1]) {
    size_t n = strlen(file), end = strlen(suffix);
    if (n <= end || n - end > PD_PART_NAME_BYTES || strcmp(file + n - end, suffix) != 0)
        return false;
    memcpy(name, file, n - end);
    name[n - end] = 0;
    return true;
}

int pd_note_make(const pd_datadir *dir, const char *name, const char *suffix) {
    char note[PD_NOTE_BYTES];
    pd_note_path(note, name, suffix);
    pd_datadir_keep_hidden(dir);
    int fd = openat(dir->fd, note, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

int pd_note_take(const pd_datadir *dir, const char *from, const char *name, const char *suffix) {
    char note[PD_NOTE_BYTES];
    pd_note_path(note, name, suffix);
    pd_datadir_keep_hidden(dir);
    return renameat(dir->fd, from, dir->fd, note) == 0 ? 0 : -errno;
}

DIR *pd_notes_open(const pd_datadir *dir) {
    int fd = openat(dir->fd, HIDDEN, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (!entries && fd >= 0)
        close(fd);
    return entries;
}
