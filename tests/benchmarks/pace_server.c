/* An OpenAI server that replays completions at a pace, and logs when it sent each chunk.
 *
 * All streams advance on one tick, as those of an engine's batch do. Connections are dealt out evenly over threads, one
 * pinned to each core of --cores. A stream that does not take its bytes loses ticks, not chunks.
 *
 * On stdout: "port N"; then, with a CLOCK_MONOTONIC time, "busy NS" whenever the first request of an idle server is in
 * and "idle NS" when the last one of them has its last byte; at SIGTERM a line of JSON, once the log is written: records
 * of struct entry, thread after thread. Ends with its parent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define EVENTS 256
#define REQUEST_LIMIT (1 << 20)
#define SECOND 1000000000LL

/* chunk: -1 when the request is in, 0.. for each chunk with a token, just before it is handed to the socket. */
struct entry {
    int64_t ns;
    int32_t stream;
    int32_t chunk;
};

struct connection {
    int fd;
    char *request;
    size_t have, room;
    int stream, tokens, sent, chat; /* tokens 0: no request is being answered */
    int64_t due_ns;
    const char *rest; /* of the last chunk, not taken by the socket yet */
    size_t rest_bytes;
    size_t place; /* among the thread's active ones */
    char end[1024];
};

struct thread {
    pthread_t id;
    int epoll, timer, core;
    struct connection **active;
    size_t actives, active_room;
    struct entry *log;
    size_t entries, log_room;
    long late_ticks, lost_ticks;
    double cpu_s;
};

static struct thread threads[MAX_THREADS];
static int thread_count;
static double tick_ms = 20, first_ms = 0;
static int default_tokens = 150;
static atomic_int in_flight, max_in_flight, streams;
static atomic_bool over;

#define PAYLOAD(kind, choice)                                                                                          \
    "data: {\"id\":\"cmpl-93213bfda3716adc00000000000000\",\"object\":\"" kind "\",\"created\":1796049204,"            \
    "\"model\":\"pace\",\"choices\":[{\"index\":0," choice "}]}\n\n"
#define TEXT(finish) "\"text\":\" people\",\"logprobs\":null,\"finish_reason\":" finish ",\"stop_reason\":null,\"token_ids\":null"
#define DELTA(delta, finish) "\"delta\":{" delta "},\"logprobs\":null,\"finish_reason\":" finish ",\"token_ids\":null"

static const char *const token[2] = {
    PAYLOAD("text_completion", TEXT("null")),
    PAYLOAD("chat.completion.chunk", DELTA("\"content\":\" people\"", "null")),
};
static const char *const last_token[2] = {
    PAYLOAD("text_completion", TEXT("\"length\"")),
    PAYLOAD("chat.completion.chunk", DELTA("\"content\":\" people\"", "\"length\"")),
};
static const char *const opening[2] = {
    "", PAYLOAD("chat.completion.chunk", DELTA("\"role\":\"assistant\",\"content\":\"\"", "null"))};
static char first_chunk[2][2048], chunk[2][1024];

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *grown(void *memory, size_t *room, size_t item) {
    *room = *room ? *room * 2 : 4096;
    if (!(memory = realloc(memory, *room * item)))
        die("memory");
    return memory;
}

static char *framed(char *to, const char *data) { /* one chunk of a chunked body; nothing for no data */
    return *data ? to + sprintf(to, "%zx\r\n%s\r\n", strlen(data), data) : to;
}

