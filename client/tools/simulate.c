/* A plausible instrument. The events are one sequence, fixed by kind, rate and seed; how they are asked for changes
 * nothing.
 *
 * lincam  An image of 64 by 64 cells (a disc, a ring and a bar on a faint ground), two lifetimes (2.5 ns, and 4 ns in
 *         the bar) seen through a 20 MHz laser and 12.3 ps channels, with jitter and 2 % background; the detector is
 *         dead for 100 ns after a photon, and --rate is what it registers.
 * lintag  Eight inputs of different brightness, picosecond stamps, an input dead for 2 ns after an event.
 */
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "source.h"

enum {
    SIM_AT_ONCE = 1 << 17,
    SIM_CELLS = 64, /* a side of the image */
    SIM_CHANNELS = 8,
    SIM_MS_ROOM = 1 << 16
};

#define SIM_PS_PER_MS 1e9
#define SIM_CHANNEL_PS 12.3
#define SIM_LASER_PS 50000.0
#define SIM_RISE_CHANNEL 855.0
#define SIM_JITTER_CHANNELS 3.0
#define SIM_BACKGROUND 0.02

/* A place of the instrument in a table that is drawn from evenly (Walker's alias method): the place itself up to
 * `own`, the other one above it. */
typedef struct sim_share {
    uint32_t own;
    uint32_t other;
} sim_share;

typedef struct simulation {
    send_random random;
    bool tags;
    double mean_gap_ps; /* beyond the dead time */
    double dead_ps;
    double end_ps; /* 0: none */
    uint64_t left;
    double now_ps; /* of the event that comes next */
    bool drawn;    /* it has been drawn */
    bool ended;
    uint64_t events;
    uint64_t ms;                             /* items of the index made so far */
    sim_share shares[SIM_CELLS * SIM_CELLS]; /* lincam: of the cells; lintag: of the inputs, the first ones */
    uint32_t n_places;
    uint32_t brightness;          /* of all places: the size of a share */
    double free_ps[SIM_CHANNELS]; /* lintag: when an input is ready again */
    uint16_t x[SIM_AT_ONCE], y[SIM_AT_ONCE], dt[SIM_AT_ONCE];
    uint64_t index[SIM_MS_ROOM];
    uint8_t channel[SIM_AT_ONCE];
    uint64_t time[SIM_AT_ONCE];
} simulation;

/* ---- what it looks at */

static bool sim_in_bar(int x, int y) {
    return x >= 44 && x < 50 && y >= 8 && y < 56;
}

static uint32_t sim_brightness(int x, int y) {
    int disc = (x - 20) * (x - 20) + (y - 22) * (y - 22), ring = (x - 24) * (x - 24) + (y - 44) * (y - 44);
    uint32_t light = 2;
    if (disc < 144)
        light += 40 - (uint32_t)disc / 6;
    if (ring > 64 && ring < 144)
        light += 25;
    if (sim_in_bar(x, y))
        light += 18 + (uint32_t)y / 4;
    return light;
}

static uint32_t sim_brightness_of(const simulation *m, uint32_t place) {
    static const uint32_t inputs[SIM_CHANNELS] = {40, 20, 10, 10, 8, 6, 4, 2};
    return m->tags ? inputs[place] : sim_brightness((int)place % SIM_CELLS, (int)place / SIM_CELLS);
}

/* Every share is as large as the sum of all brightness; places that have less are filled up by places that have
 * more. */
static void sim_make_shares(simulation *m) {
    uint32_t n = m->n_places = m->tags ? SIM_CHANNELS : SIM_CELLS * SIM_CELLS, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += sim_brightness_of(m, i);
    m->brightness = sum;
    for (uint32_t i = 0; i < n; i++)
        m->shares[i] = (sim_share){sim_brightness_of(m, i) * n, i};
    uint32_t poor[SIM_CELLS * SIM_CELLS], rich[SIM_CELLS * SIM_CELLS], n_poor = 0, n_rich = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (m->shares[i].own < sum)
            poor[n_poor++] = i;
        else
            rich[n_rich++] = i;
    }
    while (n_poor && n_rich) {
        uint32_t p = poor[--n_poor], r = rich[n_rich - 1];
        m->shares[p].other = r;
        m->shares[r].own -= sum - m->shares[p].own;
        if (m->shares[r].own < sum)
            poor[n_poor++] = rich[--n_rich];
    }
}

/* A place by its brightness. */
static uint32_t sim_place(simulation *m) {
    uint32_t place = send_random_below(&m->random, m->n_places);
    const sim_share *share = &m->shares[place];
    return send_random_below(&m->random, m->brightness) < share->own ? place : share->other;
}

/* ---- one event */

static uint16_t sim_micro_time(simulation *m, bool in_bar) {
    double period = SIM_LASER_PS / SIM_CHANNEL_PS, t;
    if (send_random_part(&m->random) < SIM_BACKGROUND)
        t = send_random_part(&m->random) * period;
    else
        t = SIM_RISE_CHANNEL + SIM_JITTER_CHANNELS * send_random_normal(&m->random) +
            send_random_wait(&m->random) * (in_bar ? 4000.0 : 2500.0) / SIM_CHANNEL_PS;
    while (t >= period) /* the tail of the decay falls into later pulses */
        t -= period;
    return t > 0 ? (uint16_t)t : 0;
}

static void sim_photon(simulation *m, uint64_t i) {
    uint32_t cell = sim_place(m);
    uint64_t within = send_random_bits(&m->random);
    int x = (int)(cell % SIM_CELLS), y = (int)(cell / SIM_CELLS);
    m->x[i] = (uint16_t)(x * 64 + (int)(within & 63));
    m->y[i] = (uint16_t)(y * 64 + (int)(within >> 6 & 63));
    m->dt[i] = sim_micro_time(m, sim_in_bar(x, y));
}

