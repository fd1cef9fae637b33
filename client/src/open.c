#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/bytes.h"
#include "internal.h"
#include "wire/names.h"
#include "wire/pattern.h"

void photon_client_run_options_init(photon_client_run_options *options) {
    *options =
        (photon_client_run_options){.open_timeout_ms = 30000, .send_timeout_ms = PHOTON_CLIENT_FOREVER};
}

/* ---- options to Open */

static int open_check_dataset(const photon_client_dataset *d, size_t i, photon_client_error *err) {
    const char *fault = d->name ? wire_dataset_name_fault(d->name) : "is missing";
    if (!fault && d->group && *d->group)
        fault = wire_dataset_name_fault(d->group) ? "has a group whose name is none" : NULL;
    if (!fault && wire_type_bytes(d->type) == 0)
        fault = "has a type that does not exist";
    if (fault)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "the name of dataset %zu %s", i, fault);
    return 0;
}

static int open_check_limits(const photon_client *c, const photon_client_server *server,
                             const photon_client_run_options *o, photon_client_error *err) {
    size_t datasets = server->datasets ? server->datasets : WIRE_MAX_COLUMNS;
    datasets = datasets < WIRE_MAX_COLUMNS ? datasets : WIRE_MAX_COLUMNS;
    if (o->n_datasets > datasets)
        return client__error(err, PHOTON_CLIENT_ERR_LIMIT, "%zu datasets, but %s takes %zu in a run",
                             o->n_datasets, c->address_text, datasets);
    if (server->attributes && o->n_attributes > server->attributes)
        return client__error(err, PHOTON_CLIENT_ERR_LIMIT,
                             "%zu attributes, but %s takes %u at a time: set the others when the run is open",
                             o->n_attributes, c->address_text, (unsigned)server->attributes);
    return 0;
}

static int open_check(const photon_client *c, const photon_client_run_options *o, photon_client_error *err) {
    const char *fault = o->name ? NULL : "is missing";
    if (o->name && *o->name)
        fault = wire_pattern_fault(o->name);
    if (fault)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "the run's name %s", fault);
    if ((o->profile && *o->profile) == (o->n_datasets > 0))
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "a run has either a profile or datasets");
    photon_client_server server;
    photon_client_server_info(c, &server);
    int rc = open_check_limits(c, &server, o, err);
    for (size_t i = 0; rc == 0 && i < o->n_datasets; i++)
        rc = open_check_dataset(&o->datasets[i], i, err);
    for (size_t i = 0; rc == 0 && i < o->n_attributes; i++)
        rc = client__attribute_check(c, server.attribute_bytes, &o->attributes[i], err);
    return rc;
}

static char *open_text(const char *text) {
    static char empty[] = "";
    return text ? (char *)(uintptr_t)text : empty;
}

/* The lists of an Open, in one piece of memory. */
typedef struct open_lists {
    Photon__Dataset *datasets;
    Photon__Dataset **dataset_list;
} open_lists;

static int open_fill_datasets(Photon__Open *open, const photon_client_run_options *o, open_lists *lists) {
    size_t n = o->n_datasets;
    lists->datasets = calloc(n ? n : 1, sizeof *lists->datasets);
    lists->dataset_list = calloc(n ? n : 1, sizeof(void *));
    if (!lists->datasets || !lists->dataset_list)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const photon_client_dataset *from = &o->datasets[i];
        Photon__Dataset *to = lists->dataset_list[i] = &lists->datasets[i];
        photon__dataset__init(to);
        to->name = open_text(from->name);
        to->type = (Photon__ElementType)from->type;
        to->group = open_text(from->group);
        to->role = (Photon__Role)from->role;
        to->unit = open_text(from->unit);
        to->scale = from->scale;
    }
    open->n_datasets = n;
    open->datasets = lists->dataset_list;
    return 0;
}

static bool open_knows_time_base(const photon_client_time_base *t) {
    return t->tick_ps_denominator || t->tick_ps_numerator || t->counter_bits || t->start_utc_ns ||
           t->start_uncertainty_ns || t->laser_period_ps != 0;
}

