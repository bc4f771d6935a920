#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "moment.h"

/* As the kernel has them; its headers are not those of every C library. */
enum {
    GET_USER_NAMESPACE = 0xb701, /* an ioctl of namespaces: _IO(0xb7, 1) */
    ROUTE_PROTOCOL = 0,          /* NETLINK_ROUTE */
    NEW_ROUTE = 24,              /* RTM_NEWROUTE */
    ERROR = 2,                   /* NLMSG_ERROR */
    REQUEST_AND_ACKNOWLEDGE = 5, /* NLM_F_REQUEST | NLM_F_ACK */
    ONLY_IF_NEW = 0x600,         /* NLM_F_CREATE | NLM_F_EXCL */
    LOCAL_TABLE = 255,
    BY_ADMINISTRATOR = 4, /* RTPROT_STATIC */
    SCOPE_HOST = 254,
    TYPE_LOCAL = 2,
    OUTPUT_INTERFACE = 4, /* RTA_OIF */
};

struct message {
    uint32_t length;
    uint16_t type, flags;
    uint32_t sequence, port;
};

struct route_request {
    struct message message;
    uint8_t family, destination_bits, source_bits, service, table, protocol, scope, type;
    uint32_t route_flags;
    uint16_t attribute_length, attribute;
    uint32_t interface;
};

struct answer {
    struct message message;
    int32_t error; /* 0 for success, else the negative number */
    struct message about;
};

struct netlink_address {
    sa_family_t family;
    uint16_t padding;
    uint32_t port, groups;
};

enum { LONGEST_WAIT_MS = 10000, SHORT_NS = 200000 };

static const char *say(int error, const char *what) {
    errno = error;
    return what;
}

static bool is_same(int namespace, const char *path) {
    struct stat one, other;
    return fstat(namespace, &one) == 0 && stat(path, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static bool is_inode(int namespace, uint64_t inode) {
    struct stat found;
    return fstat(namespace, &found) == 0 && found.st_ino == inode;
}

const char *enter_network(int pid, uint64_t inode) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    int network = open(path, O_RDONLY | O_CLOEXEC);
    if (network < 0) return "cannot look at the network of the process";
    if (inode != 0 && !is_inode(network, inode)) return say(0, "the process is in another network than it should be");
    if (is_same(network, "/proc/self/ns/net")) return say(0, "the process is in our own network");

    int owner = ioctl(network, GET_USER_NAMESPACE);
    if (owner < 0) return "cannot tell whose the network is";
    if (!is_same(owner, "/proc/self/ns/user") && setns(owner, CLONE_NEWUSER) != 0) {
        return "cannot become the owner of the network";
    }
    if (setns(network, CLONE_NEWNET) != 0) return "cannot enter the network";
    close(owner);
    close(network);
    return NULL;
}

static bool read_flags(int control, const char *interface, short *flags) {
    struct ifreq request = {0};
    strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
    if (ioctl(control, SIOCGIFFLAGS, &request) != 0) return false;
    *flags = request.ifr_flags;
    return true;
}

/* With a way out besides, routes of ours would cut somebody off, and doors would be no wall. */
static const char *refuse_ways_out(int control) {
    struct if_nameindex *interfaces = if_nameindex();
    if (interfaces == NULL) return "cannot list the interfaces";
    const char *wrong = NULL;
    for (struct if_nameindex *each = interfaces; each->if_index != 0 && wrong == NULL; each++) {
        short flags;
        if (!read_flags(control, each->if_name, &flags)) wrong = "cannot look at an interface";
        else if ((flags & IFF_UP) && !(flags & IFF_LOOPBACK)) wrong = say(0, "the network has a way out");
    }
    if_freenameindex(interfaces);
    return wrong;
}

static const char *raise_loopback(int control, short flags) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = (short)(flags | IFF_UP)};
    return ioctl(control, SIOCSIFFLAGS, &request) == 0 ? NULL : "cannot raise the loopback";
}

static const char *await_loopback(int control, int builder) {
    for (long long end = moment() + LONGEST_WAIT_MS;;) {
        short flags;
        if (!read_flags(control, "lo", &flags)) return "there is no loopback";
        if (flags & IFF_UP) return NULL;
        if (builder == 0) return raise_loopback(control, flags);
        bool is_gone = kill(builder, 0) != 0 && errno == ESRCH;
        if (is_gone || moment() > end) return say(0, "nobody has raised the loopback");
        nanosleep(&(struct timespec){.tv_nsec = SHORT_NS}, NULL);
    }
}

/* Returns the error number; a route that is there already, from a gate before us, is as good as a new one. */
static int add_local_route(int kernel, uint8_t family, uint32_t loopback) {
    struct route_request request = {
        .message = {sizeof request, NEW_ROUTE, REQUEST_AND_ACKNOWLEDGE | ONLY_IF_NEW, 0, 0},
        .family = family,
        .table = LOCAL_TABLE,
        .protocol = BY_ADMINISTRATOR,
        .scope = SCOPE_HOST,
        .type = TYPE_LOCAL,
        .attribute_length = 8,
        .attribute = OUTPUT_INTERFACE,
        .interface = loopback,
    };
    struct netlink_address address = {.family = AF_NETLINK};
    if (sendto(kernel, &request, sizeof request, 0, (struct sockaddr *)&address, sizeof address) < 0) return errno;

    struct answer answer = {0};
    ssize_t length = recv(kernel, &answer, sizeof answer, 0);
    if (length < 0) return errno;
    if ((size_t)length < sizeof answer || answer.message.type != ERROR) return EPROTO;
    return answer.error == -EEXIST ? 0 : -answer.error;
}

static bool is_without_ipv6(int error) {
    return error == EACCES || error == EOPNOTSUPP || error == EAFNOSUPPORT;
}

/*
 * Every address is our own now, so the kernel would answer a ping to any of them, and somebody would take the world for
 * reachable. Some engines let everybody ping; where it stays so, a ping lies, and nothing else is lost.
 */
static void forbid_ping(void) {
    int range = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC);
    if (range < 0) return;
    ssize_t written = write(range, "1 0", 3);
    (void)written;
    close(range);
}

const char *make_every_address_local(int builder) {
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, ROUTE_PROTOCOL);
    if (control < 0 || kernel < 0) return "cannot talk to the kernel of the network";
    const char *wrong = await_loopback(control, builder);
    if (wrong == NULL) wrong = refuse_ways_out(control);
    if (wrong != NULL) return wrong;

    uint32_t loopback = if_nametoindex("lo");
    int error = add_local_route(kernel, AF_INET, loopback);
    if (error != 0) return say(error, "cannot make every address local");
    error = add_local_route(kernel, AF_INET6, loopback);
    if (error != 0 && !is_without_ipv6(error)) return say(error, "cannot make every IPv6 address local");
    forbid_ping();
    close(kernel);
    close(control);
    return NULL;
}
