/* SPDX-License-Identifier: Apache-2.0 */
/* Every OpenCL call and every allocation of pinned memory, maps, staging and copies between devices fails once. */
#include "base/memory.h"
#include "device/buffer.h"
#include "device/way.h"
#include "support/fault.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)600 << 10)
#define MOST_FAULTS 2000

static rnl_device *device, *other;
static unsigned char *out, *back;

static void open_all(void)
{
    device = test_open_device();
    other = test_open_device();
    out = aligned_alloc(4096, BYTES + 4096);
    back = aligned_alloc(4096, BYTES + 4096);
    for (size_t i = 0; i < BYTES; i++)
        out[i] = (unsigned char)(i * 7 + (i >> 9));
    atomic_store(&device->copies_known, true);
    for (size_t i = 0; i < RNL_COPY_CLASSES && !device->copies_in_caller; i++)
        for (int direction = 0; direction < 2; direction++)
            atomic_store(&device->copy_ways[direction][i], RNL_COPY_STAGED_2 + 1);
}

static void open_all_with_two_sides(void)
{
    open_all();
    device->maps_in_place = other->maps_in_place = false;
}

static void close_all(void)
{
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_device_release(other);
    rnl_device_release(device);
    free(out);
    free(back);
}

typedef struct objects {
    rnl_stream *near, *far;
    rnl_buffer *a, *b, *pinned, *wrapped;
    rnl_staging *staging;
} objects;

#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        rnl_status step_ = (call);                                                                                     \
        if (step_ != RNL_OK)                                                                                           \
            return step_;                                                                                              \
    } while (0)

static rnl_status create(objects *o)
{
    STEP(rnl_stream_create(device, &o->near));
    STEP(rnl_stream_create(other, &o->far));
    STEP(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &o->a));
    STEP(rnl_buffer_create(other, RNL_MEMORY_DEVICE, BYTES, &o->b));
    STEP(rnl_buffer_create(device, RNL_MEMORY_PINNED, 4096, &o->pinned));
    STEP(rnl_staging_create(device, 4096, 2, &o->staging));
    rnl_status status = rnl_buffer_wrap_host(device, back, 4096, &o->wrapped);
    return status == RNL_UNIMPLEMENTED ? RNL_OK : status;
}

static rnl_status use_staging(objects *o)
{
    void *slot;
    const void *taken;
    size_t bytes;
    for (size_t at = 0; at < 16384; at += 4096) {
        STEP(rnl_staging_begin(o->staging, &slot));
        memcpy(slot, out + at, 4096);
        STEP(rnl_staging_submit(o->staging, o->near, o->a, at, 4096));
    }
    STEP(rnl_staging_request(o->staging, o->near, o->a, 4096, 4096));
    STEP(rnl_staging_take(o->staging, &taken, &bytes));
    ck_assert_uint_eq(bytes, 4096);
    ck_assert_mem_eq(taken, out + 4096, 4096);
    return RNL_OK;
}

static rnl_status use_maps(objects *o)
{
    void *host;
    STEP(rnl_stream_map(o->near, o->a, 64, 1024, RNL_MAP_READ, &host));
    ck_assert_mem_eq(host, out + 64, 1024);
    STEP(rnl_stream_unmap(o->near, o->a));
    STEP(rnl_stream_map(o->near, o->pinned, 0, 4096, RNL_MAP_OVERWRITE, &host));
    memcpy(host, out, 4096);
    STEP(rnl_stream_unmap(o->near, o->pinned));
    return rnl_stream_map(o->near, o->a, 0, 64, RNL_MAP_READ, &host); /* and never unmapped */
}

static rnl_status copy_around(objects *o)
{
    STEP(rnl_stream_write(o->near, o->a, 0, out, BYTES));
    STEP(rnl_stream_copy_across(o->far, o->b, 0, o->near, o->a, 0, BYTES));
    STEP(rnl_stream_fill(o->near, o->a, 0, "\0", 1, BYTES));
    STEP(rnl_stream_copy_across(o->near, o->a, 0, o->far, o->b, 0, BYTES));
    STEP(rnl_stream_read(o->near, back, o->a, 0, BYTES));
    STEP(rnl_stream_synchronize(o->near));
    return rnl_stream_synchronize(o->far);
}

static void release(objects *o)
{
    if (o->near)
        (void)!rnl_stream_synchronize(o->near);
    if (o->far)
        (void)!rnl_stream_synchronize(o->far);
    rnl_staging_release(o->staging);
    rnl_buffer_release(o->wrapped);
    rnl_buffer_release(o->pinned);
    rnl_buffer_release(o->a);
    rnl_buffer_release(o->b);
    rnl_stream_release(o->near);
    rnl_stream_release(o->far);
}

static rnl_status run(void)
{
    objects o = {0};
    memset(back, 0, BYTES);
    rnl_status status = create(&o);
    if (status == RNL_OK)
        status = use_staging(&o);
    if (status == RNL_OK)
        status = copy_around(&o);
    if (status == RNL_OK) {
        ck_assert_mem_eq(back, out, BYTES);
        status = use_maps(&o);
    }
    rnl_error error = *rnl_last_error();
    release(&o);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static void check_idle(rnl_device *of)
{
    rnl_device_stats stats;
    rnl_copy_stats copies;
    rnl_device_get_stats(of, &stats);
    rnl_device_get_copy_stats(of, &copies);
    ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
    ck_assert_uint_eq(copies.pinned_bytes, 0);
}

/* True when the fault was never met. */
static bool check_one(rnl_status status, bool left, size_t *failed)
{
    check_idle(device);
    check_idle(other);
    if (left) {
        ck_assert_int_eq(status, RNL_OK);
        return true;
    }
    if (status != RNL_OK) {
        if (status != RNL_RESOURCE_EXHAUSTED)
            ck_abort_msg("%s: %s", rnl_status_name(status), rnl_last_error()->message);
        ++*failed;
    }
    return false;
}

START_TEST(each_call_fails)
{
    size_t failed = 0;
    const uint64_t step = test_sweep_step(getenv("RUNNEL_TEST_SMALL") ? 7 : 1);
    test_ok(run());
    for (uint64_t n = 1; n < MOST_FAULTS; n += step) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        rnl_status status = run();
        if (check_one(status, test_cl_fault_left(), &failed)) {
            ck_assert_uint_gt(failed, 5);
            return;
        }
        test_ok(run());
    }
    ck_abort_msg("the fault never stopped coming");
}
END_TEST

START_TEST(each_allocation_fails)
{
    size_t failed = 0;
    test_ok(run());
    for (uint64_t n = 1; n < MOST_FAULTS; n++) {
        rnl_alloc_fail_at(n);
        rnl_status status = run();
        if (check_one(status, test_alloc_fault_left(), &failed)) {
            ck_assert_uint_gt(failed, 3);
            return;
        }
        test_ok(run());
    }
    ck_abort_msg("the fault never stopped coming");
}
END_TEST

static TCase *make_case(const char *name, void (*open)(void))
{
    TCase *test_case = tcase_create(name);
    tcase_add_checked_fixture(test_case, open, close_all);
    tcase_add_test(test_case, each_call_fails);
    tcase_add_test(test_case, each_allocation_fails);
    return test_case;
}

int main(void)
{
    Suite *suite = suite_create("memory_fault");
    suite_add_tcase(suite, make_case("memory", open_all));
    suite_add_tcase(suite, make_case("two sides", open_all_with_two_sides));
    return test_run(suite, false);
}
