/* SPDX-License-Identifier: Apache-2.0 */
/* The device that tests run on, and running a suite. */
#ifndef RUNNEL_TESTS_TEST_DEVICE_H
#define RUNNEL_TESTS_TEST_DEVICE_H

#include <check.h>
#include <runnel/rt.h>

/* The device named by RUNNEL_TEST_DEVICE, else the default. Ends the process with 77 (skipped) when there is none. */
rnl_device *test_open_device(void);
rnl_device *test_open_device_with(const rnl_device_options *options);
/* The first other one there is, else the test's in a context of its own. */
rnl_device *test_open_other_device(const rnl_device *device);

/* Where its threads must be a team (kernel/team.h), or tests of that would test nothing: pocl's on x86-64. */
bool test_must_have_team(const rnl_device *device);

size_t test_pool_in_use(const rnl_device *device);
/* Bytes that differ from place to place and from seed to seed. */
void test_fill(unsigned char *bytes, size_t count, unsigned seed);

/*
 * Runs a suite and frees it; returns what main() returns. With `fork`, each test runs in a child of its own, so this
 * process must make no OpenCL call: drivers hang in a child of one that did.
 */
int test_run(Suite *suite, bool fork);

/* Ends the test with the error's text when the call fails. */
#define test_ok(call) test_ok_at((call), #call, __FILE__, __LINE__)
void test_ok_at(rnl_status status, const char *call, const char *file, int line);
/* Ends the test when the call does not fail with `expected`, or when the message lacks `part` (NULL: any). */
#define test_fails(expected, part, call) test_fails_at((expected), (part), (call), #call, __FILE__, __LINE__)
void test_fails_at(rnl_status expected, const char *part, rnl_status status, const char *call, const char *file,
                   int line);

/* An empty folder that is made for the caller below the system's temporary one; freed by test_folder_remove. */
char *test_folder_create(void);
void test_folder_remove(char *path);

#endif
