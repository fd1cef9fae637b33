#include "fake_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "wire/frame.h"
#include "wire/names.h"

void fake_sleep_ms(unsigned ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

void fake_complain(fake_server *s, const char *format, ...) {
    va_list list;
    if (s->complaint[0])
        return;
    va_start(list, format);
    vsnprintf(s->complaint, sizeof s->complaint, format, list);
    va_end(list);
}

void fake_hang_up(fake_server *s) {
    s->ended = true;
}

/* ---- connections that are cut at any byte */

static void fake_plan_cut(fake_server *s) {
    s->cut_in = 0;
    if (s->cut_every == 0 || s->cuts == 0)
        return;
    s->cuts--;
    s->random = s->random * 1664525 + 1013904223;
    s->cut_in = 1 + (s->random >> 8) % (2 * s->cut_every);
}

/* How many of `n` bytes still pass. */
static size_t fake_pass(fake_server *s, size_t n) {
    if (s->cut_in == 0)
        return n;
    if (n < s->cut_in) {
        s->cut_in -= n;
        return n;
    }
    n = (size_t)s->cut_in;
    s->cut_in = 0;
    s->ended = true;
    return n;
}

/* ---- bytes out */

void fake_write(fake_server *s, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    if (s->ended || s->mute)
        return;
    n = fake_pass(s, n);
    while (n) {
        size_t piece = s->answer_piece && s->answer_piece < n ? s->answer_piece : n;
        ssize_t sent = send(s->fd, p, piece, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            s->ended = true;
            return;
        }
        p += sent;
        n -= (size_t)sent;
    }
}

void fake_answer(fake_server *s, const Photon__ServerMessage *m) {
    uint8_t prefix[WIRE_PREFIX_BYTES_MAX];
    size_t n = photon__server_message__get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes)
        abort();
    photon__server_message__pack(m, bytes);
    fake_write(s, prefix, wire_prefix_put(prefix, n));
    fake_write(s, bytes, n);
    free(bytes);
}

void fake_error(fake_server *s, Photon__ErrorCode code, Photon__ErrorScope scope, uint32_t run,
                uint64_t sequence, const char *text) {
    Photon__Error e = PHOTON__ERROR__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    static char field[] = "some.field";
    e.code = code;
    e.scope = scope;
    e.run = run;
    e.sequence = sequence;
    e.field = field;
    e.retry_after_ms = 70;
    e.text = (char *)(uintptr_t)text;
    if (run && run <= s->n_runs)
        e.run_id = (ProtobufCBinaryData){16, s->runs[run - 1].id};
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_ERROR;
    m.error = &e;
    fake_answer(s, &m);
}

void fake_ack(fake_server *s, uint32_t run, uint64_t received, uint64_t durable, uint64_t credit) {
    Photon__Ack ack = PHOTON__ACK__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    ack.run = run;
    ack.received = received;
    ack.durable = durable;
    ack.credit_bytes = credit;
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_ACK;
    m.ack = &ack;
    fake_answer(s, &m);
}

/* ---- answers */

static void fake_welcome(fake_server *s) {
    Photon__Welcome w = PHOTON__WELCOME__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    static char software[] = "fake 1";
    w.software = software;
    w.limits = &s->limits;
    w.heartbeat_ms = s->heartbeat_ms;
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_WELCOME;
    m.welcome = &w;
    fake_answer(s, &m);
}

static void fake_copy(char to[64], const char *from) {
    size_t n = strnlen(from, 63);
    memmove(to, from, n);
    to[n] = '\0';
}

static uint32_t fake_group(fake_run *run, const char *group) {
    uint32_t g = 0;
    while (g < run->n_groups && strcmp(run->groups[g], group) != 0)
        g++;
    if (g == run->n_groups)
        fake_copy(run->groups[run->n_groups++], group);
    return g;
}

static void fake_add_dataset(fake_run *run, const char *name, uint32_t type, const char *group,
                             uint32_t role) {
    fake_column *c = &run->columns[run->n_datasets++];
    fake_copy(c->name, name);
    fake_copy(c->group, *group ? group : name);
    c->type = type;
    c->role = role;
    fake_group(run, c->group);
}

static uint64_t fake_items(const fake_column *c) {
    return c->bytes / wire_type_bytes(c->type);
}

