#include "ptu.h"

#include "base/bytes.h"

enum { PICO_SPECIAL = 15, PICO_CHANNELS = 4, HYDRA_OVERFLOW = 63, HYDRA_MARKERS = 15 };

/* The second number of a device of version 2 is met with and without the version in its first byte. */
static const ptu_format formats[] = {
    {0x00010203, "PicoHarp T2", false, true, false, 210698240},
    {0x00010303, "PicoHarp T3", true, true, false, 65536},
    {0x00010204, "HydraHarp V1 T2", false, false, false, 33552000},
    {0x00010304, "HydraHarp V1 T3", true, false, false, 1024},
    {0x01010204, "HydraHarp V2 T2", false, false, true, 33554432},
    {0x01010304, "HydraHarp V2 T3", true, false, true, 1024},
    {0x00010205, "TimeHarp 260 N T2", false, false, true, 33554432},
    {0x00010305, "TimeHarp 260 N T3", true, false, true, 1024},
    {0x01010205, "TimeHarp 260 N T2", false, false, true, 33554432},
    {0x01010305, "TimeHarp 260 N T3", true, false, true, 1024},
    {0x00010206, "TimeHarp 260 P T2", false, false, true, 33554432},
    {0x00010306, "TimeHarp 260 P T3", true, false, true, 1024},
    {0x01010206, "TimeHarp 260 P T2", false, false, true, 33554432},
    {0x01010306, "TimeHarp 260 P T3", true, false, true, 1024},
    {0x00010207, "generic T2 (MultiHarp, PicoHarp 330)", false, false, true, 33554432},
    {0x00010307, "generic T3 (MultiHarp, PicoHarp 330)", true, false, true, 1024},
    {0x01010207, "generic T2 (MultiHarp, PicoHarp 330)", false, false, true, 33554432},
    {0x01010307, "generic T3 (MultiHarp, PicoHarp 330)", true, false, true, 1024},
};

const ptu_format *ptu_find_format(int64_t record_type) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].record_type == record_type)
            return &formats[i];
    return NULL;
}

static void add_photon(ptu_decoder *d, ptu_events *e, uint64_t time, uint16_t dt, unsigned channel) {
    e->time[e->n] = time;
    e->dt[e->n] = dt;
    e->channel[e->n++] = (uint8_t)channel;
    d->photons++;
}

static void add_marker(ptu_decoder *d, ptu_events *e, uint64_t time, unsigned bits) {
    e->marker_time[e->n_markers] = time;
    e->marker_photon[e->n_markers] = d->photons;
    e->marker_bits[e->n_markers++] = (uint16_t)bits;
    d->markers++;
}

/* False when no time after it is to be believed. */
static bool add_overflows(ptu_decoder *d, uint32_t count) {
    uint64_t more = (uint64_t)d->format->overflow * (d->format->counted && count ? count : 1);
    if (more > d->max_time || d->overflow > d->max_time - more)
        return false;
    d->overflow += more;
    d->overflows++;
    return true;
}

/* channel 4, time 28: in a special record the time's last 4 bits are the markers, and an overflow without any. */
static bool decode_pico_t2(ptu_decoder *d, uint32_t record, ptu_events *e) {
    uint32_t channel = record >> 28, time = record & 0xFFFFFFF;
    if (channel == PICO_SPECIAL) {
        if ((time & 15) == 0)
            return add_overflows(d, 1);
        add_marker(d, e, d->overflow + time, time & 15);
        return true;
    }
    d->odd_channels += channel > PICO_CHANNELS;
    add_photon(d, e, d->overflow + time, 0, channel);
    return true;
}

/* channel 4, micro time 12, sync 16: in a special record the micro time is the markers, and an overflow without any. */
static bool decode_pico_t3(ptu_decoder *d, uint32_t record, ptu_events *e) {
    uint32_t channel = record >> 28, dt = record >> 16 & 0xFFF;
    uint64_t sync = d->overflow + (record & 0xFFFF);
    if (channel == PICO_SPECIAL) {
        if (dt == 0)
            return add_overflows(d, 1);
        add_marker(d, e, sync, dt);
        return true;
    }
    d->odd_channels += channel == 0 || channel > PICO_CHANNELS;
    add_photon(d, e, sync, (uint16_t)dt, channel);
    return true;
}

/* special 1, channel 6, time 25. */
static bool decode_hydra_t2(ptu_decoder *d, uint32_t record, ptu_events *e) {
    uint32_t channel = record >> 25 & 63, tag = record & 0x1FFFFFF;
    uint64_t time = d->overflow + tag;
    if (!(record >> 31))
        add_photon(d, e, time, 0, channel + 1);
    else if (channel == HYDRA_OVERFLOW)
        return add_overflows(d, tag);
    else if (channel == 0)
        add_photon(d, e, time, 0, 0);
    else if (channel <= HYDRA_MARKERS)
        add_marker(d, e, time, channel);
    else
        d->unknown++;
    return true;
}

/* special 1, channel 6, micro time 15, sync 10. */
static bool decode_hydra_t3(ptu_decoder *d, uint32_t record, ptu_events *e) {
    uint32_t channel = record >> 25 & 63, number = record & 0x3FF;
    uint64_t sync = d->overflow + number;
    if (!(record >> 31))
        add_photon(d, e, sync, (uint16_t)(record >> 10 & 0x7FFF), channel);
    else if (channel == HYDRA_OVERFLOW)
        return add_overflows(d, number);
    else if (channel >= 1 && channel <= HYDRA_MARKERS)
        add_marker(d, e, sync, channel);
    else
        d->unknown++;
    return true;
}

size_t ptu_decode(ptu_decoder *d, const uint8_t *records, size_t n, ptu_events *ret) {
    bool (*decode)(ptu_decoder *, uint32_t, ptu_events *) =
        d->format->pico ? (d->format->t3 ? decode_pico_t3 : decode_pico_t2)
                        : (d->format->t3 ? decode_hydra_t3 : decode_hydra_t2);
    ret->n = ret->n_markers = 0;
    for (size_t i = 0; i < n; i++)
        if (!decode(d, bytes_load32(records + 4 * i), ret))
            return i;
    return n;
}
