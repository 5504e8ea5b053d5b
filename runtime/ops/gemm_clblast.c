/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLBlast's GEMM. It prints on errors, so everything that it checks is checked here first. Its first calls race in
 * some drivers' compilers, so one call is made at a time.
 */
#include "ops/gemm_clblast.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/trace.h"
#include "ops/deterministic.h"
#include "ops/gemm_problem.h"
#include "ops/map.h"
#include <clblast_c.h>

/* Multiplications below which a launch costs more than a better kernel saves. */
#define SMALLEST_WORK 65536.0

static pthread_mutex_t clblast_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned devices_in_use; /* guarded by clblast_lock */

/* A matrix is row-major, or column-major and then transposed, with a leading dimension. Sides of 1 fit either. */
static bool matrix_form(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, bool *transposed,
                        size_t *ld)
{
    if ((columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns)) {
        *transposed = false;
        *ld = (size_t)(rows == 1 ? columns : row_stride);
        return true;
    }
    if ((rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows)) {
        *transposed = true;
        *ld = (size_t)(columns == 1 ? rows : column_stride);
        return true;
    }
    return false;
}

static size_t batch_stride(const rnl_gemm_problem *problem, int view)
{
    return problem->batch.rank ? (size_t)problem->batch.stride[view][0] : 0;
}

static bool batch_fits(const rnl_gemm_problem *problem)
{
    if (problem->batch.rank > 1)
        return false;
    for (size_t v = 0; problem->batch.rank && v <= RNL_GEMM_B; ++v)
        if (problem->batch.stride[v][0] < 0)
            return false;
    return true;
}

static bool translate(const rnl_gemm_problem *problem, rnl_clblast_gemm *gemm)
{
    bool dst_transposed = false;
    *gemm = (rnl_clblast_gemm){.a_slot = problem->a->slot,
                               .b_slot = problem->b->slot,
                               .c_slot = problem->dst->slot,
                               .m = (size_t)problem->m,
                               .n = (size_t)problem->n,
                               .k = (size_t)problem->k,
                               .a_offset = (size_t)problem->a->offset,
                               .b_offset = (size_t)problem->b->offset,
                               .c_offset = (size_t)problem->dst->offset,
                               .batch = (size_t)rnl_dims_elements(&problem->batch),
                               .a_batch_stride = batch_stride(problem, RNL_GEMM_A),
                               .b_batch_stride = batch_stride(problem, RNL_GEMM_B),
                               .c_batch_stride = batch_stride(problem, RNL_GEMM_DST),
                               .alpha = problem->alpha,
                               .beta = problem->c ? problem->beta : 0,
                               .dtype = problem->dst->dtype};
    return matrix_form(problem->m, problem->k, problem->a_m, problem->a_k, &gemm->a_transposed, &gemm->a_ld) &&
           matrix_form(problem->k, problem->n, problem->b_k, problem->b_n, &gemm->b_transposed, &gemm->b_ld) &&
           matrix_form(problem->m, problem->n, problem->dst_m, problem->dst_n, &dst_transposed, &gemm->c_ld) &&
           !dst_transposed;
}

bool rnl_gemm_clblast_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    rnl_clblast_gemm gemm;
    (void)device;
    return problem->dst->dtype == RNL_F32 && problem->k > 0 && !problem->chain && !problem->packed &&
           batch_fits(problem) && translate(problem, &gemm);
}

/* Measured: on NVIDIA's GPUs gemm:tiled is faster at every size, on CPUs the portable kernel 6 to 17 times. */
bool rnl_gemm_clblast_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    return !rnl_is_deterministic() && device->info.type == RNL_DEVICE_GPU &&
           device->info.vendor_id != RNL_VENDOR_NVIDIA &&
           (double)problem->m * (double)problem->n * (double)problem->k >= SMALLEST_WORK;
}

static bool is_in_place(const rnl_view *c, const rnl_view *dst)
{
    if (c->slot != dst->slot || c->offset != dst->offset || !rnl_shapes_equal(c, dst))
        return false;
    for (size_t i = 0; i < c->rank; ++i)
        if (c->shape[i] > 1 && c->stride[i] != dst->stride[i])
            return false;
    return true;
}