static void open_fill_time_base(Photon__TimeBase *to, const photon_client_time_base *from) {
    photon__time_base__init(to);
    to->tick_ps_numerator = from->tick_ps_numerator;
    to->tick_ps_denominator = from->tick_ps_denominator;
    to->counter_bits = from->counter_bits;
    to->start_utc_ns = from->start_utc_ns;
    to->start_uncertainty_ns = from->start_uncertainty_ns;
    to->laser_period_ps = from->laser_period_ps;
}

static void open_fill(Photon__Open *open, photon_client_run *run, const photon_client_run_options *o) {
    photon__open__init(open);
    open->run_id = (ProtobufCBinaryData){sizeof run->run_id, run->run_id};
    open->name = open_text(o->name);
    open->mode = (Photon__OpenMode)o->mode;
    open->profile = open_text(o->profile);
    open->overflow = (Photon__Overflow)o->overflow;
    open->volume = open_text(o->volume);
}

/* Packs the Open, which is sent on each connection. */
static int open_pack(photon_client_run *run, const photon_client_run_options *o, uint8_t **ret,
                     size_t *ret_bytes, photon_client_error *err) {
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    Photon__Open open;
    Photon__TimeBase time_base;
    Photon__SummaryOptions summary = PHOTON__SUMMARY_OPTIONS__INIT;
    Photon__StopCondition stop = PHOTON__STOP_CONDITION__INIT;
    open_lists lists = {NULL, NULL};
    client_attributes attributes = {NULL, NULL};
    open_fill(&open, run, o);
    open_fill_time_base(&time_base, &o->time_base);
    open.time_base = open_knows_time_base(&o->time_base) ? &time_base : NULL;
    summary.enabled = (Photon__Switch)o->summaries;
    summary.pixels = o->summary_pixels;
    summary.export_interval_ms = o->export_interval_ms;
    open.summary = &summary;
    stop.photons = o->stop_photons;
    stop.seconds = o->stop_seconds;
    stop.bytes = o->stop_bytes;
    open.stop = o->stop_photons || o->stop_bytes || o->stop_seconds > 0 ? &stop : NULL;
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_OPEN;
    message.open = &open;
    if (open_fill_datasets(&open, o, &lists) == 0 &&
        client__attributes_make(&attributes, o->attributes, o->n_attributes) == 0) {
        open.attributes = attributes.list;
        open.n_attributes = o->n_attributes;
        *ret = client__output_pack(&message, ret_bytes);
    }
    client__attributes_free(&attributes);
    free(lists.datasets);
    free(lists.dataset_list);
    return *ret ? 0 : client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory to open a run");
}

/* ---- answer to run */

/* The roles that the options gave, where the server has told none. */
static void open_note_roles(photon_client_run *run, const photon_client_run_options *o, uint32_t *roles,
                            Photon__DatasetState *const *states) {
    for (size_t i = 0; i < run->n_datasets; i++) {
        roles[i] = (uint32_t)states[i]->role;
        for (size_t k = 0; roles[i] == 0 && k < o->n_datasets; k++)
            if (strcmp(o->datasets[k].name, run->datasets[i].name) == 0)
                roles[i] = o->datasets[k].role;
    }
}

static bool open_is_photon_role(uint32_t role) {
    return role != PHOTON_CLIENT_ROLE_NONE && role != PHOTON_CLIENT_ROLE_MS_INDEX;
}

/* Which group is the index of milliseconds, and into which it points. */
static void open_find_index(photon_client_run *run, const uint32_t *roles) {
    client_split *s = &run->split;
    s->index_group = s->photon_group = CLIENT_SPLIT_NO_GROUP;
    for (size_t i = 0; i < run->n_datasets; i++) {
        size_t group = run->datasets[i].group_index;
        if (roles[i] == PHOTON_CLIENT_ROLE_MS_INDEX && run->datasets[i].type == PHOTON_CLIENT_UINT64) {
            s->index_group = group;
            s->index_column = i;
        } else if (open_is_photon_role(roles[i]) && s->photon_group == CLIENT_SPLIT_NO_GROUP) {
            s->photon_group = group;
        }
    }
    if (s->photon_group == CLIENT_SPLIT_NO_GROUP || s->photon_group == s->index_group)
        s->index_group = CLIENT_SPLIT_NO_GROUP;
}

