/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <stdarg.h>
#include <string.h>

static char message[RNL_ERROR_MESSAGE_BYTES + 1024];

static void append(const char *format, va_list arguments)
{
    size_t used = strlen(message);
    vsnprintf(message + used, sizeof message - used, format, arguments);
}

static void append_text(const char *format, ...) RNL_PRINTF(1, 2);
static void append_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(format, arguments);
    va_end(arguments);
}

rnl_exit rnl_cli_fail(const char *format, ...)
{
    if (!message[0]) {
        va_list arguments;
        va_start(arguments, format);
        append(format, arguments);
        va_end(arguments);
    }
    return RNL_EXIT_FAILED;
}

rnl_exit rnl_cli_usage(const char *command, const char *format, ...)
{
    if (!message[0]) {
        va_list arguments;
        va_start(arguments, format);
        append(format, arguments);
        va_end(arguments);
        append_text("\ntry: runnel%s%s --help", command[0] ? " " : "", command);
    }
    return RNL_EXIT_USAGE;
}

rnl_exit rnl_cli_fail_library(const char *format, ...)
{
    if (message[0])
        return RNL_EXIT_FAILED;
    const rnl_error *error = rnl_last_error();
    if (error->status == RNL_OK)
        append_text("failed without a reason");
    else
        append_text("%s", error->message);
    if (format[0]) {
        append_text("\n");
        va_list arguments;
        va_start(arguments, format);
        append(format, arguments);
        va_end(arguments);
    }
    return RNL_EXIT_FAILED;
}

const char *rnl_cli_failure(void)
{
    return message;
}

void rnl_cli_failure_clear(void)
{
    message[0] = '\0';
}
