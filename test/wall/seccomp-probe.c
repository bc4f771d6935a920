// Makes system calls that a filter may refuse and prints, for each, a name and "ok" or the error.
// With arguments "NAME=NUMBER" it makes those calls instead, with arguments that no call accepts.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH (1L << 32)
#define JUNK -1L, -1L, -1L, -1L, -1L, -1L

static void report(const char *name, long result) {
  printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno));
  fflush(stdout);
}

// Each call in a process of its own, so that none sees what another has changed.
#define PROBE(name, ...)                                                                                               \
  do {                                                                                                                 \
    pid_t child = fork();                                                                                              \
    if (child == 0) {                                                                                                  \
      report(name, __VA_ARGS__);                                                                                       \
      _exit(0);                                                                                                        \
    }                                                                                                                  \
    waitpid(child, NULL, 0);                                                                                           \
  } while (0)

// A pseudo-terminal that controls this process, as injection needs it.
static int terminal(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) exit(3);
  int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  if (slave < 0 || setsid() < 0 || ioctl(slave, TIOCSCTTY, 0)) exit(3);
  return slave;
}

static long clone_with(long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);
  if (pid == 0) _exit(0);
  return pid;
}

#ifdef __x86_64__
static long through_i386(int number) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "r8", "r9", "r10", "r11", "memory");
  if (result >= 0) return result;
  errno = -(int)result;
  return -1;
}
#endif

