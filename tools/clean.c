/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values come from model files: nothing in them may reach a terminal as a control sequence. */
#include "cli.h"

#include <string.h>

/* Overlong forms and surrogates are not well-formed. */
size_t rnl_cli_character_bytes(const char *start)
{
    const unsigned char *text = (const unsigned char *)start;
    if (text[0] < 0x80)
        return 1;
    size_t count = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < count; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool outside = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return overlong || outside ? 0 : count;
}

static bool is_control(const unsigned char *text)
{
    return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0);
}

const char *rnl_cli_clean(const char *name, char *out_text, size_t capacity)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    const unsigned char *from = (const unsigned char *)name;
    size_t used = 0;
    size_t mark = 0; /* where an ellipsis still fits */
    while (*from) {
        size_t count = rnl_cli_character_bytes((const char *)from);
        bool bad = count == 0 || is_control(from);
        size_t width = bad ? 1 : count;
        if (used + width >= capacity) {
            memcpy(out_text + mark, ellipsis, sizeof ellipsis);
            return out_text;
        }
        if (bad)
            out_text[used] = '?';
        else
            memcpy(out_text + used, from, count);
        used += width;
        from += count ? count : 1;
        if (used + sizeof ellipsis <= capacity)
            mark = used;
    }
    out_text[used] = '\0';
    return out_text;
}
