/* The d7 command's subcommands, and what they share. */
#ifndef D7_CLI_COMMANDS_H
#define D7_CLI_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/pool.h"
#include "d7/d7.h"

typedef cli_command command;

extern const command command_cat, command_copy, command_decay, command_export, command_follow, command_image,
    command_import, command_info, command_merge, command_rate, command_repair, command_split, command_verify;

/* As cli_options(), with n_arguments arguments (-n: at least n). */
int command_options(const command *self, int argc, char **argv, const struct option *options,
                    cli_take_option *take, void *ctx, int n_arguments);

/* "d7 NAME: ..." on standard error, the message as result_message() has it; returns CLI_USAGE. */
int command_fail(const command *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens the file that the command reads, which no result may then replace (result_source()). `unframed`: also one whose blocks
 * have no begin and end bits. `pool`: its threads decode the pages; NULL: the calling one does. Returns 0, or an exit code
 * after saying why. */
int command_open(const command *self, const char *path, bool unframed, cli_pool *pool,
                 d7_reader **ret_reader);

/* What lies beside a file, by its own name where the path is a link: the path with `other` in place of `suffix` at its end, to be
 * freed. NULL: it does not end so, or memory has run out. */
char *command_beside(const char *path, const char *suffix, const char *other);

/* A d7_progress_fn whose ctx is a cli_progress that was started. */
int command_progress(void *bar, uint64_t done, uint64_t total);

/* Compares the checksums beside the file, if there are any: pages that have changed are damaged afterwards. Says on standard
 * error when they cannot be used. Returns 0, or an exit code after saying why. */
int command_compare(const command *self, d7_reader *r);

/* What is wrong with the checksums beside a file, on standard error: where something is, and anyway. */
void command_tell_checksums(const command *self, const d7_reader *r);
void command_tell_fault(const command *self, const char *fault);

/* Damage that may have cost a page without telling whose: what follows it would belong to other photons. */
bool problem_hides_pages(const d7_problem *problem);

/* May columns of the file be taken side by side? Returns 0, or an exit code after saying why not. */
int command_together(const command *self, const char *path, const d7_reader *r);

/* How many of a file's milliseconds begin before the last of its first n photons is over. */
uint64_t milliseconds_within(d7_reader *r, uint32_t dataset_id, uint64_t n_photons);

/* A whole non-negative number. Returns false for anything else. */
bool parse_count(const char *text, uint64_t *ret);

/* The name of a dataset as a table shows it. */
void print_name(FILE *out, const d7_dataset_info *info);

/* One problem on one line: class, code, place, dataset, items, reason. `names` maps dataset ids (may be
 * NULL). */
void print_problem(FILE *out, const char *file, const d7_problem *problem, const d7_reader *names);

/* The same as a JSON object, without a line end. */
void print_problem_json(FILE *out, const d7_problem *problem, const d7_reader *names);

#endif