static void render(void) {
    for (int chat = 0; chat < 2; chat++) {
        char *to = stpcpy(first_chunk[chat], "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                                             "Transfer-Encoding: chunked\r\n\r\n");
        framed(framed(to, opening[chat]), token[chat]);
        framed(chunk[chat], token[chat]);
    }
}

static void record(struct thread *t, int stream, int chunk_number, int64_t ns) {
    if (t->entries == t->log_room)
        t->log = grown(t->log, &t->log_room, sizeof *t->log);
    t->log[t->entries++] = (struct entry){ns, stream, chunk_number};
}

static void hang_up(struct thread *t, struct connection *c);

/* Give the socket what is left; false when the connection is gone. */
static int flush_rest(struct thread *t, struct connection *c) {
    while (c->rest_bytes) {
        ssize_t taken = send(c->fd, c->rest, c->rest_bytes, MSG_NOSIGNAL);
        if (taken < 0) {
            if (errno == EAGAIN)
                return 1;
            hang_up(t, c);
            return 0;
        }
        c->rest += taken;
        c->rest_bytes -= taken;
    }
    return 1;
}

static void leave(struct thread *t, struct connection *c) { /* the list of active ones */
    struct connection *last = t->active[--t->actives];
    t->active[last->place = c->place] = last;
    c->tokens = 0;
    if (atomic_fetch_sub(&in_flight, 1) == 1)
        printf("idle %lld\n", (long long)now_ns());
}

static void hang_up(struct thread *t, struct connection *c) {
    if (c->tokens)
        leave(t, c);
    close(c->fd);
    free(c->request);
    free(c);
}

static const char *last_chunk(struct connection *c) {
    char usage[256], *to = c->end;
    sprintf(usage,
            "data: {\"id\":\"cmpl-9\",\"created\":1796049204,\"model\":\"pace\",\"choices\":[],\"usage\":"
            "{\"prompt_tokens\":16,\"total_tokens\":%d,\"completion_tokens\":%d}}\n\n",
            16 + c->tokens, c->tokens);
    if (c->sent == 0) /* it is the first one, too */
        to = stpcpy(to, first_chunk[c->chat]) - strlen(chunk[c->chat]);
    to = framed(framed(framed(to, last_token[c->chat]), usage), "data: [DONE]\n\n");
    strcpy(to, "0\r\n\r\n");
    return c->end;
}

/* The next chunk; the last one with usage, [DONE] and the end of the body. False when the connection is gone. */
static int advance(struct thread *t, struct connection *c) {
    if (c->rest_bytes) {
        t->lost_ticks++;
        return flush_rest(t, c);
    }
    if (c->sent == c->tokens) { /* all sent, all taken */
        leave(t, c);
        return 0;
    }
    if (c->sent + 1 == c->tokens)
        c->rest = last_chunk(c);
    else
        c->rest = c->sent ? chunk[c->chat] : first_chunk[c->chat];
    c->rest_bytes = strlen(c->rest);
    record(t, c->stream, c->sent++, now_ns());
    if (!flush_rest(t, c))
        return 0;
    if (c->sent < c->tokens || c->rest_bytes)
        return 1;
    leave(t, c);
    return 0;
}

static void on_tick(struct thread *t) {
    uint64_t expired = 0;
    if (read(t->timer, &expired, sizeof expired) < 0)
        return;
    if (t->actives)
        t->late_ticks += expired - 1;
    int64_t now = now_ns();
    for (size_t i = 0; i < t->actives;) {
        struct connection *c = t->active[i];
        i += c->due_ns > now || advance(t, c); /* one that is gone has left its place to another */
    }
}

static long number_after(const char *text, const char *key) {
    const char *found = strstr(text, key);
    return found ? strtol(found + strlen(key), NULL, 10) : -1;
}

static void say(int fd, const char *status, const char *body) {
    dprintf(fd, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body),
            body);
}

static void begin(struct thread *t, struct connection *c) {
    int64_t now = now_ns();
    long asked = number_after(c->request, "\"max_tokens\":");
    if (asked < 1)
        asked = number_after(c->request, "\"max_completion_tokens\":");
    c->tokens = asked < 1 ? default_tokens : asked;
    c->sent = 0;
    c->chat = !strncmp(c->request, "POST /v1/chat", 13);
    c->stream = atomic_fetch_add(&streams, 1);
    c->due_ns = now + (int64_t)(first_ms * 1e6);
    if (t->actives == t->active_room)
        t->active = grown(t->active, &t->active_room, sizeof *t->active);
    c->place = t->actives;
    t->active[t->actives++] = c;
    record(t, c->stream, -1, now);
    int flying = atomic_fetch_add(&in_flight, 1) + 1;
    if (flying == 1)
        printf("busy %lld\n", (long long)now);
    for (int most = atomic_load(&max_in_flight); flying > most;)
        if (atomic_compare_exchange_weak(&max_in_flight, &most, flying))
            break;
}

static void on_request(struct thread *t, struct connection *c) {
    char *end = strstr(c->request, "\r\n\r\n"), *length;
    if (!end)
        return;
    *end = 0;
    length = strcasestr(c->request, "\r\ncontent-length:");
    size_t body = length ? strtoul(length + 17, NULL, 10) : 0;
    *end = '\r';
    if (c->have < (size_t)(end + 4 - c->request) + body)
        return;
    if (!strncmp(c->request, "POST /v1/", 9))
        begin(t, c);
    else
        say(c->fd, "200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"pace\",\"object\":\"model\",\"root\":\"pace\"}]}");
    c->have = 0; /* no pipelining */
}

