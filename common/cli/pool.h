/* Threads for the commands, behind the executor tables of the libraries, which make none themselves. */
#ifndef COMMON_CLI_POOL_H
#define COMMON_CLI_POOL_H

typedef struct cli_pool cli_pool;

/* n_threads of 0: one for each processor that this process may use. NULL: out of memory or no threads; what would have
 * run on them then runs in the calling thread. */
cli_pool *cli_pool_new(unsigned n_threads);

/* Waits for what runs, then ends the threads. NULL is allowed. */
void cli_pool_free(cli_pool *pool);

/* How many threads; 1 for NULL. */
unsigned cli_pool_threads(const cli_pool *pool);

/* Runs job(arg) on one of the threads, soon. Returns 0, or -1 when as many jobs wait already as fit. Any thread. */
int cli_pool_submit(void *pool, void (*job)(void *arg), void *arg);

/* Returns when every job has ended. Not from within a job. */
void cli_pool_wait(void *pool);

#endif