static void sim_tag(simulation *m, uint64_t i) {
    uint32_t input = sim_place(m);
    for (int tries = 0; m->now_ps < m->free_ps[input] && tries < SIM_CHANNELS; tries++)
        input = (input + 1) % SIM_CHANNELS;
    m->free_ps[input] = m->now_ps + 2000;
    m->channel[i] = (uint8_t)input;
    m->time[i] = (uint64_t)m->now_ps;
}

static void sim_draw(simulation *m) {
    if (m->drawn)
        return;
    m->now_ps += (m->events ? m->dead_ps : 0) + m->mean_gap_ps * send_random_wait(&m->random);
    m->drawn = true;
}

/* The index of milliseconds up to a moment: each points at the next photon. */
static uint64_t sim_index(simulation *m, uint64_t n, double until_ps) {
    while (!m->tags && n < SIM_MS_ROOM && (double)m->ms * SIM_PS_PER_MS <= until_ps) {
        m->index[n++] = m->events;
        m->ms++;
    }
    return n;
}

/* ---- many */

enum sim_stop { SIM_GO_ON, SIM_LATER, SIM_FULL, SIM_OVER };

/* Makes the next event, with the milliseconds that began before it. */
static enum sim_stop sim_step(simulation *m, const send_want *want, uint64_t *n, uint64_t *indices) {
    if (m->left == 0)
        return SIM_OVER;
    sim_draw(m);
    bool due = want->until_ns == SEND_NO_TIME || m->now_ps < (double)want->until_ns * 1e3;
    if (m->end_ps > 0 && m->now_ps >= m->end_ps)
        return want->until_ns == SEND_NO_TIME || (double)want->until_ns * 1e3 >= m->end_ps ? SIM_OVER
                                                                                           : SIM_LATER;
    if (!due)
        return SIM_LATER;
    *indices = sim_index(m, *indices, m->now_ps);
    if (*indices == SIM_MS_ROOM)
        return SIM_FULL;
    if (m->tags)
        sim_tag(m, *n);
    else
        sim_photon(m, *n);
    m->drawn = false;
    m->events++;
    m->left--;
    ++*n;
    return SIM_GO_ON;
}

/* The milliseconds after the last photon. A run that ends by a count ends with it. */
static uint64_t sim_finish(simulation *m, uint64_t indices) {
    if (m->left && m->end_ps > 0)
        indices = sim_index(m, indices, m->end_ps - 1);
    m->ended = indices < SIM_MS_ROOM;
    return indices;
}

static int sim_next(send_source *s, const send_want *want, send_chunk *chunk, send_fault *fault) {
    simulation *m = s->own;
    uint64_t n = 0, indices = 0, most = want->events < SIM_AT_ONCE ? want->events : SIM_AT_ONCE;
    enum sim_stop stop = SIM_GO_ON;
    (void)fault;
    if (m->ended)
        return 0;
    while (n < most && stop == SIM_GO_ON)
        stop = sim_step(m, want, &n, &indices);
    if (stop == SIM_OVER)
        indices = sim_finish(m, indices);
    chunk->counts[0] = n;
    chunk->counts[1] = indices;
    chunk->columns[0] = m->tags ? (const void *)m->channel : m->x;
    chunk->columns[1] = m->tags ? (const void *)m->time : m->y;
    chunk->columns[2] = m->dt;
    chunk->columns[3] = m->index;
    return n || indices || !m->ended;
}

static int sim_describe(send_source *s, bool tags, send_fault *fault) {
    if (tags)
        return send_add_dataset(s, "/tags/channel", PHOTON_CLIENT_UINT8, fault) < 0 ||
                       send_add_dataset(s, "/tags/time", PHOTON_CLIENT_UINT64, fault) < 0
                   ? -1
                   : 0;
    static const char *const names[] = {"/photons/x", "/photons/y", "/photons/dt", "/photons/ms"};
    static const char *const attributes[][2] = {{"/photons/PositionBits", "12"},
                                                {"/photons/TacBits", "12"},
                                                {"/photons/TacChannel", "12.3"},
                                                {"/photons/TimerFrequency", "20000000"},
                                                {"Comment", "simulated"}};
    for (int i = 0; i < 4; i++)
        if (send_add_dataset(s, names[i], i < 3 ? PHOTON_CLIENT_UINT16 : PHOTON_CLIENT_UINT64, fault) < 0)
            return -1;
    for (int i = 0; i < 5; i++)
        if (send_add_attribute(s, attributes[i][0], attributes[i][1], fault) != 0)
            return -1;
    s->datasets[2].unit = "ps";
    s->datasets[2].scale = SIM_CHANNEL_PS;
    return 0;
}

send_source *send_open_simulation(const send_simulation *options, uint64_t count, send_fault *fault) {
    send_source *s = send_source_make(sizeof(simulation), fault);
    if (!s)
        return NULL;
    simulation *m = s->own;
    s->next = sim_next;
    send_random_seed(&m->random, options->seed);
    m->tags = options->tags;
    double gap = 1e12 / options->rate_hz;
    m->dead_ps = m->tags ? 0 : 100000.0 < gap / 2 ? 100000.0 : gap / 2;
    m->mean_gap_ps = gap - m->dead_ps;
    m->end_ps = options->duration_s * 1e12;
    m->left = count;
    sim_make_shares(m);
    if (sim_describe(s, m->tags, fault) != 0) {
        send_source_free(s);
        return NULL;
    }
    s->timed = true;
    double expected = options->rate_hz * options->duration_s;
    s->n_events = expected > 0 && expected < (double)count ? (uint64_t)expected : count;
    send_settle_events(s, NULL);
    send_settle_time(s);
    return s;
}