static void on_bytes(struct thread *t, struct connection *c) {
    if (c->have + 4096 > c->room)
        c->request = grown(c->request, &c->room, 1);
    ssize_t got = recv(c->fd, c->request + c->have, c->room - c->have - 1, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0 || c->tokens || c->have + got > REQUEST_LIMIT) {
        hang_up(t, c);
        return;
    }
    c->request[c->have += got] = 0;
    on_request(t, c);
}

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (core >= 0 && sched_setaffinity(0, sizeof set, &set))
        die("--cores");
}

static void *serve(void *argument) {
    struct thread *t = argument;
    struct epoll_event events[EVENTS];
    pin(t->core);
    while (!over) {
        int ready = epoll_wait(t->epoll, events, EVENTS, 100), ticked = 0;
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr)
                on_bytes(t, events[i].data.ptr);
            else
                ticked = 1;
        }
        if (ticked) /* last: it may free connections */
            on_tick(t);
    }
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    t->cpu_s = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    return NULL;
}

static void start(struct thread *t) {
    int64_t tick = tick_ms * 1e6, first = (now_ns() / tick + 2) * tick; /* the same moments in every thread */
    struct itimerspec every = {{tick / SECOND, tick % SECOND}, {first / SECOND, first % SECOND}};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if ((t->epoll = epoll_create1(0)) < 0 || (t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)) < 0)
        die("epoll");
    timerfd_settime(t->timer, TFD_TIMER_ABSTIME, &every, NULL);
    epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->timer, &event);
    if (pthread_create(&t->id, NULL, serve, t))
        die("thread");
}

static int listener(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (void *)&address, size) || listen(fd, 4096) || getsockname(fd, (void *)&address, &size))
        die("listen");
    printf("port %d\n", ntohs(address.sin_port));
    return fd;
}

static void adopt(int fd, struct thread *t) {
    int on = 1;
    struct connection *c = calloc(1, sizeof *c);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (!c)
        die("memory");
    c->fd = fd;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event))
        die("epoll");
}

static void on_end(int signal) {
    (void)signal;
    over = 1;
}

static void report(const char *file) {
    FILE *out = fopen(file, "wb");
    long late = 0, lost = 0;
    double busiest = 0;
    if (!out)
        die(file);
    for (int i = 0; i < thread_count; i++) {
        struct thread *t = &threads[i];
        if (fwrite(t->log, sizeof *t->log, t->entries, out) != t->entries)
            die(file);
        late += t->late_ticks;
        lost += t->lost_ticks;
        busiest = t->cpu_s > busiest ? t->cpu_s : busiest;
    }
    if (fclose(out))
        die(file);
    printf("{\"streams\": %d, \"max_in_flight\": %d, \"late_ticks\": %ld, \"lost_ticks\": %ld, \"busiest_cpu_s\": %f}\n",
           streams, max_in_flight, late, lost, busiest);
}

static void options(int argc, char **argv, int *port, const char **log) {
    static const struct option known[] = {
        {"port", 1, 0, 'p'},     {"tick-ms", 1, 0, 't'}, {"first-ms", 1, 0, 'f'},
        {"tokens", 1, 0, 'n'},   {"cores", 1, 0, 'c'},   {"log", 1, 0, 'l'},
        {0, 0, 0, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'p': *port = atoi(optarg); break;
        case 't': tick_ms = atof(optarg); break;
        case 'f': first_ms = atof(optarg); break;
        case 'n': default_tokens = atoi(optarg); break;
        case 'l': *log = optarg; break;
        case 'c':
            for (char *core = strtok(optarg, ","); core && thread_count < MAX_THREADS; core = strtok(NULL, ","))
                threads[thread_count++].core = atoi(core);
            break;
        default: exit(2);
        }
    }
    if (!thread_count)
        threads[thread_count++].core = -1;
}

int main(int argc, char **argv) {
    int port = 0;
    const char *log = "/dev/null";
    struct rlimit files;
    sigset_t ending, waiting;
    struct sigaction action = {.sa_handler = on_end};
    options(argc, argv, &port, &log);
    setvbuf(stdout, NULL, _IOLBF, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ending, &waiting); /* heard while this thread waits, and nowhere else */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    render();
    pin(threads[0].core);
    for (int i = 0; i < thread_count; i++)
        start(&threads[i]);
    struct pollfd door = {.fd = listener(port), .events = POLLIN};
    for (unsigned next = 0; !over;) {
        if (ppoll(&door, 1, NULL, &waiting) < 1)
            continue;
        int fd = accept4(door.fd, NULL, NULL, SOCK_NONBLOCK);
        if (fd >= 0)
            adopt(fd, &threads[next++ % thread_count]);
    }
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i].id, NULL);
    report(log);
    return 0;
}
