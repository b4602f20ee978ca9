#ifndef CLINUX_SHIM_H
#define CLINUX_SHIM_H

/* What Linux has and Swift's Glibc module leaves out: eventfd is in a header that it does not import,
   pthread_setname_np, pipe2 and closing what a child inherits need _GNU_SOURCE, pidfd_open has no wrapper in the C library of Debian 12. */
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <pthread.h>
#include <spawn.h>
#include <fcntl.h>
#include <unistd.h>

extern int pipe2(int ends[2], int flags);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
extern int pthread_setname_np(pthread_t thread, const char *name);

static inline int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }
static inline int clinux_pipe(int *ends) { return pipe2(ends, O_CLOEXEC); }
static inline int clinux_close_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
static inline int clinux_pidfd_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

#endif
