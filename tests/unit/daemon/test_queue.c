#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "inbox.h"
#include "queue.h"

typedef struct item {
    pd_link link;
    unsigned producer;
    unsigned number;
} item;

static void list_keeps_order(void **state) {
    (void)state;
    pd_list list;
    item items[3];
    pd_list_init(&list);
    assert_null(pd_list_pop(&list));
    for (unsigned i = 0; i < 3; i++)
        pd_list_push(&list, &items[i].link);
    assert_ptr_equal(pd_list_pop(&list), &items[0].link);
    pd_list_push(&list, &items[0].link);
    pd_link *chain = pd_list_take(&list);
    assert_ptr_equal(chain, &items[1].link);
    assert_ptr_equal(chain->next, &items[2].link);
    assert_ptr_equal(chain->next->next, &items[0].link);
    assert_null(chain->next->next->next);
    pd_list_push(&list, &items[1].link);
    assert_ptr_equal(pd_list_pop(&list), &items[1].link);
    assert_null(pd_list_pop(&list));
}

static void take_waits_no_longer_than_asked(void **state) {
    (void)state;
    pd_queue queue;
    assert_int_equal(pd_queue_init(&queue), 0);
    assert_null(pd_queue_take(&queue, 0));
    assert_null(pd_queue_take(&queue, 5));
    pd_queue_destroy(&queue);
}

static void close_wakes_the_reader_and_keeps_what_is_there(void **state) {
    (void)state;
    pd_queue queue;
    item one;
    assert_int_equal(pd_queue_init(&queue), 0);
    assert_true(pd_queue_push(&queue, &one.link));
    pd_queue_close(&queue);
    assert_true(pd_queue_closed(&queue));
    assert_ptr_equal(pd_queue_take(&queue, PD_QUEUE_FOREVER), &one.link);
    assert_null(pd_queue_take(&queue, PD_QUEUE_FOREVER));
    pd_queue_destroy(&queue);
}

enum { PRODUCERS = 4, EACH = 5000 };

typedef struct producer {
    pd_queue *queue;
    item items[EACH];
    unsigned number;
} producer;

static void *produce(void *arg) {
    producer *p = arg;
    for (unsigned i = 0; i < EACH; i++) {
        p->items[i].producer = p->number;
        p->items[i].number = i;
        pd_queue_push(p->queue, &p->items[i].link);
    }
    return NULL;
}

static void nothing_is_lost_between_threads(void **state) {
    (void)state;
    pd_queue queue;
    pthread_t threads[PRODUCERS];
    producer *producers = calloc(PRODUCERS, sizeof *producers);
    unsigned next[PRODUCERS] = {0};
    assert_int_equal(pd_queue_init(&queue), 0);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i].queue = &queue;
        producers[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (unsigned got = 0; got < PRODUCERS * EACH;) {
        pd_link *link = pd_queue_take(&queue, PD_QUEUE_FOREVER);
        for (; link; got++) {
            item *it = pd_container_of(link, item, link);
            link = link->next;
            assert_int_equal(it->number, next[it->producer]++);
        }
    }
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    free(producers);
    pd_queue_destroy(&queue);
}

typedef struct told {
    pd_event event;
    pd_inbox *inbox;
    unsigned *count;
    unsigned last; /* the count at which the inbox is closed */
} told;

static void told_happened(pd_event *event) {
    told *t = pd_container_of(event, told, event);
    if (++*t->count == t->last)
        pd_inbox_close(t->inbox);
}

static void *tell(void *arg) {
    told *events = arg;
    for (unsigned i = 0; i < EACH; i++)
        pd_inbox_post(events[i].inbox, &events[i].event);
    return NULL;
}

static void the_loop_hears_every_event(void **state) {
    (void)state;
    uv_loop_t loop;
    pd_inbox inbox;
    pthread_t thread;
    unsigned count = 0;
    told *events = calloc(EACH, sizeof *events);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(pd_inbox_init(&inbox, &loop), 0);
    for (unsigned i = 0; i < EACH; i++)
        events[i] = (told){{{NULL}, told_happened}, &inbox, &count, EACH};
    assert_int_equal(pthread_create(&thread, NULL, tell, events), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(count, EACH);
    assert_int_equal(uv_loop_close(&loop), 0);
    pthread_join(thread, NULL);
    free(events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_keeps_order),
        cmocka_unit_test(take_waits_no_longer_than_asked),
        cmocka_unit_test(close_wakes_the_reader_and_keeps_what_is_there),
        cmocka_unit_test(nothing_is_lost_between_threads),
        cmocka_unit_test(the_loop_hears_every_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
