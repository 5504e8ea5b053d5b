/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of pocl before 4.0 do not retain the parts of devices, and its threads look at the device of a command even
 * after clFinish has returned. So the process keeps the parts that contexts do not, and hands them out again.
 *
 * A driver counts the units of a part from the first of its parent: two parts that are made one after the other are the
 * same units. So a part that begins further on is the last of a list that starts with the units before it.
 */
#include "device/part.h"

#include "base/memory.h"
#include "device/claim.h"
#include "device/host_limits.h"
#include "device/part_bind.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rnl_part *parts; /* guarded by `lock` */

/* ---- What the driver gives ---- */

static rnl_status count_nodes(cl_device_id parent, uint32_t *out_count)
{
    cl_device_affinity_domain domains = 0;
    const cl_device_partition_property wanted[] = {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                   CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0};
    cl_uint count = 0;
    TRY(CL(clGetDeviceInfo(parent, CL_DEVICE_PARTITION_AFFINITY_DOMAIN, sizeof domains, &domains, NULL)));
    if (!(domains & CL_DEVICE_AFFINITY_DOMAIN_NUMA))
        return RNL_OK;
    const cl_int code = RNL_CL_RUN(clCreateSubDevices(parent, wanted, 0, NULL, &count));
    /* Many list it for machines of one node, and refuse then. */
    if (code == CL_DEVICE_PARTITION_FAILED || code == CL_INVALID_VALUE || code == CL_INVALID_DEVICE_PARTITION_COUNT)
        return RNL_OK;
    TRY(rnl_cl_status(code, "clCreateSubDevices"));
    *out_count = count;
    return RNL_OK;
}

rnl_status rnl_part_ask(cl_device_id parent, bool numa, rnl_part_kinds *out_kinds)
{
    cl_device_partition_property kinds[16] = {0};
    size_t bytes = 0;
    *out_kinds = (rnl_part_kinds){0};
    TRY(CL(clGetDeviceInfo(parent, CL_DEVICE_PARTITION_PROPERTIES, sizeof kinds, kinds, &bytes)));
    for (size_t i = 0; i < bytes / sizeof *kinds; i++) {
        out_kinds->by_counts = out_kinds->by_counts || kinds[i] == CL_DEVICE_PARTITION_BY_COUNTS;
        if (numa && kinds[i] == CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN)
            TRY(count_nodes(parent, &out_kinds->numa_nodes));
    }
    return RNL_OK;
}

static void release_all(cl_device_id *ids, cl_uint count, cl_uint but)
{
    for (cl_uint i = 0; i < count; i++)
        if (i != but && ids[i])
            clReleaseDevice(ids[i]);
}