/* Fills `states` and gives the list of pointers to them that protobuf-c wants. */
static Photon__DatasetState **fake_states(fake_run *run, Photon__DatasetState *states,
                                          Photon__DatasetState **list) {
    for (uint32_t i = 0; i < run->n_datasets; i++) {
        fake_column *c = &run->columns[i];
        photon__dataset_state__init(&states[i]);
        states[i].name = c->name;
        states[i].group = c->group;
        states[i].type = (Photon__ElementType)c->type;
        states[i].role = (Photon__Role)c->role;
        states[i].items = fake_items(c);
        list[i] = &states[i];
    }
    return list;
}

static void fake_opened(fake_server *s, uint32_t handle) {
    fake_run *run = &s->runs[handle - 1];
    Photon__DatasetState states[FAKE_DATASETS], *list[FAKE_DATASETS];
    char *groups[FAKE_DATASETS];
    Photon__Opened o = PHOTON__OPENED__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    static char path[] = "/data/file.photons";
    for (uint32_t g = 0; g < run->n_groups; g++)
        groups[g] = run->groups[g];
    o.run_id = (ProtobufCBinaryData){16, run->id};
    o.run = handle;
    o.name = run->name;
    o.path = path;
    o.next_sequence = run->sequence + 1;
    o.datasets = fake_states(run, states, list);
    o.n_datasets = run->n_datasets;
    o.groups = groups;
    o.n_groups = run->n_groups;
    o.batch_bytes = s->batch_bytes;
    o.window_bytes = s->window_bytes;
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_OPENED;
    m.opened = &o;
    fake_answer(s, &m);
}

void fake_closed(fake_server *s, uint32_t handle, const char *text) {
    fake_run *run = &s->runs[handle - 1];
    Photon__DatasetState states[FAKE_DATASETS], *list[FAKE_DATASETS];
    Photon__Closed c = PHOTON__CLOSED__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    static char path[] = "/data/file.photons";
    run->closed = true;
    c.run_id = (ProtobufCBinaryData){16, run->id};
    c.run = handle;
    c.last_sequence = run->sequence;
    c.datasets = fake_states(run, states, list);
    c.n_datasets = run->n_datasets;
    c.name = run->name;
    c.path = path;
    c.parts = 1;
    c.text = (char *)(uintptr_t)text;
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_CLOSED;
    m.closed = &c;
    fake_answer(s, &m);
}

static void fake_take_open(fake_server *s, const Photon__Open *open) {
    fake_run *run = &s->runs[s->n_runs];
    if (s->n_runs == FAKE_RUNS || open->run_id.len != 16 || open->n_datasets > FAKE_DATASETS) {
        fake_complain(s, "an Open that cannot be");
        return;
    }
    for (uint32_t i = 0; i < s->n_runs; i++) {
        if (memcmp(s->runs[i].id, open->run_id.data, 16) == 0) {
            if (s->runs[i].closed)
                fake_closed(s, i + 1, "");
            else
                fake_opened(s, i + 1);
            return;
        }
    }
    s->n_runs++;
    memcpy(run->id, open->run_id.data, 16);
    fake_copy(run->name, open->name);
    run->n_attributes += open->n_attributes;
    for (size_t i = 0; i < open->n_datasets; i++) {
        const Photon__Dataset *d = open->datasets[i];
        fake_add_dataset(run, d->name, (uint32_t)d->type, d->group, 0);
    }
    if (strcmp(open->profile, "lincam") == 0) {
        fake_add_dataset(run, "/photons/x", 5, "photons", PHOTON__ROLE__ROLE_POSITION_X);
        fake_add_dataset(run, "/photons/y", 5, "photons", PHOTON__ROLE__ROLE_POSITION_Y);
        fake_add_dataset(run, "/photons/dt", 5, "photons", PHOTON__ROLE__ROLE_MICRO_TIME);
        fake_add_dataset(run, "/photons/ms", 7, "ms", PHOTON__ROLE__ROLE_MS_INDEX);
    }
    fake_opened(s, s->n_runs);
}

/* ---- batches */

static void fake_append(fake_column *c, const ProtobufCBinaryData *data) {
    if (c->cap - c->bytes < data->len) {
        c->cap = 2 * (c->bytes + data->len);
        c->data = realloc(c->data, c->cap);
        if (!c->data)
            abort();
    }
    if (data->len)
        memcpy(c->data + c->bytes, data->data, data->len);
    c->bytes += data->len;
}

