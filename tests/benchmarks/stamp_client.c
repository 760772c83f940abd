/* The floor: what reading and stamping a stream costs in C, with one epoll loop. Opens one connection a stream, sends all
 * requests at once, stamps every event, and does nothing else.
 *
 * stamp_client PORT STREAMS TOKENS LOG: to LOG go records of struct entry: event -1 is the send, 0.. are the events of
 * the stream in order, usage and [DONE] included. Waits half a second at the end, so that its CPU time can be read.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 1024
#define OTHERS 2 /* events of a stream that bear no token: usage and [DONE] */
#define END "0\r\n\r\n"

struct entry {
    int64_t ns;
    int32_t stream;
    int32_t event;
};

static struct entry *entries;
static size_t count, room;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void record(int64_t ns, int stream, int event) {
    if (count < room)
        entries[count++] = (struct entry){ns, stream, event};
}

static int connected(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (void *)&address, sizeof address))
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Read what is there, stamped before it is looked at; true at the end of the stream. */
static int take(int fd, int stream, int *events) {
    char data[65536];
    int64_t now = now_ns();
    ssize_t got = recv(fd, data, sizeof data, MSG_DONTWAIT);
    if (got <= 0)
        die("the server hung up");
    for (char *at = data; (at = memmem(at, data + got - at, "data: ", 6)); at += 6)
        record(now, stream, (*events)++);
    return got >= (ssize_t)strlen(END) && !memcmp(data + got - strlen(END), END, strlen(END));
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    int port = atoi(argv[1]), streams = atoi(argv[2]), tokens = atoi(argv[3]), epoll = epoll_create1(0);
    int *fds = calloc(streams, sizeof *fds), *events = calloc(streams, sizeof *events);
    char body[256], request[512];
    struct epoll_event ready[EVENTS];
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    room = (size_t)streams * (tokens + OTHERS + 1);
    if (!(entries = calloc(room, sizeof *entries)))
        die("memory");
    int size = sprintf(body, "{\"model\":\"pace\",\"prompt\":\"people\",\"max_tokens\":%d,\"stream\":true}", tokens);
    int bytes = sprintf(request, "POST /v1/completions HTTP/1.1\r\nHost: pace\r\nContent-Length: %d\r\n\r\n%s", size, body);
    for (int i = 0; i < streams; i++) {
        struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = i};
        fds[i] = connected(port);
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &wanted);
    }
    for (int i = 0; i < streams; i++) {
        record(now_ns(), i, -1);
        if (send(fds[i], request, bytes, 0) != bytes)
            die("send");
    }
    for (int left = streams; left > 0;) {
        int number = epoll_wait(epoll, ready, EVENTS, -1);
        for (int i = 0; i < number; i++)
            left -= take(fds[ready[i].data.u32], ready[i].data.u32, &events[ready[i].data.u32]);
    }
    FILE *log = fopen(argv[4], "wb");
    if (!log || fwrite(entries, sizeof *entries, count, log) != count || fclose(log))
        die(argv[4]);
    usleep(500000);
    return 0;
}
