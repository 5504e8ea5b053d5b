/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel tune copy`: whether plain host memory travels faster through pinned memory, for each direction and size. */
#include "subject.h"

#include <errno.h>
#include <jansson.h>
#include <runnel/memory.h>
#include <string.h>

static const char *const way_names[RNL_COPY_WAYS] = {"direct", "staged_1", "staged_2", "staged_4"};

static void tell(void *user, const rnl_copy_measured *measured, size_t index, size_t count)
{
    json_t *rows = user, *row;
    const char *direction = measured->direction == RNL_COPY_TO_DEVICE ? "to_device" : "to_host";
    if (index == 0)
        printf("GB/s                      %10s %10s %10s %10s\n", way_names[0], way_names[1], way_names[2],
               way_names[3]);
    row = json_pack("{s:s, s:I, s:s}", "direction", direction, "bytes", (json_int_t)measured->size_bytes, "best",
                    way_names[measured->best]);
    printf("%2zu/%zu %9s %7zu KiB", index + 1, count, direction, measured->size_bytes >> 10);
    for (int way = 0; way < RNL_COPY_WAYS; way++) {
        const double gigabytes = (double)measured->size_bytes / measured->ns[way];
        printf(" %10.2f", gigabytes);
        json_object_set_new(row, way_names[way], json_real(gigabytes));
    }
    printf("  %s\n", way_names[measured->best]);
    fflush(stdout);
    if (rows)
        json_array_append(rows, row);
    json_decref(row);
}

static rnl_exit write_json(const rnl_device *device, json_t *rows, const char *path)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *root = json_pack("{s:s, s:O}", "device", rnl_device_get_info(device)->name, "copies", rows);
    const bool written = root && json_dump_file(root, path, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE : rnl_cli_fail("%s: %s", rnl_cli_clean(path, clean, sizeof clean), strerror(errno));
}

static rnl_exit run(const rnl_subject_options *options)
{
    rnl_device *device = NULL;
    json_t *rows = options->json ? json_array() : NULL;
    rnl_exit code = rnl_subject_open(options, &device);
    if (code == RNL_EXIT_DONE && rnl_device_tune_copies(device, tell, rows) != RNL_OK)
        code = rnl_cli_fail_library("measuring copies");
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(device, rows, options->json);
    json_decref(rows);
    rnl_device_release(device);
    return code;
}

const rnl_subject rnl_subject_tune_copy = {
    "tune", "copy", "how copies of plain host memory are fastest, noted for this device", "", NULL, NULL, run};
