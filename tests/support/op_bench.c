/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's device, stream and list, and the running of steps. */
#include "support/op_bench.h"
#include "base/log.h"
#include "kernel/program.h"
#include "kernel/team.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct op_bench {
    rnl_device *device;
    rnl_stream *stream;
    rnl_kernel_set *kernels;
    rnl_step_list list;
    op_tensor *tensors[OP_MAX_TENSORS];
    size_t count;
    char note[512];
    uint32_t case_number; /* since the last op_begin_choice() */
    bool looked;          /* anything was run or refused */
} op_bench;

static op_bench bench;

rnl_device *op_device(void)
{
    return bench.device;
}

const rnl_device_info *op_info(void)
{
    return rnl_device_get_info(bench.device);
}

rnl_step_list *op_list(void)
{
    return &bench.list;
}

bool op_exact_slots(void)
{
    const char *small = getenv("RUNNEL_TEST_SMALL");
    return small && *small && strcmp(small, "0") != 0;
}

bool op_small(void)
{
    return op_exact_slots() || op_info()->emulated;
}

void op_begin_choice(void)
{
    bench.case_number = 0;
}

bool op_chosen(void)
{
    const char *each = getenv("RUNNEL_TEST_EACH");
    const uint32_t count = each ? (uint32_t)strtoul(each, NULL, 10) : 1, number = bench.case_number++;
    /* The upper bits of such a product do not follow the period of any loop. */
    return count < 2 || number == 0 || ((number * 2654435761u) >> 16) % count == 0;
}

void op_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(bench.note, sizeof bench.note, format, args);
    va_end(args);
}

const char *op_noted(void)
{
    return bench.note;
}

uint32_t op_add_tensor(op_tensor *tensor)
{
    ck_assert_uint_lt(bench.count, OP_MAX_TENSORS);
    bench.tensors[bench.count] = tensor;
    return (uint32_t)bench.count++;
}

void op_reset(void)
{
    for (size_t i = 0; i < bench.count; ++i) {
        free(bench.tensors[i]->data);
        free(bench.tensors[i]->sent);
        free(bench.tensors[i]);
    }
    bench.count = 0;
    bench.note[0] = 0;
    rnl_step_list_free(&bench.list);
    rnl_step_list_init(&bench.list, bench.device);
    op_seed(1);
}

void op_looked(void)
{
    bench.looked = true;
}

void op_expect_at(const char *file, int line, rnl_status expected, rnl_status got)
{
    const rnl_error *error = rnl_last_error();
    bench.looked = true;
    if (got != expected)
        ck_abort_msg("%s:%d: %s, expected %s: %s [%s]", file, line, rnl_status_name(got), rnl_status_name(expected),
                     got ? error->message : "", bench.note);
    if (got)
        ck_assert_msg(error->status == got && error->length > 0, "%s:%d: a failure without a message", file, line);
}

static size_t slot_bytes(const op_tensor *tensor)
{
    return tensor->slot_elements * rnl_dtype_bytes(tensor->view.dtype);
}

/* Slots are parts of larger buffers, at several places, except where their buffers' ends are what is watched. */
static rnl_status upload(const op_tensor *tensor, rnl_slot_memory *out_slot)
{
    cl_int code = CL_SUCCESS;
    const size_t place = op_exact_slots() ? 0 : 128 * (size_t)(tensor->view.slot % 3);
    out_slot->offset_bytes = place;
    out_slot->memory =
        clCreateBuffer(bench.device->context, CL_MEM_READ_WRITE, place + slot_bytes(tensor), NULL, &code);
    TRY(rnl_cl_status(code, "clCreateBuffer"));
    return CL(clEnqueueWriteBuffer(bench.stream->queue, out_slot->memory, CL_TRUE, place, slot_bytes(tensor),
                                   tensor->data, 0, NULL, NULL));
}

static bool is_written(uint32_t slot)
{
    for (size_t i = 0; i < bench.list.step_count; ++i) {
        const rnl_step *step = &bench.list.steps[i];
        const uint32_t c_slot =
            step->kind == RNL_STEP_CLBLAST_GEMM ? bench.list.gemms[step->gemm_at].c_slot : RNL_NO_SLOT;
        if (step->write_slot == slot || step->write_slot_2 == slot || step->write_slot_3 == slot || c_slot == slot)
            return true;
    }
    return false;
}

static rnl_status run_steps(const rnl_slot_memory *slots, bool by_team)
{
    rnl_status status = RNL_OK;
    if (by_team)
        rnl_team_begin(bench.stream);
    for (size_t i = 0; i < bench.list.step_count && status == RNL_OK; ++i)
        status = rnl_step_enqueue(bench.stream, bench.kernels, &bench.list, i, slots, bench.count);
    const rnl_status ended = rnl_team_end(bench.stream);
    return status == RNL_OK ? ended : status;
}

static rnl_status upload_again(const rnl_slot_memory *slots)
{
    for (size_t i = 0; i < bench.count; ++i)
        TRY(CL(clEnqueueWriteBuffer(bench.stream->queue, slots[i].memory, CL_TRUE, slots[i].offset_bytes,
                                    slot_bytes(bench.tensors[i]), bench.tensors[i]->sent, 0, NULL, NULL)));
    return RNL_OK;
}