/* CLBlast adds to what is in dst: the addend goes there first. */
rnl_status rnl_gemm_clblast_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *problem = data;
    rnl_clblast_gemm gemm;
    if (!translate(problem, &gemm))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    TRY(rnl_grow(&list->steps, &list->step_capacity, list->step_count + 2, sizeof *list->steps));
    TRY(rnl_grow(&list->gemms, &list->gemm_capacity, list->gemm_count + 1, sizeof *list->gemms));
    if (problem->c && !is_in_place(problem->c, problem->dst))
        TRY(rnl_op_map(list, RNL_MAP_COPY, 0, 0, problem->c, 1, problem->dst), "copying a matrix product's addend");
    list->gemms[list->gemm_count] = gemm;
    list->steps[list->step_count++] = (rnl_step){.kind = RNL_STEP_CLBLAST_GEMM,
                                                 .implementation = name,
                                                 .gemm_at = (uint32_t)list->gemm_count++,
                                                 .write_slot = problem->dst->slot,
                                                 .write_slot_2 = RNL_NO_SLOT,
                                                 .write_slot_3 = RNL_NO_SLOT,
                                                 .flops = rnl_gemm_flops(problem),
                                                 .bytes = rnl_gemm_bytes(problem)};
    return RNL_OK;
}

/* Elements from a buffer's start to behind the last one that is used; false on overflow. */
static bool extent(size_t offset, size_t rows, size_t columns, size_t ld, size_t batch, size_t stride, size_t *out)
{
    size_t lines = 0, batches = 0;
    return rnl_size_mul(rows - 1, ld, &lines) && rnl_size_mul(batch - 1, stride, &batches) &&
           rnl_size_add(lines, columns, out) && rnl_size_add(*out, batches, out) && rnl_size_add(*out, offset, out) &&
           rnl_size_mul(*out, sizeof(float), out);
}

typedef struct clblast_bytes {
    size_t a, b, c;
} clblast_bytes;

static rnl_status find_bytes(const rnl_clblast_gemm *g, clblast_bytes *out)
{
    const size_t a_rows = g->a_transposed ? g->k : g->m, a_columns = g->a_transposed ? g->m : g->k;
    const size_t b_rows = g->b_transposed ? g->n : g->k, b_columns = g->b_transposed ? g->k : g->n;
    if (g->dtype != RNL_F32 || !g->m || !g->n || !g->k || !g->batch || g->a_ld < a_columns || g->b_ld < b_columns ||
        g->c_ld < g->n || (g->batch > 1 && g->c_batch_stride == 0))
        return FAIL(RNL_INTERNAL, "matrix product that CLBlast does not take");
    if (!extent(g->a_offset, a_rows, a_columns, g->a_ld, g->batch, g->a_batch_stride, &out->a) ||
        !extent(g->b_offset, b_rows, b_columns, g->b_ld, g->batch, g->b_batch_stride, &out->b) ||
        !extent(g->c_offset, g->m, g->n, g->c_ld, g->batch, g->c_batch_stride, &out->c))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "matrix product of more elements than can be counted");
    return RNL_OK;
}

static rnl_status check_memory(cl_mem memory, size_t needed)
{
    size_t bytes = 0;
    TRY(CL(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL)));
    if (bytes < needed)
        return FAIL(RNL_INTERNAL, "matrix product over %zu bytes in a buffer of %zu", needed, bytes);
    return RNL_OK;
}

/* CLBlast's programs keep their context: they go with the last device that used it. */
static void forget_device(rnl_device *device)
{
    (void)device;
    pthread_mutex_lock(&clblast_lock);
    if (--devices_in_use == 0 && rnl_cl_begin()) {
        CLBlastClearCache();
        (void)rnl_cl_end(CL_SUCCESS);
    }
    pthread_mutex_unlock(&clblast_lock);
}

/* With the lock held. What the tuning table has for the device holds from its first product on; it is a matter of speed
 * alone, so CLBlast's own values do where it does not take them. */