static void fake_acknowledge(fake_server *s, uint32_t handle);

/* NULL: nothing to be stored. */
static fake_run *fake_numbered(fake_server *s, uint32_t handle, uint64_t sequence) {
    if (handle == 0 || handle > s->n_runs) {
        fake_complain(s, "run %u is not open", handle);
        return NULL;
    }
    fake_run *run = &s->runs[handle - 1];
    if (sequence <= run->sequence) { /* received before: acknowledged again, and not stored */
        s->n_duplicates++;
        fake_acknowledge(s, handle);
        return NULL;
    }
    if (sequence != run->sequence + 1)
        fake_complain(s, "message %llu after %llu", (unsigned long long)sequence,
                      (unsigned long long)run->sequence);
    run->sequence = sequence;
    return run;
}

static void fake_acknowledge(fake_server *s, uint32_t handle) {
    uint64_t received = s->runs[handle - 1].sequence;
    if (received > s->acknowledge_up_to)
        return;
    uint64_t durable = received > s->durable_behind ? received - s->durable_behind : 0;
    fake_ack(s, handle, received, durable, s->credit_bytes);
}

/* The last index of milliseconds in a batch may point past its photons only when the call ended there, which the
 * tests that check it do not do. */
static void fake_check_index(fake_server *s, const fake_run *run) {
    const fake_column *x = &run->columns[0];
    for (uint32_t i = 0; i < run->n_datasets; i++) {
        const fake_column *c = &run->columns[i];
        uint64_t last;
        if (c->role != PHOTON__ROLE__ROLE_MS_INDEX || c->bytes == 0)
            continue;
        memcpy(&last, c->data + c->bytes - 8, 8);
        if (last >= fake_items(x))
            fake_complain(s, "millisecond %llu points at photon %llu of %llu",
                          (unsigned long long)fake_items(c), (unsigned long long)last,
                          (unsigned long long)fake_items(x));
    }
}

static void fake_take_batch(fake_server *s, const Photon__Batch *b) {
    fake_run *run = fake_numbered(s, b->run, b->sequence);
    uint32_t crc = 0;
    uint64_t bytes = 0;
    if (!run)
        return;
    if (b->n_columns != run->n_datasets || b->n_counts != run->n_groups) {
        fake_complain(s, "%zu columns and %zu counts", b->n_columns, b->n_counts);
        return;
    }
    for (size_t i = 0; i < b->n_columns; i++) {
        fake_column *c = &run->columns[i];
        if (b->columns[i].len != b->counts[fake_group(run, c->group)] * wire_type_bytes(c->type))
            fake_complain(s, "column %zu does not fit its count", i);
        crc = common_crc32c(crc, b->columns[i].data, b->columns[i].len);
        bytes += b->columns[i].len;
        fake_append(c, &b->columns[i]);
    }
    for (size_t g = 0; g < b->n_counts; g++)
        run->largest_items = b->counts[g] > run->largest_items ? b->counts[g] : run->largest_items;
    if (crc != b->crc32c)
        fake_complain(s, "the checksum of batch %llu is wrong", (unsigned long long)b->sequence);
    run->n_batches++;
    run->lost_before += b->lost_before;
    run->last_time = b->times_valid ? b->last_time : 0;
    run->largest_batch = bytes > run->largest_batch ? bytes : run->largest_batch;
    atomic_fetch_add(&s->n_batches, 1);
    atomic_fetch_add(&s->received_bytes, bytes);
    fake_check_index(s, run);
    fake_acknowledge(s, b->run);
}

static void fake_take_attributes(fake_server *s, const Photon__Attributes *a) {
    fake_run *run = fake_numbered(s, a->run, a->sequence);
    if (!run)
        return;
    if (a->n_attributes == 0) {
        fake_complain(s, "no attributes");
        return;
    }
    const Photon__Attribute *last = a->attributes[a->n_attributes - 1];
    run->n_attributes += a->n_attributes;
    run->attribute_messages++;
    fake_copy(run->last_key, last->key);
    fake_copy(run->last_value, last->value);
    fake_acknowledge(s, a->run);
}