static rnl_status create_units(const rnl_part *part, cl_device_id *out_id)
{
    const uint32_t first = part->first, count = first ? 2 : 1;
    const cl_device_partition_property wanted[] = {CL_DEVICE_PARTITION_BY_COUNTS, first ? first : part->units,
                                                   first ? part->units : CL_DEVICE_PARTITION_BY_COUNTS_LIST_END,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id made[2] = {NULL, NULL};
    TRY(CL(clCreateSubDevices(part->parent, wanted, count, made, NULL)));
    release_all(made, count, count - 1);
    *out_id = made[count - 1];
    return RNL_OK;
}

static rnl_status create_node(const rnl_part *part, cl_device_id *out_id)
{
    const cl_device_partition_property wanted[] = {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                   CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0};
    cl_uint count = 0;
    cl_device_id *made;
    TRY(CL(clCreateSubDevices(part->parent, wanted, 0, NULL, &count)));
    if (part->first >= count)
        return FAIL(RNL_UNAVAILABLE, "the driver has %u NUMA nodes now", (unsigned)count);
    TRY(rnl_alloc(count, sizeof *made, &made));
    rnl_status status = CL(clCreateSubDevices(part->parent, wanted, count, made, NULL));
    if (status == RNL_OK) {
        release_all(made, count, part->first);
        *out_id = made[part->first];
    }
    rnl_free(made);
    return status;
}

static rnl_status check_units(rnl_part *part)
{
    cl_uint units = 0;
    TRY(CL(clGetDeviceInfo(part->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL)));
    if (part->kind == RNL_SHARE_NUMA)
        part->units = units;
    if (units != part->units || units == 0)
        return FAIL(RNL_UNAVAILABLE, "the driver gave a part of %u compute units where %u were asked for",
                    (unsigned)units, (unsigned)part->units);
    return RNL_OK;
}

/* Adds it to the list. */
static rnl_status create(const rnl_part *wanted, rnl_part **out_part)
{
    rnl_part *part;
    TRY(rnl_alloc(1, sizeof *part, &part));
    *part = *wanted;
    rnl_status status = RNL_OK;
    GOTO(part->kind == RNL_SHARE_NUMA ? create_node(part, &part->id) : create_units(part, &part->id));
    GOTO(check_units(part));
    part->next = parts;
    parts = part;
    *out_part = part;
    part = NULL;
done:
    if (part && part->id)
        clReleaseDevice(part->id);
    rnl_free(part);
    return status;
}

bool rnl_part_try(const rnl_part_parent *parent)
{
    const cl_uint most = parent->units - 1;
    const cl_device_partition_property wanted[] = {CL_DEVICE_PARTITION_BY_COUNTS, most, 1,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id made[2] = {NULL, NULL};
    cl_uint units[2] = {0, 0};
    if (most == 0 || RNL_CL_RUN(clCreateSubDevices(parent->id, wanted, 2, made, NULL)) != CL_SUCCESS)
        return false;
    for (int i = 0; i < 2; i++)
        if (made[i])
            (void)RNL_CL_RUN(clGetDeviceInfo(made[i], CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units[i], &units[i], NULL));
    release_all(made, 2, 2);
    return units[0] == most && units[1] == 1;
}

/* ---- Which one ---- */

static rnl_status use(const rnl_part *wanted, rnl_part **out_part)
{
    rnl_part *part = parts;
    while (part && (part->parent != wanted->parent || part->kind != wanted->kind || part->first != wanted->first ||
                    (part->kind == RNL_SHARE_UNITS && part->units != wanted->units)))
        part = part->next;
    if (!part)
        TRY(create(wanted, &part));
    part->users++;
    *out_part = part;
    return RNL_OK;
}

/* How many opened devices have units of these. Where a node's units lie is not known: it meets nodes alone. */
static uint32_t count_users(const rnl_part *range)
{
    uint32_t users = 0;
    for (const rnl_part *it = parts; it; it = it->next) {
        const bool numa = range->kind == RNL_SHARE_NUMA;
        const bool meets = numa ? it->first == range->first
                                : it->first < range->first + range->units && range->first < it->first + it->units;
        users += it->parent == range->parent && it->kind == range->kind && meets ? it->users : 0;
    }
    return users;
}

rnl_status rnl_part_take_units(const rnl_part_parent *parent, uint32_t units, rnl_part **out_part)
{
    rnl_part best = {.parent = parent->id, .kind = RNL_SHARE_UNITS, .units = units};
    uint32_t least = UINT32_MAX;
    *out_part = NULL;
    pthread_mutex_lock(&lock);
    for (rnl_part range = best; range.first <= parent->units - units && least > 0; range.first++) {
        const uint32_t users = count_users(&range);
        if (users < least) {
            best = range;
            least = users;
        }
    }
    const rnl_status status = use(&best, out_part);
    pthread_mutex_unlock(&lock);
    return status;
}

static rnl_part range_of(const rnl_part_parent *parent, const rnl_share *share, uint32_t at)
{
    rnl_part range = {.parent = parent->id, .kind = share->kind, .first = at};
    if (share->kind == RNL_SHARE_UNITS)
        rnl_share_range(parent->units, share->count, at, &range.first, &range.units);
    return range;
}

static bool claim(rnl_claim *choice, const rnl_part_parent *parent, const rnl_part *range)
{
    cpu_set_t all, own;
    return rnl_host_processors(range->first, range->units, parent->units, &all, &own) && rnl_claim_take(choice, &own);
}

/*
 * The first one that is free in this process and of which no other has a processor, else the first that is free in this
 * process; or share->count.
 */
static uint32_t find_free(const rnl_part_parent *parent, const rnl_share *share, rnl_claim **out_claim)
{
    rnl_claim *choice = parent->binds && share->kind == RNL_SHARE_UNITS ? rnl_claim_begin() : NULL;
    uint32_t found = share->count;
    bool claimed = false;
    for (uint32_t at = 0; at < share->count && !claimed && (choice || found == share->count); at++) {
        const rnl_part range = range_of(parent, share, at);
        if (count_users(&range) > 0)
            continue;
        claimed = claim(choice, parent, &range);
        if (claimed || found == share->count)
            found = at;
    }
    *out_claim = rnl_claim_end(choice);
    return found;
}

rnl_status rnl_part_take_share(const rnl_part_parent *parent, const rnl_share *share, const char *spec,
                               rnl_part **out_part)
{
    rnl_claim *own = NULL;
    rnl_status status;
    *out_part = NULL;
    pthread_mutex_lock(&lock);
    const uint32_t at = share->at == RNL_SHARE_ANY ? find_free(parent, share, &own) : share->at;
    const rnl_part range = range_of(parent, share, at);
    if (at >= share->count)
        status =
            FAIL(RNL_RESOURCE_EXHAUSTED,
                 "'%s': all %u such shares of %s are in use in this process; name one to use it with others, as in "
                 "'%s%s0'",
                 spec, (unsigned)share->count, parent->name, spec, share->kind == RNL_SHARE_NUMA ? "" : ".");
    else
        status = use(&range, out_part);
    if (status == RNL_OK && own)
        (*out_part)->claim = own; /* it had no user, so no claim */
    else
        rnl_claim_give_back(own);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- For how long ---- */

static void give_claim_back(rnl_part *part)
{
    rnl_claim_give_back(part->claim);
    part->claim = NULL;
}

rnl_status rnl_part_keep(rnl_part *part)
{
    cl_uint references = 0;
    TRY(CL(clGetDeviceInfo(part->id, CL_DEVICE_REFERENCE_COUNT, sizeof references, &references, NULL)));
    pthread_mutex_lock(&lock);
    part->is_kept = part->is_kept || references <= 1; /* else the context holds it too */
    pthread_mutex_unlock(&lock);
    return RNL_OK;
}

void rnl_part_hold(rnl_part *part, cl_context context, uint32_t whole, bool by_number)
{
    pthread_mutex_lock(&lock);
    if (!part->bound && part->kind == RNL_SHARE_UNITS && (by_number || part->claim))
        part->bound = rnl_part_bind(context, part->id, part->first, part->units, whole);
    if (part->bound && !part->claim)
        part->claim = rnl_claim_beside(&part->bound->now);
    if (!part->bound)
        give_claim_back(part);
    pthread_mutex_unlock(&lock);
}

void rnl_part_give_back(rnl_part *part)
{
    if (!part)
        return;
    pthread_mutex_lock(&lock);
    const bool last = --part->users == 0, ends = last && !part->is_kept;
    if (last) {
        rnl_part_unbind(part->bound);
        part->bound = NULL;
        give_claim_back(part);
    }
    rnl_part **at = &parts;
    while (*at != part)
        at = &(*at)->next;
    if (ends)
        *at = part->next;
    pthread_mutex_unlock(&lock);
    if (!ends)
        return;
    clReleaseDevice(part->id);
    rnl_free(part);
}
