/* SPDX-License-Identifier: Apache-2.0 */
/* The error record, the macros that use it, and the log. */
#include "base/log.h"
#include "base/status.h"
#include "support/test_device.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static rnl_status try_plain(rnl_status status)
{
    TRY(status);
    return RNL_OK;
}

static rnl_status try_with_line(rnl_status status, int n)
{
    TRY(status, "line %d of %s", n, "try");
    return RNL_OK;
}

static rnl_status try_without_arguments(rnl_status status)
{
    TRY(status, "a fixed line");
    return RNL_OK;
}

static rnl_status jump(rnl_status given, bool with_line, bool *out_done)
{
    rnl_status status = RNL_OK;
    *out_done = false;
    if (with_line)
        GOTO(given, "%d %d %d %d %d", 1, 2, 3, 4, 5);
    else
        GOTO(given);
    status = RNL_OK;
done:
    *out_done = true;
    return status;
}

START_TEST(a_failure_is_a_status_and_a_message)
{
    ck_assert_int_eq(FAIL(RNL_NOT_FOUND, "no input '%s'", "x"), RNL_NOT_FOUND);
    const rnl_error *error = rnl_last_error();
    ck_assert_int_eq(error->status, RNL_NOT_FOUND);
    ck_assert_str_eq(error->message, "no input 'x'");
    ck_assert_uint_eq(error->length, strlen(error->message));
    ck_assert_int_eq(error->native_code, 0);
    ck_assert_int_eq(rnl_error_set(RNL_INTERNAL, -5, "clFoo"), RNL_INTERNAL);
    ck_assert_int_eq(error->native_code, -5);
    ck_assert_str_eq(error->message, "clFoo");
}
END_TEST

START_TEST(frames_add_lines)
{
    bool done;
    test_ok(try_plain(RNL_OK));
    test_ok(try_with_line(RNL_OK, 3));
    test_ok(jump(RNL_OK, true, &done));
    rnl_status cause = FAIL(RNL_DATA_LOSS, "cause");
    ck_assert_int_eq(try_plain(cause), RNL_DATA_LOSS);
    ck_assert_int_eq(try_with_line(cause, 3), RNL_DATA_LOSS);
    ck_assert_int_eq(try_without_arguments(cause), RNL_DATA_LOSS);
    ck_assert_int_eq(jump(cause, true, &done), RNL_DATA_LOSS);
    ck_assert(done);
    ck_assert_int_eq(jump(cause, false, &done), RNL_DATA_LOSS);
    ck_assert(done);
    ck_assert_str_eq(rnl_last_error()->message, "cause\nline 3 of try\na fixed line\n1 2 3 4 5");
    ck_assert_uint_eq(rnl_last_error()->length, strlen(rnl_last_error()->message));
    rnl_error_add(RNL_DATA_LOSS, "%s", "");
    ck_assert_str_eq(rnl_last_error()->message, "cause\nline 3 of try\na fixed line\n1 2 3 4 5");
}
END_TEST

static unsigned count_lines(const char *text)
{
    unsigned lines = 1;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

START_TEST(a_full_message_counts_what_is_left_out)
{
    rnl_status status = FAIL(RNL_INTERNAL, "cause");
    const rnl_error *error = rnl_last_error();
    char tail[64];
    for (unsigned i = 1; i <= 5000; i++) {
        rnl_error_add(status, "a line with the number %u", i);
        ck_assert_uint_lt(error->length, sizeof error->message);
        ck_assert_uint_eq(error->length, strlen(error->message));
        ck_assert_uint_eq(count_lines(error->message) - (error->lines_left_out > 0) + error->lines_left_out, i + 1);
        snprintf(tail, sizeof tail, "\n… and %u more", error->lines_left_out);
        if (error->lines_left_out > 0)
            ck_assert_str_eq(error->message + error->length - strlen(tail), tail);
    }
    ck_assert_uint_gt(error->length, 3900);
    ck_assert_int_eq(strncmp(error->message, "cause\na line with the number 1\n", 31), 0);
    rnl_error_add(status, "x"); /* would fit in what is left, but not where it belongs */
    ck_assert_ptr_null(strstr(error->message, "\nx"));
    ck_assert_int_eq(FAIL(RNL_NOT_FOUND, "another"), RNL_NOT_FOUND);
    ck_assert_str_eq(error->message, "another");
    ck_assert_uint_eq(error->lines_left_out, 0);
}
END_TEST

START_TEST(a_long_cause_leaves_room_for_frames)
{
    char text[3 * RNL_ERROR_MESSAGE_BYTES];
    for (size_t shift = 0; shift < 3; shift++) {
        for (size_t i = 0; i + 3 < sizeof text; i += 2)
            memcpy(text + shift + i, "é", 2); /* two bytes each */
        memset(text, 'a', shift);
        text[sizeof text - 1] = '\0';
        rnl_status status = FAIL(RNL_INVALID_ARGUMENT, "%s", text);
        const rnl_error *error = rnl_last_error();
        ck_assert_uint_gt(error->length, 2000);
        ck_assert_uint_lt(error->length, RNL_ERROR_MESSAGE_BYTES - 500);
        ck_assert_str_eq(error->message + error->length - 5, "é…");
        rnl_error_add(status, "building conv.cl");
        ck_assert_ptr_nonnull(strstr(error->message, "…\nbuilding conv.cl"));
    }
}
END_TEST

START_TEST(arguments_may_come_from_the_record)
{
    rnl_status status = FAIL(RNL_NOT_FOUND, "cause");
    status = FAIL(status, "wrapped: %s", rnl_last_error()->message);
    ck_assert_str_eq(rnl_last_error()->message, "wrapped: cause");
    rnl_error_add(status, "again: %s", rnl_last_error()->message);
    ck_assert_str_eq(rnl_last_error()->message, "wrapped: cause\nagain: wrapped: cause");
}
END_TEST

static void *fail_in_thread(void *out)
{
    *(rnl_status *)out = rnl_last_error()->status;
    return FAIL(RNL_CANCELLED, "in the thread") == RNL_CANCELLED ? out : NULL;
}

START_TEST(each_thread_has_its_own)
{
    pthread_t thread;
    rnl_status first = RNL_INTERNAL;
    void *result;
    rnl_status mine = FAIL(RNL_NOT_FOUND, "mine");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_in_thread, &first), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, &first);
    ck_assert_int_eq(first, RNL_OK);
    ck_assert_int_eq(rnl_last_error()->status, mine);
    ck_assert_str_eq(rnl_last_error()->message, "mine");
}
END_TEST