/* Where the device has a team of threads, once more by that: each kernel's range is cut then. */
static rnl_status run_with(rnl_slot_memory *slots)
{
    for (size_t i = 0; i < bench.count; ++i) {
        op_tensor *tensor = bench.tensors[i];
        memcpy(tensor->sent, tensor->data, slot_bytes(tensor));
        TRY(upload(tensor, &slots[i]));
    }
    const bool has_team = rnl_device_has_team(bench.device);
    TRY(run_steps(slots, false));
    TRY(rnl_stream_synchronize(bench.stream));
    if (has_team) {
        TRY(upload_again(slots));
        TRY(run_steps(slots, true));
        TRY(rnl_stream_synchronize(bench.stream));
    }
    for (size_t i = 0; i < bench.count; ++i)
        TRY(CL(clEnqueueReadBuffer(bench.stream->queue, slots[i].memory, CL_TRUE, slots[i].offset_bytes,
                                   slot_bytes(bench.tensors[i]), bench.tensors[i]->data, 0, NULL, NULL)));
    return RNL_OK;
}

bool op_last_has(const char *define)
{
    const rnl_step_list *list = &bench.list;
    ck_assert_uint_gt(list->step_count, 0);
    return strstr(rnl_program_name(list->steps[list->step_count - 1].program), define) != NULL;
}

void op_run(void)
{
    rnl_slot_memory slots[OP_MAX_TENSORS] = {{NULL, 0}};
    const rnl_status status = run_with(slots);
    for (size_t i = 0; i < bench.count; ++i)
        if (slots[i].memory)
            clReleaseMemObject(slots[i].memory);
    op_expect(RNL_OK, status);
    for (size_t i = 0; i < bench.count; ++i)
        if (!is_written((uint32_t)i))
            ck_assert_msg(!memcmp(bench.tensors[i]->data, bench.tensors[i]->sent, slot_bytes(bench.tensors[i])),
                          "slot %zu was written, and no step says so [%s]", i, bench.note);
}

TCase *op_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, op_reset, op_reset);
    tcase_add_checked_fixture(tests, op_begin_choice, NULL);
    suite_add_tcase(suite, tests);
    return tests;
}

static struct {
    rnl_device_type type;
    bool emulated;
} real;

static void pretend(void)
{
    op_reset();
    real.type = bench.device->info.type;
    real.emulated = bench.device->info.emulated;
    bench.device->info.type = RNL_DEVICE_CPU;
    bench.device->info.emulated = false;
}

static void stop_pretending(void)
{
    bench.device->info.type = real.type;
    bench.device->info.emulated = real.emulated;
    op_reset();
}

TCase *op_case_as_cpu(Suite *suite, const char *name)
{
    if (!op_exact_slots())
        return NULL;
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, pretend, stop_pretending);
    tcase_add_checked_fixture(tests, op_begin_choice, NULL);
    suite_add_tcase(suite, tests);
    return tests;
}

void op_pretend(const op_limits *limits)
{
    static op_limits actual;
    rnl_device *device = bench.device;
    if (!actual.vector_width)
        actual = (op_limits){device->info.type == RNL_DEVICE_GPU, device->vector_width,
                             device->info.max_work_group_size, device->info.local_memory_bytes};
    if (!limits)
        limits = &actual;
    device->info.type = limits->gpu ? RNL_DEVICE_GPU : RNL_DEVICE_CPU;
    device->vector_width = limits->vector_width;
    device->info.max_work_group_size = limits->work_items;
    device->info.local_memory_bytes = limits->local_bytes;
    /* What is known of kernels holds for the limits that they were made under. */
    rnl_kernel_set_release(bench.kernels);
    bench.kernels = NULL;
    op_expect(RNL_OK, rnl_kernel_set_create(device, &bench.kernels));
}

static void print_line(void *user, rnl_log_level level, const char *line)
{
    (void)user, (void)level;
    fprintf(stderr, "%s\n", line);
}

static rnl_status open_bench(void)
{
    TRY(rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &bench.device));
    TRY(rnl_stream_create(bench.device, &bench.stream));
    TRY(rnl_kernel_set_create(bench.device, &bench.kernels));
    rnl_step_list_init(&bench.list, bench.device);
    return RNL_OK;
}

int op_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed = 1;
    rnl_log_set(print_line, NULL, RNL_LOG_WARNING);
    const rnl_status status = open_bench();
    if (status) {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
    } else {
        srunner_set_fork_status(runner, CK_NOFORK);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner) > 0;
    }
    srunner_free(runner);
    rnl_step_list_free(&bench.list);
    rnl_kernel_set_release(bench.kernels);
    rnl_stream_release(bench.stream);
    rnl_device_release(bench.device);
    if (status == RNL_NOT_FOUND)
        return 77;
    if (failed || bench.looked)
        return failed;
    printf("skipped: the device has not what these tests need\n");
    return 77;
}