static void begin_device(rnl_device *device)
{
    if (device->before_release)
        return;
    const uint32_t sets[RNL_CLBLAST_KERNELS] = {rnl_clblast_noted(device, RNL_CLBLAST_XGEMM),
                                                rnl_clblast_noted(device, RNL_CLBLAST_DIRECT)};
    const rnl_error error = *rnl_last_error();
    if (rnl_clblast_override(device, sets) != RNL_OK)
        rnl_error_restore(&error);
    device->before_release = forget_device;
    ++devices_in_use;
}

/* CLBlast forgets one device's values only with all that it keeps. */
rnl_status rnl_clblast_use(rnl_device *device, const uint32_t sets[RNL_CLBLAST_KERNELS])
{
    pthread_mutex_lock(&clblast_lock);
    begin_device(device);
    CLBlastClearCache();
    const rnl_status status = rnl_clblast_override(device, sets);
    pthread_mutex_unlock(&clblast_lock);
    return status;
}

static CLBlastStatusCode call(rnl_stream *stream, const rnl_clblast_gemm *g, cl_mem a, cl_mem b, cl_mem c,
                              cl_event *event)
{
    const CLBlastTranspose a_form = g->a_transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
    const CLBlastTranspose b_form = g->b_transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
    if (g->batch == 1)
        return CLBlastSgemm(CLBlastLayoutRowMajor, a_form, b_form, g->m, g->n, g->k, g->alpha, a, g->a_offset, g->a_ld,
                            b, g->b_offset, g->b_ld, g->beta, c, g->c_offset, g->c_ld, &stream->queue, event);
    return CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, a_form, b_form, g->m, g->n, g->k, g->alpha, a, g->a_offset,
                                      g->a_ld, g->a_batch_stride, b, g->b_offset, g->b_ld, g->b_batch_stride, g->beta,
                                      c, g->c_offset, g->c_ld, g->c_batch_stride, g->batch, &stream->queue, event);
}

rnl_status rnl_clblast_run(rnl_stream *stream, const rnl_clblast_gemm *gemm, cl_mem a, cl_mem b, cl_mem c)
{
    rnl_device *device = stream->device;
    clblast_bytes bytes;
    TRY(rnl_stream_check(stream));
    TRY(find_bytes(gemm, &bytes));
    TRY(check_memory(a, bytes.a));
    TRY(check_memory(b, bytes.b));
    TRY(check_memory(c, bytes.c));
    rnl_stream_enter(stream);
    /* Its event is its last kernel's: several are timed by waiting. */
    cl_event *event = stream->track ? rnl_track_begin(stream->track, rnl_stream_take_call(stream), 0, true) : NULL;
    pthread_mutex_lock(&clblast_lock);
    begin_device(device);
    const int code = RNL_CL_GUARD((cl_int)call(stream, gemm, a, b, c, event));
    pthread_mutex_unlock(&clblast_lock);
    rnl_stream_end(stream, RNL_OK);
    if (code == RNL_CL_ENDING)
        return rnl_stream_fail(stream, rnl_cl_status(code, "CLBlast"));
    if (code != CLBlastSuccess)
        return rnl_stream_fail(stream, rnl_error_set(RNL_INTERNAL, code, "CLBlast's matrix product failed (%d)", code));
    atomic_fetch_add_explicit(&device->kernels_launched, 1, memory_order_relaxed);
    return RNL_OK;
}

rnl_status rnl_clblast_warm(rnl_stream *stream, const rnl_clblast_gemm *gemm)
{
    rnl_status status = RNL_OK;
    rnl_buffer *a = NULL, *b = NULL, *c = NULL;
    rnl_clblast_gemm alone = *gemm;
    clblast_bytes bytes;
    alone.a_offset = alone.b_offset = alone.c_offset = 0;
    TRY(find_bytes(&alone, &bytes));
    GOTO(rnl_buffer_create(stream->device, RNL_MEMORY_DEVICE, bytes.a, &a));
    GOTO(rnl_buffer_create(stream->device, RNL_MEMORY_DEVICE, bytes.b, &b));
    GOTO(rnl_buffer_create(stream->device, RNL_MEMORY_DEVICE, bytes.c, &c));
    GOTO(rnl_clblast_run(stream, &alone, a->memory, b->memory, c->memory));
    GOTO(rnl_stream_synchronize(stream));
done:
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_buffer_release(c);
    return status;
}