static uint64_t open_least(uint64_t a, uint64_t b) {
    if (a == 0 || b == 0)
        return a ? a : b ? b : UINT64_MAX;
    return a < b ? a : b;
}

/* Column bytes of a batch: what Opened says, within a message of the server's. */
static uint64_t open_batch_bytes(uint64_t message_bytes, uint64_t batch_bytes) {
    if (message_bytes > 2 * WIRE_BATCH_HEAD_BYTES)
        message_bytes -= WIRE_BATCH_HEAD_BYTES;
    else
        message_bytes /= 2;
    return open_least(batch_bytes, message_bytes);
}

static int open_limits(photon_client_run *run, const photon_client_run_options *o,
                       const photon_client_server *server, uint64_t batch_bytes, photon_client_error *err) {
    client_split *s = &run->split;
    s->batch_bytes =
        open_least(open_batch_bytes(server->message_bytes, batch_bytes), run->client->keep_bytes);
    s->batch_items = open_least(o->batch_items, server->batch_items);
    for (size_t i = 0; i < run->n_datasets; i++) {
        uint64_t *row = &s->row_bytes[run->datasets[i].group_index];
        *row += run->datasets[i].item_bytes;
        if (*row > s->batch_bytes)
            return client__error(err, PHOTON_CLIENT_ERR_LIMIT,
                                 "%s takes, and we keep, %llu bytes in a batch, which is less than one item",
                                 run->client->address_text, (unsigned long long)s->batch_bytes);
    }
    return 0;
}

/* The ring holds the window and one batch more: one may always go. */
static int open_keep(photon_client_run *run, uint64_t in_flight_bytes, photon_client_error *err) {
    uint64_t most = run->client->keep_bytes, window = run->window_bytes ? run->window_bytes : in_flight_bytes;
    window = window && window < most ? window : most;
    uint64_t ring = window + run->split.batch_bytes + 2 * WIRE_BATCH_HEAD_BYTES;
    if (run->again)
        ring = CLIENT_KEEP_MESSAGES * client__again_bytes(run);
    client_keep keep;
    if (client__keep_init(&keep, (size_t)ring) == 0) {
        pthread_mutex_lock(&run->client->lock);
        client__keep_start(&keep, run->keep.next);
        run->keep = keep;
        pthread_mutex_unlock(&run->client->lock);
        return 0;
    }
    client__keep_free(&keep);
    return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory to keep %llu bytes of a run",
                         (unsigned long long)ring);
}

static int open_allocate(photon_client_run *run) {
    size_t groups = run->n_groups + 1;
    run->split.n_groups = run->n_groups;
    run->split.row_bytes = calloc(groups, sizeof(uint64_t));
    run->items_sent = calloc(groups, sizeof(uint64_t));
    run->done = calloc(groups, sizeof(uint64_t));
    run->take = calloc(groups, sizeof(uint64_t));
    run->room = malloc(sizeof *run->room);
    bool reads =
        run->read_again && BYTES_HOST_IS_LITTLE; /* others have to keep them in the order that is sent */
    run->again = reads ? malloc(sizeof *run->again) : NULL;
    if (reads && !run->again)
        return -1;
    return run->split.row_bytes && run->items_sent && run->done && run->take && run->room ? 0 : -1;
}

