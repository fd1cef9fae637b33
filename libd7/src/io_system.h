/* Files of d7_io_system(), for tables that find them in another way. */
#ifndef D7_SRC_IO_SYSTEM_H
#define D7_SRC_IO_SYSTEM_H

/* open(2)'s flags for those of enum d7_io_flags. */
int d7__io_open_flags(int flags);

/* A file of an open descriptor, which it takes in any case. Returns 0 or -ENOMEM. */
int d7__io_adopt(int fd, void **ret_file);

int d7__io_fd(const void *file);

#endif
