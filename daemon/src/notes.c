#include "notes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void pd_note_path(char ret[PD_NOTE_BYTES], const char *name, const char *suffix) {
    snprintf(ret, PD_NOTE_BYTES, PD_HIDDEN_NAME "/%s%s", name, suffix);
}

int pd_note_make(const pd_datadir *dir, const char *name, const char *suffix) {
    char note[PD_NOTE_BYTES];
    pd_note_path(note, name, suffix);
    pd_datadir_keep_hidden(dir);
    int fd = pd_datadir_open_file(dir, note, O_WRONLY | O_CREAT, 0600);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

int pd_note_take(const pd_datadir *dir, const char *from, const char *name, const char *suffix) {
    char note[PD_NOTE_BYTES];
    pd_note_path(note, name, suffix);
    pd_datadir_keep_hidden(dir);
    return pd_datadir_move(dir, from, note);
}