static int open_learn(photon_client_run *run, const photon_client_run_options *o,
                      const photon_client_server *server, const Photon__Opened *opened,
                      photon_client_error *err) {
    uint32_t roles[WIRE_MAX_COLUMNS];
    if (opened->n_datasets == 0 || opened->n_datasets > WIRE_MAX_COLUMNS ||
        opened->n_groups > WIRE_MAX_GROUPS || (o->n_datasets && opened->n_datasets != o->n_datasets) ||
        opened->run == 0)
        return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL,
                             "%s opened the run with other datasets than asked for",
                             run->client->address_text);
    run->groups = (const char **)opened->groups;
    run->n_groups = opened->n_groups;
    int rc = client__dataset_states(run->client, opened->datasets, opened->n_datasets, run->groups,
                                    run->n_groups, &run->datasets, err);
    if (rc != 0)
        return rc;
    run->n_datasets = opened->n_datasets;
    for (size_t i = 0; i < o->n_datasets; i++)
        if (strcmp(o->datasets[i].name, run->datasets[i].name) != 0 ||
            o->datasets[i].type != run->datasets[i].type)
            return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL,
                                 "%s opened the run with '%s' in place of '%s'", run->client->address_text,
                                 run->datasets[i].name, o->datasets[i].name);
    if (open_allocate(run) != 0)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a run");
    open_note_roles(run, o, roles, opened->datasets);
    open_find_index(run, roles);
    for (size_t i = 0; i < run->n_datasets; i++)
        run->items_sent[run->datasets[i].group_index] = run->datasets[i].items;
    rc = open_limits(run, o, server, opened->batch_bytes, err);
    return rc == 0 ? open_keep(run, server->in_flight_bytes, err) : rc;
}

/* ---- the two together */

static int open_wait(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    photon_client *c = run->client;
    while (run->phase == CLIENT_RUN_OPENING) {
        if (c->failed)
            return client__copy_error(err, &c->failure);
        if (client__wait(c, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not open the run in time",
                                 c->address_text);
    }
    return run->phase == CLIENT_RUN_FAILED ? client__copy_error(err, &run->failure) : 0;
}

static photon_client_run *open_make(photon_client *c, const photon_client_run_options *o) {
    photon_client_run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->client = c;
    run->send_timeout_ms = o->send_timeout_ms;
    run->read_again = o->read_again;
    run->read_context = o->read_context;
    if (o->run_id)
        memcpy(run->run_id, o->run_id, sizeof run->run_id);
    else if (getrandom(run->run_id, sizeof run->run_id, 0) != sizeof run->run_id) {
        free(run);
        return NULL;
    }
    return run;
}

/* Asks the server to open it, now or as soon as the connection stands again. Under lock. */
static void open_link(photon_client_run *run) {
    photon_client *c = run->client;
    run->next = c->runs;
    c->runs = run;
    if (c->down || c->failed || !run->open_bytes)
        return;
    if (client__output_add(c, run->open_bytes, run->n_open_bytes) == 0) {
        client__pump(c);
        return;
    }
    photon_client_error err;
    client__error(&err, PHOTON_CLIENT_ERR_NOMEM, "no memory to open a run");
    client__run_fail(run, &err);
}

/* From now on it is asked for by the name that it got: a pattern would give another one. */
static int open_by_its_name(photon_client_run *run, const photon_client_run_options *o, const char *name,
                            photon_client_error *err) {
    photon_client_run_options named = *o;
    uint8_t *bytes = NULL;
    size_t n = 0;
    named.name = name;
    if (strcmp(o->name, name) == 0)
        return 0;
    int rc = open_pack(run, &named, &bytes, &n, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&run->client->lock);
    uint8_t *old = run->open_bytes;
    run->open_bytes = bytes;
    run->n_open_bytes = n;
    pthread_mutex_unlock(&run->client->lock);
    free(old);
    return 0;
}

int photon_client_open(photon_client *client, const photon_client_run_options *options,
                       photon_client_run **ret_run, photon_client_error *err) {
    int rc = open_check(client, options, err);
    if (rc != 0)
        return rc;
    photon_client_run *run = open_make(client, options);
    if (!run)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a run");
    uint64_t deadline = client__deadline(options->open_timeout_ms);
    rc = open_pack(run, options, &run->open_bytes, &run->n_open_bytes, err);
    pthread_mutex_lock(&client->lock);
    open_link(run);
    if (rc == 0)
        rc = open_wait(run, deadline, err);
    const Photon__ServerMessage *opened = run->opened;
    photon_client_server server = client->server;
    pthread_mutex_unlock(&client->lock);
    if (rc == 0 && opened)
        rc = open_learn(run, options, &server, opened->opened, err);
    if (rc == 0 && opened)
        rc = open_by_its_name(run, options, opened->opened->name, err);
    if (rc != 0) {
        photon_client_run_free(run);
        return rc;
    }
    *ret_run = run;
    return 0;
}
