/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target once on each file of the folders that are given: the corpus as an ordinary test. */
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    void *data;
    size_t size;
    if (rnl_file_read(path, (size_t)64 << 20, &data, &size) != RNL_OK) {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
        return 1;
    }
    uint8_t *exact = realloc(data, size ? size : 1); /* without the NUL behind it, so that a sanitizer sees the end */
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int replay_folder(const char *folder, size_t *count)
{
    DIR *listing = opendir(folder);
    if (!listing) {
        perror(folder);
        return 1;
    }
    int failed = 0;
    for (const struct dirent *entry; !failed && (entry = readdir(listing)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        failed = replay_file(path);
        ++*count;
    }
    closedir(listing);
    return failed;
}

int main(int argument_count, char **arguments)
{
    size_t count = 0;
    for (int i = 1; i < argument_count; i++)
        if (replay_folder(arguments[i], &count))
            return EXIT_FAILURE;
    printf("%zu files\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
