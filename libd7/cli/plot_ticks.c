#include "plot_ticks.h"

#include <math.h>
#include <stdio.h>

/* Numbers of this size and more get a metric prefix. */
#define PREFIX_FROM 1e5

/* A number with so many decimals, or with a prefix where the axis reaches far; `step` is the distance of numbers. */
static void write_label(plot_tick *tick, double at, double largest, double step) {
    static const char prefixes[] = " kMGTPE";
    unsigned k = 0;
    if (largest >= PREFIX_FROM)
        while (largest >= 1000 && k < sizeof prefixes - 2) {
            largest /= 1000;
            step /= 1000;
            at /= 1000;
            k++;
        }
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (at == 0)
        k = 0, decimals = 0;
    if (decimals > 6)
        snprintf(tick->label, sizeof tick->label, "%.4g", at);
    else if (k)
        snprintf(tick->label, sizeof tick->label, "%.*f%c", decimals, at, prefixes[k]);
    else
        snprintf(tick->label, sizeof tick->label, "%.*f", decimals, at);
}

/* The distance of numbers, and into how many parts small ticks divide it. */
static double choose_step(double range, unsigned most, bool whole, unsigned *ret_parts) {
    static const struct {
        double times;
        unsigned parts;
    } kinds[] = {{1, 5}, {2, 4}, {5, 5}, {10, 5}};
    double raw = range / (most < 2 ? 2 : most), power = pow(10, floor(log10(raw)));
    unsigned i = 0;
    while (i < 3 && kinds[i].times * power < raw * (1 - 1e-9))
        i++;
    double step = kinds[i].times * power;
    *ret_parts = kinds[i].parts;
    if (whole && step < 1)
        step = 1;
    if (whole && (step < 10 && (unsigned)step % *ret_parts != 0))
        *ret_parts = step < 2 ? 1 : (unsigned)step;
    return step;
}

size_t plot_ticks_linear(double low, double high, unsigned most, bool whole, plot_tick ret[PLOT_TICKS_MAX]) {
    unsigned parts;
    size_t n = 0;
    if (!(high > low) || !isfinite(high - low))
        return 0;
    double step = choose_step(high - low, most, whole, &parts), largest = fmax(fabs(low), fabs(high));
    double small = step / parts, slack = 1e-6;
    long long first = (long long)ceil(low / small - slack), last = (long long)floor(high / small + slack);
    for (long long i = first; i <= last && n < PLOT_TICKS_MAX; i++, n++) {
        ret[n] = (plot_tick){.at = (double)i * small};
        if (i % (long long)parts == 0)
            write_label(&ret[n], (double)(i / (long long)parts) * step, largest, step);
    }
    return n;
}

/* The power of ten itself has a number when its exponent is a multiple of `every`; 2 and 5 times it when few do. */
static bool has_number(int exponent, int times, int every, bool few) {
    if (times == 1)
        return exponent % every == 0;
    return few && (times == 2 || times == 5);
}

size_t plot_ticks_log(double low, double high, unsigned most, plot_tick ret[PLOT_TICKS_MAX]) {
    size_t n = 0;
    if (!(low > 0) || !(high > low) || !isfinite(high))
        return 0;
    int first = (int)floor(log10(low)), last = (int)floor(log10(high) + 1e-9);
    int decades = last - first + 1, every = 1 + (decades - 1) / (int)(most < 2 ? 2 : most);
    bool few = log10(high / low) < 2.5;
    for (int exponent = first; exponent <= last; exponent++)
        for (int times = 1; times < 10 && n < PLOT_TICKS_MAX; times++) {
            double at = times * pow(10, exponent);
            if (at < low * (1 - 1e-9) || at > high * (1 + 1e-9) || (decades > 8 && times > 1))
                continue;
            ret[n] = (plot_tick){.at = at};
            if (has_number(exponent, times, every, few))
                write_label(&ret[n], at, at >= 1e4 ? fmax(at, PREFIX_FROM) : at, at);
            n++;
        }
    return n;
}
