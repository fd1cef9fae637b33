#include "inbox.h"

static void inbox_drain(uv_async_t *async) {
    pd_inbox *inbox = async->data;
    pd_link *link = pd_queue_take(&inbox->queue, 0);
    while (link) {
        pd_event *event = pd_container_of(link, pd_event, link);
        link = link->next;
        event->happened(event);
    }
}

int pd_inbox_init(pd_inbox *inbox, uv_loop_t *loop) {
    int failed = pd_queue_init(&inbox->queue);
    if (failed)
        return failed;
    failed = uv_async_init(loop, &inbox->async, inbox_drain);
    if (failed) {
        pd_queue_destroy(&inbox->queue);
        return failed;
    }
    inbox->async.data = inbox;
    return 0;
}

void pd_inbox_post(pd_inbox *inbox, pd_event *event) {
    if (pd_queue_push(&inbox->queue, &event->link))
        uv_async_send(&inbox->async);
}

static void inbox_closed(uv_handle_t *handle) {
    pd_inbox *inbox = handle->data;
    pd_queue_destroy(&inbox->queue);
}

void pd_inbox_close(pd_inbox *inbox) {
    uv_close((uv_handle_t *)&inbox->async, inbox_closed);
}
