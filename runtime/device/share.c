/* SPDX-License-Identifier: Apache-2.0 */
#include "device/share.h"

#include "base/status.h"
#include <string.h>
#include <strings.h>

#define NUMA "numa"

/* Moves behind the digits; without one it stays. */
static uint32_t take_number(const char **text)
{
    uint64_t number = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        number = number * 10 + (uint64_t)(**text - '0');
        if (number > RNL_SHARE_ANY - 1)
            number = RNL_SHARE_ANY - 1;
    }
    return (uint32_t)number;
}

static bool parse_units(const char *text, rnl_share *share)
{
    const char *at = text;
    share->kind = RNL_SHARE_UNITS;
    share->count = take_number(&at);
    if (at == text || share->count == 0)
        return false;
    if (*at != '.')
        return *at == '\0';
    const char *digits = ++at;
    share->at = take_number(&at);
    return at != digits && *at == '\0';
}

static bool parse_numa(const char *text, rnl_share *share)
{
    share->kind = RNL_SHARE_NUMA;
    if (*text)
        share->at = take_number(&text);
    return *text == '\0';
}

rnl_status rnl_share_parse(const char *spec, size_t *out_length, rnl_share *out_share)
{
    const char *slash = strrchr(spec, '/');
    const size_t word = strlen(NUMA);
    rnl_share share = {.at = RNL_SHARE_ANY};
    *out_share = (rnl_share){0};
    *out_length = slash ? (size_t)(slash - spec) : strlen(spec);
    if (!slash)
        return RNL_OK;
    const bool numa = strncasecmp(slash + 1, NUMA, word) == 0;
    if (!(numa ? parse_numa(slash + 1 + word, &share) : parse_units(slash + 1, &share)))
        return FAIL(RNL_INVALID_ARGUMENT,
                    "'%s' names no share of a device: behind the '/' stands N (one of N equal shares, N from 1), N.K "
                    "(the K-th of them, K from 0), numa or numaK",
                    spec);
    if (share.kind == RNL_SHARE_UNITS && share.at != RNL_SHARE_ANY && share.at >= share.count)
        return FAIL(RNL_INVALID_ARGUMENT, "'%s': shares of %u are counted from 0 to %u", spec, (unsigned)share.count,
                    (unsigned)share.count - 1);
    *out_share = share;
    return RNL_OK;
}

void rnl_share_range(uint32_t units, uint32_t count, uint32_t at, uint32_t *out_first, uint32_t *out_units)
{
    const uint64_t begin = (uint64_t)units * at / count, end = (uint64_t)units * (at + (uint64_t)1) / count;
    *out_first = (uint32_t)begin;
    *out_units = (uint32_t)(end - begin);
}
