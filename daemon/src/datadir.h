/* The data folder: one daemon at a time, which names are taken, and how a file gets its name.
 *
 *   DATA_DIR/NAME.photons ...   what runs leave (file_names below lists all that belongs to a run)
 *   DATA_DIR/.photond.lock      held while the daemon lives; its text is the daemon's process id
 *   DATA_DIR/.photond/          files in the making: RUN_ID.new, its tail and its checksums, and the exporter's folder
 *
 * Nothing else in the folder is ever touched. All is reached from the folder's descriptor, whatever its path leads to by now, and
 * through no symbolic link: so nothing that is put into the folder leads out of it.
 *
 * Thread: opened and closed before and after the threads run; the functions on names are called by the
 * syncer.
 */
#ifndef PD_DATADIR_H
#define PD_DATADIR_H

#include <d7/d7.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "error.h"

enum {
    PD_RUN_NAME_BYTES = 128,       /* of a run's name, at most */
    PD_PART_NAME_BYTES = 128 + 11, /* of a part of a run: NAME.0001, at most NAME.4294967295 */
    PD_FILE_NAME_BYTES = 128 + 32, /* of a file in the folder, with the NUL */
    PD_RUN_ID_BYTES = 16
};

#define PD_CERTIFICATE_SUFFIX ".run.json"
#define PD_SIGNATURE_SUFFIX ".run.json.sig"

/* The folder in a data folder for files in the making and notes. */
#define PD_HIDDEN_NAME ".photond"

struct pd_run_names;

typedef struct pd_datadir {
    char *path; /* as configured, without a slash at its end */
    int fd;
    d7_io_folder folder; /* fd and path */
    d7_io io;            /* by which libd7 reaches files of the folder; its context is `folder` */
    int lock_fd;
    unsigned dir_mode;
    bool guarded;               /* the lock is held; false where the file system has none */
    struct pd_run_names *names; /* what is known of the other folders; NULL: there are none */
} pd_datadir;

/* Opens the folder (making it when only it is missing), takes the lock and clears left-over files in the
 * making. Returns 0; -1 with err: no such folder, another daemon has it, no right to write. */
PD_MUST_USE int pd_datadir_open(pd_datadir *dir, const char *path, unsigned dir_mode, pd_error *err);

/* libd7's way to files of the folder, by paths as pd_datadir_file_path() gives them. Lives as long as `dir` is open. */
const d7_io *pd_datadir_io(const pd_datadir *dir);

/* Gives the lock back. A folder that was not opened (all zero, fds -1) is fine. */
void pd_datadir_close(pd_datadir *dir);

/* Where a run's file is made, before it has its name: "DATA_DIR/.photond/ID.new". Returns 0, or -1 when
 * too long. */
PD_MUST_USE int pd_datadir_new_path(const pd_datadir *dir, const uint8_t id[PD_RUN_ID_BYTES], char *path,
                                    size_t cap);

/* Makes the folder for files in the making anew when somebody removed it. */
void pd_datadir_keep_hidden(const pd_datadir *dir);

/* Whether a file of a run of this name exists. `which` names it. */
bool pd_datadir_taken(const pd_datadir *dir, const char *name, char which[PD_FILE_NAME_BYTES]);

/* The name of the run that a file of the folder belongs to. False: to none. */
bool pd_datadir_run_of(const char *file, char name[PD_RUN_NAME_BYTES + 1]);

/* Where the file of that name is: DATA_DIR/NAME.photons. Returns `path`. */
const char *pd_datadir_file_path(const pd_datadir *dir, const char *name, char path[PATH_MAX]);

/* The name of a part's files: the run's own for the first, NAME.0001 for the second. Returns `out`. */
const char *pd_datadir_part_name(char out[PD_PART_NAME_BYTES + 1], const char *run, uint32_t part);

/* Whether the folder has NAME followed by `suffix`, whatever it is. */
bool pd_datadir_has(const pd_datadir *dir, const char *name, const char *suffix);

/* Whether a file's name ends in `suffix`, and what stands before it. */
bool pd_datadir_name_of(const char *file, const char *suffix, char name[PD_PART_NAME_BYTES + 1]);

/* The folder itself ("."), or PD_HIDDEN_NAME in it, to be read. NULL with errno. */
DIR *pd_datadir_list(const pd_datadir *dir, const char *folder);

/* The part that a name of files is of, and the run's name. */
uint32_t pd_datadir_name_part(const char *name, char run[PD_PART_NAME_BYTES + 1]);

/* Gives the tail of the file at `new_path` the name NAME.photons.tail, then the file the name NAME.photons, and then its
 * checksums, where there are any, NAME.photons.crc, replacing nothing: a file of ours never stands without its tail while
 * it is open. Returns 0 or a negative errno (-EEXIST), and then all have their old names. */
PD_MUST_USE int pd_datadir_publish(const pd_datadir *dir, const char *new_path, const char *name);

/* ---- single files: `file` is a name in the folder, or PD_HIDDEN_NAME "/" and one in that. Any thread. ---- */

/* What stands behind DATA_DIR/ in a path of the folder's. NULL: it is no such path. */
const char *pd_datadir_within(const pd_datadir *dir, const char *path);

/* Opens a file. Returns a descriptor or a negative errno; -ELOOP: it is a symbolic link, or lies behind one. */
PD_MUST_USE int pd_datadir_open_file(const pd_datadir *dir, const char *file, int flags, unsigned mode);

/* What is there; a symbolic link itself. Returns 0 or a negative errno. */
PD_MUST_USE int pd_datadir_look(const pd_datadir *dir, const char *file, struct stat *ret);

/* Removes a file. Returns 0 or a negative errno. */
int pd_datadir_remove(const pd_datadir *dir, const char *file);

/* Gives space back that was set aside behind a file's end, when there is any: of one that is closed. Returns 0 or a negative
 * errno. */
PD_MUST_USE int pd_datadir_give_back(const pd_datadir *dir, const char *file);

/* Gives a file another name: in place of what is there, or replacing nothing. Returns 0 or a negative errno (-EEXIST). */
PD_MUST_USE int pd_datadir_move(const pd_datadir *dir, const char *from, const char *to);
PD_MUST_USE int pd_datadir_place(const pd_datadir *dir, const char *from, const char *to);

/* Removes NAME.photons.tail. Returns 0 or a negative errno. */
PD_MUST_USE int pd_datadir_remove_tail(const pd_datadir *dir, const char *name);

/* Waits until the folder's entries are on the disk. Returns 0 or a negative errno. */
PD_MUST_USE int pd_datadir_sync(const pd_datadir *dir);

/* Bytes that an unprivileged process can still write; UINT64_MAX when not known. Any thread. */
uint64_t pd_datadir_free_bytes(const pd_datadir *dir);

#endif