static void fake_take_ping(fake_server *s, const Photon__Ping *ping) {
    Photon__Pong pong = PHOTON__PONG__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    atomic_fetch_add(&s->n_pings, 1);
    if (ping->run && ping->run <= s->n_runs) {
        s->runs[ping->run - 1].pings++;
        s->runs[ping->run - 1].last_time = ping->instrument_time_valid ? ping->instrument_time : 0;
    }
    pong.id = ping->id;
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_PONG;
    m.pong = &pong;
    fake_answer(s, &m);
}

static void fake_take_close(fake_server *s, const Photon__Close *close_message) {
    if (close_message->run == 0 || close_message->run > s->n_runs) {
        fake_complain(s, "Close of a run that is not open");
        return;
    }
    if (close_message->last_sequence != s->runs[close_message->run - 1].sequence)
        fake_complain(s, "Close tells another last number");
    fake_closed(s, close_message->run, "");
}

void fake_take(fake_server *s, const Photon__ClientMessage *m) {
    switch (m->body_case) {
    case PHOTON__CLIENT_MESSAGE__BODY_HELLO:
        fake_welcome(s);
        break;
    case PHOTON__CLIENT_MESSAGE__BODY_OPEN:
        fake_take_open(s, m->open);
        break;
    case PHOTON__CLIENT_MESSAGE__BODY_BATCH:
        fake_take_batch(s, m->batch);
        break;
    case PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES:
        fake_take_attributes(s, m->attributes);
        break;
    case PHOTON__CLIENT_MESSAGE__BODY_PING:
        fake_take_ping(s, m->ping);
        break;
    case PHOTON__CLIENT_MESSAGE__BODY_PONG:
        atomic_fetch_add(&s->n_pongs, 1);
        break;
    case PHOTON__CLIENT_MESSAGE__BODY_CLOSE:
        fake_take_close(s, m->close);
        break;
    default:
        fake_complain(s, "a message of kind %d", (int)m->body_case);
    }
}

/* ---- bytes in */

/* Waits for bytes, in short turns so that the server can be stopped. Returns false at the end of the stream. */
static bool fake_receive(fake_server *s) {
    if (s->in_begin) {
        memmove(s->in, s->in + s->in_begin, s->in_end - s->in_begin);
        s->in_end -= s->in_begin;
        s->in_begin = 0;
    }
    if (s->in_cap - s->in_end < 65536) {
        s->in_cap = 2 * s->in_cap + 65536;
        s->in = realloc(s->in, s->in_cap);
        if (!s->in)
            abort();
    }
    for (;;) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        if (atomic_load(&s->stopping) || s->ended)
            return false;
        if (atomic_load(&s->hold_reading)) {
            fake_sleep_ms(2);
            continue;
        }
        if (poll(&p, 1, 20) <= 0)
            continue;
        ssize_t n = recv(s->fd, s->in + s->in_end, s->in_cap - s->in_end, 0);
        if (n <= 0)
            return false;
        s->in_end += fake_pass(s, (size_t)n);
        return true;
    }
}

static bool fake_next(fake_server *s, const uint8_t **bytes, size_t *n) {
    for (;;) {
        uint64_t length = 0;
        size_t used = 0;
        wire_status status =
            wire_prefix_get(s->in + s->in_begin, s->in_end - s->in_begin, 1 << 26, &length, &used);
        if (status == WIRE_OK && s->in_end - s->in_begin - used >= length) {
            *bytes = s->in + s->in_begin + used;
            *n = (size_t)length;
            s->in_begin += used + *n;
            return true;
        }
        if (status < 0)
            fake_complain(s, "a length that cannot be");
        if (status < 0 || !fake_receive(s))
            return false;
    }
}

static bool fake_preamble(fake_server *s) {
    uint8_t answer[WIRE_PREAMBLE_BYTES], min, max;
    while (s->in_end - s->in_begin < WIRE_PREAMBLE_BYTES)
        if (!fake_receive(s))
            return false;
    if (wire_preamble_get(s->in + s->in_begin, WIRE_PREAMBLE_BYTES, &min, &max) != WIRE_OK || min > 1 ||
        max < 1)
        fake_complain(s, "a wrong preamble");
    s->in_begin += WIRE_PREAMBLE_BYTES;
    wire_preamble_put(answer, 1, 1);
    fake_write(s, answer, sizeof answer);
    return true;
}