START_TEST(a_copy_is_restored)
{
    rnl_status status = FAIL(RNL_NOT_FOUND, "first");
    rnl_error copy = *rnl_last_error();
    status = FAIL(RNL_INTERNAL, "second");
    ck_assert_int_eq(status, RNL_INTERNAL);
    ck_assert_int_eq(rnl_error_restore(&copy), RNL_NOT_FOUND);
    ck_assert_str_eq(rnl_last_error()->message, "first");
    ck_assert_int_eq(rnl_error_restore(rnl_last_error()), RNL_NOT_FOUND);
    ck_assert_str_eq(rnl_last_error()->message, "first");
}
END_TEST

START_TEST(each_status_has_a_name)
{
    ck_assert_str_eq(rnl_status_name(RNL_OK), "OK");
    ck_assert_str_eq(rnl_status_name(RNL_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    ck_assert_str_eq(rnl_status_name(RNL_INTERNAL), "INTERNAL");
    ck_assert_str_eq(rnl_status_name(RNL_STATUS_COUNT), "UNKNOWN");
    ck_assert_str_eq(rnl_status_name((rnl_status)-1), "UNKNOWN");
}
END_TEST

/* ---- The log ---- */

static char seen[256];
static int seen_level;

static void keep_line(void *user, rnl_log_level level, const char *line)
{
    ck_assert_ptr_eq(user, seen);
    seen_level = (int)level;
    strcat(seen, line);
    strcat(seen, "|");
}

START_TEST(the_log_passes_whole_lines_up_to_its_level)
{
    rnl_log(RNL_LOG_ERROR, "nobody listens");
    ck_assert(!rnl_log_enabled(RNL_LOG_ERROR));
    seen[0] = '\0';
    rnl_log_set(keep_line, seen, RNL_LOG_INFO);
    ck_assert(rnl_log_enabled(RNL_LOG_INFO) && !rnl_log_enabled(RNL_LOG_DEBUG));
    rnl_log(RNL_LOG_DEBUG, "too fine");
    rnl_log(RNL_LOG_INFO, "one %d", 1);
    ck_assert_int_eq(seen_level, RNL_LOG_INFO);
    rnl_log(RNL_LOG_ERROR, "two\nthree\n\nfour\n");
    rnl_log(RNL_LOG_ERROR, "%s", "");
    ck_assert_int_eq(seen_level, RNL_LOG_ERROR);
    ck_assert_str_eq(seen, "one 1|two|three|four|");
    rnl_log_set(NULL, NULL, RNL_LOG_DEBUG);
    ck_assert(!rnl_log_enabled(RNL_LOG_ERROR));
    rnl_log(RNL_LOG_ERROR, "nobody listens");
    ck_assert_str_eq(seen, "one 1|two|three|four|");
}
END_TEST

START_TEST(logging_keeps_the_last_error)
{
    rnl_status status = FAIL(RNL_NOT_FOUND, "kept");
    seen[0] = '\0';
    rnl_log_set(keep_line, seen, RNL_LOG_ERROR);
    rnl_log(RNL_LOG_ERROR, "%s", rnl_last_error()->message);
    rnl_log_set(NULL, NULL, RNL_LOG_ERROR);
    ck_assert_str_eq(seen, "kept|");
    ck_assert_int_eq(rnl_last_error()->status, status);
    ck_assert_str_eq(rnl_last_error()->message, "kept");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("status");
    TCase *test_case = tcase_create("status");
    tcase_add_test(test_case, a_failure_is_a_status_and_a_message);
    tcase_add_test(test_case, frames_add_lines);
    tcase_add_test(test_case, a_full_message_counts_what_is_left_out);
    tcase_add_test(test_case, a_long_cause_leaves_room_for_frames);
    tcase_add_test(test_case, arguments_may_come_from_the_record);
    tcase_add_test(test_case, each_thread_has_its_own);
    tcase_add_test(test_case, a_copy_is_restored);
    tcase_add_test(test_case, each_status_has_a_name);
    tcase_add_test(test_case, the_log_passes_whole_lines_up_to_its_level);
    tcase_add_test(test_case, logging_keeps_the_last_error);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
