/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/native.h"
#include "base/status.h"
#include "device/enumerate.h"
#include <string.h>

#define FAMILY "sm_90"
#define TARGET ".target " FAMILY
#define CAPABILITY 90

bool rnl_native_is_asked(const rnl_device *device, const char *source)
{
    return strstr(source, RNL_NATIVE_MARK) && rnl_device_compute_capability(device) == CAPABILITY;
}

static bool begins(const char *line, size_t length, const char *with)
{
    return length >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* A comment with the mark becomes its instruction, and the family its processor; another line stays as it is. */
static void add_line(rnl_text *text, const char *line, size_t length, bool *out_is_target)
{
    size_t blank = 0;
    while (blank < length && (line[blank] == ' ' || line[blank] == '\t'))
        ++blank;
    const char *word = line + blank;
    const size_t left = length - blank, target = strlen(TARGET), mark = strlen(RNL_NATIVE_MARK);
    if (begins(word, left, RNL_NATIVE_MARK)) {
        rnl_text_add_bytes(text, word + mark, left - mark);
    } else if (begins(word, left, TARGET) && (left == target || !strchr("0123456789a", word[target]))) {
        rnl_text_add(text, "%sa", TARGET);
        rnl_text_add_bytes(text, word + target, left - target);
        *out_is_target = true;
    } else {
        rnl_text_add_bytes(text, line, length);
    }
}

rnl_status rnl_native_translate(const char *ptx, size_t size, rnl_text *out_ptx)
{
    const char *end = memchr(ptx, '\0', size);
    bool is_target = false;
    end = end ? end : ptx + size;
    for (const char *line = ptx; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next + 1 : end;
        add_line(out_ptx, line, (size_t)(next - line), &is_target);
        line = next;
    }
    TRY(out_ptx->status);
    return is_target ? RNL_OK : FAIL(RNL_UNIMPLEMENTED, "the driver's binary is no PTX for " FAMILY);
}