static void fake_connection(fake_server *s) {
    const uint8_t *bytes;
    size_t n;
    s->in_begin = s->in_end = 0;
    s->ended = false;
    fake_plan_cut(s);
    if (s->raw) {
        s->raw(s);
        return;
    }
    if (!fake_preamble(s))
        return;
    while (!s->ended && fake_next(s, &bytes, &n)) {
        Photon__ClientMessage *m = photon__client_message__unpack(NULL, n, bytes);
        if (!m) {
            fake_complain(s, "a message of %zu bytes that is none", n);
            return;
        }
        if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_HELLO && s->connections <= 4)
            s->epochs[s->connections - 1] = m->hello->epoch;
        if (!s->hook || !s->hook(s, m))
            fake_take(s, m);
        photon__client_message__free_unpacked(m, NULL);
    }
}

/* ---- life */

static void *fake_main(void *server) {
    fake_server *s = server;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL); /* signals are for the test's own thread */
    if (s->prepare)
        s->prepare(s, NULL);
    while (!atomic_load(&s->stopping)) {
        struct pollfd p = {.fd = s->listener, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0)
            continue;
        s->fd = accept(s->listener, NULL, NULL);
        if (s->fd < 0)
            continue;
        s->connections++;
        /* So that an Error right before the end has left when the end comes. */
        setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        fake_connection(s);
        close(s->fd);
        s->fd = -1;
    }
    return NULL;
}

void fake_init(fake_server *s) {
    memset(s, 0, sizeof *s);
    photon__limits__init(&s->limits);
    s->limits.message_bytes = 16 << 20;
    s->limits.batch_items = 1 << 24;
    s->limits.attribute_bytes = 1 << 20;
    s->limits.in_flight_bytes = 64 << 20;
    s->limits.datasets = FAKE_DATASETS;
    s->limits.attributes = 1000;
    s->limits.runs = FAKE_RUNS;
    s->batch_bytes = 1 << 20;
    s->credit_bytes = 8 << 20;
    s->acknowledge_up_to = UINT64_MAX;
    s->fd = -1;
}

static int fake_listen_tcp(fake_server *s) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof name;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&name, sizeof name) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&name, &bytes) != 0)
        return -1;
    snprintf(s->address, sizeof s->address, "tcp://127.0.0.1:%u", (unsigned)ntohs(name.sin_port));
    return 0;
}

static int fake_listen_unix(fake_server *s) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(s->folder, sizeof s->folder, "/tmp/fake-server.XXXXXX");
    if (!mkdtemp(s->folder))
        return -1;
    snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", s->folder);
    snprintf(s->address, sizeof s->address, "unix:%s", name.sun_path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return s->listener < 0 ? -1 : bind(s->listener, (struct sockaddr *)&name, sizeof name);
}

void fake_start(fake_server *s) {
    static const int few = 4096;
    if ((s->tcp ? fake_listen_tcp(s) : fake_listen_unix(s)) != 0)
        abort();
    if (s->small_buffers)
        setsockopt(s->listener, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    if (listen(s->listener, 8) != 0 || pthread_create(&s->thread, NULL, fake_main, s) != 0)
        abort();
}

const char *fake_stop(fake_server *s) {
    atomic_store(&s->stopping, true);
    pthread_join(s->thread, NULL);
    close(s->listener);
    if (s->folder[0]) {
        unlink(s->address + strlen("unix:"));
        rmdir(s->folder);
    }
    return s->complaint[0] ? s->complaint : NULL;
}

void fake_release(fake_server *s) {
    for (size_t r = 0; r < FAKE_RUNS; r++)
        for (size_t i = 0; i < FAKE_DATASETS; i++)
            free(s->runs[r].columns[i].data);
    free(s->in);
}

void fake_forget(fake_run *run, uint64_t sequence, const uint64_t *items) {
    run->sequence = sequence;
    for (uint32_t i = 0; i < run->n_datasets; i++)
        run->columns[i].bytes =
            (size_t)items[fake_group(run, run->columns[i].group)] * wire_type_bytes(run->columns[i].type);
}

const fake_column *fake_find(const fake_run *run, const char *name) {
    for (uint32_t i = 0; i < run->n_datasets; i++)
        if (strcmp(run->columns[i].name, name) == 0)
            return &run->columns[i];
    return NULL;
}
