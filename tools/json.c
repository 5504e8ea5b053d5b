/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

#include <stdlib.h>
#include <string.h>

/* Three bytes for each bad one. */
static char *mend(const char *text)
{
    size_t length = strlen(text);
    char *mended = length < SIZE_MAX / 3 - 1 ? malloc(length * 3 + 1) : NULL;
    if (!mended)
        return NULL;
    size_t used = 0;
    while (*text) {
        size_t count = rnl_cli_character_bytes(text);
        if (count)
            memcpy(mended + used, text, count);
        else
            memcpy(mended + used, "\xef\xbf\xbd", 3);
        used += count ? count : 3;
        text += count ? count : 1;
    }
    mended[used] = '\0';
    return mended;
}

json_t *rnl_json_text(const char *text)
{
    json_t *string = json_string(text ? text : "");
    if (string)
        return string;
    char *mended = mend(text);
    string = mended ? json_string(mended) : NULL;
    free(mended);
    return string;
}

rnl_exit rnl_json_print(json_t *root)
{
    if (!root)
        return rnl_cli_fail("out of memory");
    int result = json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
    return result == 0 ? RNL_EXIT_DONE : rnl_cli_fail("standard output cannot be written");
}
