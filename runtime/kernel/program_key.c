/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/text.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

/* What the processor can do: a CPU driver's binary made on another one may hold instructions that this one lacks. */
static void add_processor(rnl_text *text)
{
#if defined(__x86_64__) || defined(__i386__)
    static const unsigned leaves[][2] = {{0, 0}, {7, 0}, {7, 1}, {0x80000001u, 0}};
    unsigned a = 0, b = 0, c = 0, d = 0;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        __get_cpuid_count(leaves[i][0], leaves[i][1], &a, &b, &c, &d);
        rnl_text_add(text, "%x:%x:%x:%x,", a, b, c, d);
    }
    /* Leaf 1 without b, which holds the number of the core that asks. */
    __get_cpuid(1, &a, &b, &c, &d);
    rnl_text_add(text, "%x:%x:%x", a, c, d);
#else
    rnl_text_add(text, "%lx,%lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#endif
}

static rnl_status add_platform_version(rnl_text *text, cl_platform_id platform)
{
    size_t bytes = 0;
    char *version;
    TRY(CL(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, 0, NULL, &bytes)));
    TRY(rnl_alloc(bytes + 1, 1, &version));
    rnl_status status = CL(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, bytes, version, NULL));
    rnl_text_add_bytes(text, version, strlen(version) + 1);
    rnl_free(version);
    return status;
}

/* Each part ends in a NUL, so that no two lists of parts give one text. */
static void add_part(rnl_text *text, const char *part)
{
    rnl_text_add_bytes(text, part, strlen(part) + 1);
}

rnl_status rnl_program_cache_key(const rnl_device *device, const char *source, const char *options, rnl_hash *out_key)
{
    rnl_text text = {0};
    rnl_status status = RNL_OK;
    rnl_text_add(&text, "%u,", RNL_CACHE_FORMAT_VERSION);
    add_part(&text, source);
    add_part(&text, options);
    add_part(&text, device->info.name);
    add_part(&text, device->info.device_version);
    add_part(&text, device->info.driver_version);
    GOTO(add_platform_version(&text, device->platform));
    if (device->info.type == RNL_DEVICE_CPU)
        add_processor(&text);
    GOTO(text.status);
    *out_key = rnl_hash_bytes(text.data, text.length);
done:
    rnl_text_free(&text);
    return status;
}