int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    char *number = strchr(names[i], '=');
    *number++ = 0;
    report(names[i], syscall(atol(number), JUNK));
  }
  if (count > 1) return 0;

  /* Nothing else may change its priority. */
  if (setpgid(0, 0) != 0) return 1;

  PROBE("keyctl", syscall(SYS_keyctl, 0L, -4L, 1L));
  PROBE("add_key", syscall(SYS_add_key, 0L, 0L, 0L, 0L, 0L));
  PROBE("request_key", syscall(SYS_request_key, 0L, 0L, 0L, 0L));
  PROBE("bpf", syscall(SYS_bpf, 0L, 0L, 1L << 20));
  PROBE("userfaultfd", syscall(SYS_userfaultfd, 1L));
  PROBE("perf_event_open", syscall(SYS_perf_event_open, 0L, 0L, -1L, -1L, ~0L));
  PROBE("fanotify_init", syscall(SYS_fanotify_init, 0x200L, 0L));
  PROBE("kcmp", syscall(SYS_kcmp, (long)getpid(), (long)getpid(), 1L, 0L, 0L));
  PROBE("move_pages", syscall(SYS_move_pages, 0L, 1L, 0L, 0L, 0L, 0L));
  PROBE("io_uring_setup", syscall(SYS_io_uring_setup, 0L, 0L));
  PROBE("io_uring_enter", syscall(SYS_io_uring_enter, -1L, 0L, 0L, 0L, 0L, 0L));

  PROBE("mount", syscall(SYS_mount, "none", "/tmp", "tmpfs", 0L, 0L));
  PROBE("umount2", syscall(SYS_umount2, "/nowhere", 0L));
  PROBE("pivot_root", syscall(SYS_pivot_root, 0L, 0L));
  PROBE("chroot", syscall(SYS_chroot, "/"));
  PROBE("setns", syscall(SYS_setns, -1L, 0L));
  PROBE("fsopen", syscall(SYS_fsopen, "tmpfs", 0L));
  PROBE("open_tree", syscall(SYS_open_tree, -1L, "/", 1L));
  PROBE("unshare NEWUSER", syscall(SYS_unshare, (long)CLONE_NEWUSER));
  PROBE("unshare NEWNS", syscall(SYS_unshare, (long)CLONE_NEWNS));
  PROBE("unshare NEWTIME", syscall(SYS_unshare, 0x80L));
  PROBE("unshare FS FILES", syscall(SYS_unshare, (long)(CLONE_FS | CLONE_FILES)));
  PROBE("clone NEWUSER", clone_with(CLONE_NEWUSER));
  PROBE("clone NEWNET", clone_with(CLONE_NEWNET));
  PROBE("clone", clone_with(0));
  PROBE("clone3", syscall(SYS_clone3, 0L, 0L));

  PROBE("ioctl TIOCSTI", syscall(SYS_ioctl, (long)terminal(), 0x5412L, "x"));
  PROBE("ioctl TIOCSTI, upper half set", syscall(SYS_ioctl, (long)terminal(), HIGH | 0x5412L, "x"));
  PROBE("ioctl TIOCLINUX", syscall(SYS_ioctl, (long)terminal(), 0x541cL, "\2"));
  PROBE("ioctl TIOCEXCL", syscall(SYS_ioctl, (long)terminal(), (long)TIOCEXCL, 0L));
  PROBE("ioctl TIOCSETD", syscall(SYS_ioctl, (long)terminal(), (long)TIOCSETD, &(int){0}));
  PROBE("ioctl KDSKBMODE", syscall(SYS_ioctl, (long)terminal(), 0x4b45L, 4L));
  PROBE("ioctl VT_ACTIVATE", syscall(SYS_ioctl, (long)terminal(), 0x5606L, 1L));
  PROBE("setpriority PRIO_PGRP", syscall(SYS_setpriority, 1L, 0L, 19L));
  PROBE("setpriority PRIO_USER, upper half set", syscall(SYS_setpriority, HIGH | 2L, 4000000000L, 19L));
  PROBE("ioprio_set IOPRIO_WHO_PGRP", syscall(SYS_ioprio_set, 2L, 0L, 3L << 13));
  PROBE("setpriority PRIO_PROCESS", syscall(SYS_setpriority, 0L, 0L, 19L));
  PROBE("ioprio_set IOPRIO_WHO_PROCESS", syscall(SYS_ioprio_set, 1L, 0L, 3L << 13));
  PROBE("ioctl TIOCGWINSZ", syscall(SYS_ioctl, (long)terminal(), (long)TIOCGWINSZ, &(struct winsize){0}));

  PROBE("socket AF_VSOCK", syscall(SYS_socket, 40L, (long)SOCK_STREAM, 0L));
  PROBE("socket AF_ALG", syscall(SYS_socket, 38L, (long)SOCK_SEQPACKET, 0L));
  PROBE("socket AF_PACKET, upper half set", syscall(SYS_socket, HIGH | 17L, (long)SOCK_RAW, 0L));
  PROBE("socket AF_PACKET", syscall(SYS_socket, 17L, (long)SOCK_RAW, 0L));
  PROBE("socket AF_INET SOCK_PACKET", syscall(SYS_socket, (long)AF_INET, 10L, 0L));
  PROBE("socketpair AF_INET6", syscall(SYS_socketpair, (long)AF_INET6, (long)SOCK_STREAM, 0L, 0L));
  PROBE("socketpair AF_PACKET", syscall(SYS_socketpair, 17L, (long)SOCK_RAW, 0L, (int[2]){0}));
  PROBE("netlink AUDIT", syscall(SYS_socket, 16L, (long)SOCK_RAW, 9L));
  PROBE("netlink KOBJECT_UEVENT", syscall(SYS_socket, 16L, (long)SOCK_RAW, 15L));
  PROBE("netlink ROUTE", syscall(SYS_socket, 16L, (long)SOCK_RAW, 0L));
  PROBE("socket AF_UNIX", syscall(SYS_socket, (long)AF_UNIX, (long)SOCK_STREAM, 0L));
  PROBE("socket AF_INET", syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, 0L));
  PROBE("socket AF_INET, upper half set", syscall(SYS_socket, HIGH | AF_INET, (long)SOCK_STREAM, 0L));
  PROBE("socket AF_INET6", syscall(SYS_socket, (long)AF_INET6, (long)(SOCK_DGRAM | SOCK_CLOEXEC), 0L));
  PROBE("socketpair AF_UNIX", syscall(SYS_socketpair, (long)AF_UNIX, (long)SOCK_STREAM, 0L, (int[2]){0}));

#ifdef __x86_64__
  PROBE("getpid through i386", through_i386(20));
  PROBE("getpid through x32", syscall(0x40000000L | SYS_getpid));
#endif
  return 0;
}
