/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel bench SUBJECT` and `runnel tune SUBJECT`: measurements of the runtime that need no model. */
#ifndef RUNNEL_CLI_SUBJECT_H
#define RUNNEL_CLI_SUBJECT_H

#include "cli.h"

#include <getopt.h>

/* What all subjects take. Strings are borrowed from argv. */
typedef struct rnl_subject_options {
    bool help, verbose;
    const char *device; /* NULL: the default */
    const char *json;   /* file for all figures; NULL: none */
    uint64_t threads;   /* 0: all */
    uint64_t repeat;    /* samples */
    double memory;      /* part of the device's; 0: all */
    double seconds;     /* the samples of one measurement together, at least */
} rnl_subject_options;

/* Codes of a subject's own options start here. */
#define RNL_SUBJECT_OPTION 512

typedef struct rnl_subject {
    const char *command, *name; /* "bench", "gemm" */
    const char *summary;        /* one line for `runnel bench --help` */
    const char *help;           /* its own options, for `runnel bench gemm --help`; "" for none */
    const struct option *extra; /* its own options, ended by {0}; may be NULL */
    /* One of them, or with code 0 an operand. NULL: it takes neither. */
    rnl_exit (*take)(int code, const char *value);
    rnl_exit (*run)(const rnl_subject_options *options);
} rnl_subject;

/* NULL when `name` is none of the command's subjects. */
const rnl_subject *rnl_subject_find(const char *command, const char *name);
/* The list for the command's help. */
void rnl_subject_print_list(const char *command, FILE *out);
/* argv[0] is the subject's name. */
rnl_exit rnl_subject_run(const rnl_subject *subject, int argc, char **argv);
/* Opens the options' device and says on stdout which. */
rnl_exit rnl_subject_open(const rnl_subject_options *options, rnl_device **out_device);

/* The subjects, each in a file of its own: bench_gemm.c has rnl_subject_bench_gemm. */
extern const rnl_subject rnl_subject_bench_launch, rnl_subject_tune_launch;
extern const rnl_subject rnl_subject_bench_gemm;
extern const rnl_subject rnl_subject_tune_gemm;
extern const rnl_subject rnl_subject_bench_copy, rnl_subject_tune_copy;
extern const rnl_subject rnl_subject_bench_streams;
extern const rnl_subject rnl_subject_bench_pool;

/* What is timed: `enqueue` starts one piece of work, `finish` waits for all of them. */
typedef struct rnl_measured {
    rnl_status (*enqueue)(void *user);
    rnl_status (*finish)(void *user);
    void *user;
} rnl_measured;

/*
 * Nanoseconds of one piece of work, back to back with one finish a sample: the median of options->repeat samples of at
 * least 20 ms each, behind one that is thrown away. *out_min_ns (may be NULL) is the least.
 */
rnl_status rnl_measure(const rnl_measured *work, const rnl_subject_options *options, double *out_ns,
                       double *out_min_ns);
/* Nanoseconds of a clock that only goes forward. */
uint64_t rnl_now_ns(void);

#endif
