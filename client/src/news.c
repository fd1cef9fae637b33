#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Drops one: the oldest. What is told is what happened last. */
static void news_make_room(photon_client *c) {
    if (c->n_news < CLIENT_NEWS_MAX)
        return;
    memmove(c->news, c->news + 1, (CLIENT_NEWS_MAX - 1) * sizeof *c->news);
    c->n_news--;
}

void client__news(photon_client *c, uint32_t kind, photon_client_run *run, uint32_t reason,
                  const char *text) {
    if (!c->on_event)
        return;
    news_make_room(c);
    photon_client_event *e = &c->news[c->n_news++];
    *e = (photon_client_event){.kind = kind, .of_run = run != NULL, .reason = reason};
    if (run)
        memcpy(e->run_id, run->run_id, sizeof e->run_id);
    snprintf(e->text, sizeof e->text, "%s", text);
}

void client__tell_news(photon_client *c) {
    while (c->on_event) {
        photon_client_event event;
        pthread_mutex_lock(&c->lock);
        bool some = c->n_news > 0;
        if (some) {
            event = c->news[0];
            memmove(c->news, c->news + 1, --c->n_news * sizeof *c->news);
        }
        pthread_mutex_unlock(&c->lock);
        if (!some)
            return;
        c->on_event(c->event_context, &event);
    }
}
