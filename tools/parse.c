/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const uint64_t largest_size = UINT64_C(1) << 40;

/* Reads digits at *cursor and moves behind them. */
static bool take_whole(const char **cursor, uint64_t limit, uint64_t *out_number)
{
    uint64_t number = 0;
    const char *text = *cursor;
    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (number > (limit - digit) / 10 || digit > limit)
            return false;
        number = number * 10 + digit;
    }
    *cursor = text;
    *out_number = number;
    return true;
}

bool rnl_parse_whole(const char *text, uint64_t limit, uint64_t *out_number)
{
    *out_number = 0;
    uint64_t number;
    if (!take_whole(&text, limit, &number) || *text)
        return false;
    *out_number = number;
    return true;
}

bool rnl_parse_shape(const char *text, int64_t *out_shape, size_t capacity, size_t *out_rank)
{
    *out_rank = 0;
    for (size_t rank = 0; rank < capacity; rank++) {
        uint64_t size;
        if (!take_whole(&text, largest_size, &size))
            return false;
        out_shape[rank] = (int64_t)size;
        if (!*text) {
            *out_rank = rank + 1;
            return true;
        }
        if (*text != 'x' && *text != 'X')
            return false;
        text++;
    }
    return false;
}

static bool take_real(const char **cursor, double *out_number)
{
    const char *text = *cursor;
    char *end = NULL;
    if (isspace((unsigned char)*text))
        return false;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number))
        return false;
    *cursor = end;
    *out_number = number;
    return true;
}

bool rnl_parse_seconds(const char *text, double limit, double *out_seconds)
{
    double number;
    *out_seconds = 0;
    if (!isdigit((unsigned char)*text) || !take_real(&text, &number) || *text || number > limit)
        return false;
    *out_seconds = number;
    return true;
}

bool rnl_parse_triple(const char *text, double out_triple[3])
{
    double values[3];
    size_t count = 0;
    for (;;) {
        if (count == 3 || !take_real(&text, &values[count]))
            return false;
        count++;
        if (!*text)
            break;
        if (*text++ != ',')
            return false;
    }
    if (count == 2)
        return false;
    for (size_t i = 0; i < 3; i++)
        out_triple[i] = values[count == 3 ? i : 0];
    return true;
}
