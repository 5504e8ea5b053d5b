/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/reflection.h"

#include "base/memory.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Names are as long as their authors like. */
#define NAME_BYTES 512

/* ---- Asking ---- */

static bool ask(cl_kernel kernel, cl_uint at, cl_kernel_arg_info what, void *out_value, size_t bytes)
{
    return RNL_CL_RUN(clGetKernelArgInfo(kernel, at, what, bytes, out_value, NULL)) == CL_SUCCESS;
}

static char letter_of(cl_kernel_arg_address_qualifier space)
{
    switch (space) {
    case CL_KERNEL_ARG_ADDRESS_GLOBAL:
        return 'g';
    case CL_KERNEL_ARG_ADDRESS_CONSTANT:
        return 'c';
    case CL_KERNEL_ARG_ADDRESS_LOCAL:
        return 'l';
    default:
        return 'p';
    }
}

static bool add_arg(cl_kernel kernel, cl_uint at, rnl_text *out)
{
    cl_kernel_arg_address_qualifier space = 0;
    cl_kernel_arg_type_qualifier qualifiers = 0;
    char type[NAME_BYTES] = "", name[NAME_BYTES] = "";
    if (!ask(kernel, at, CL_KERNEL_ARG_ADDRESS_QUALIFIER, &space, sizeof space) ||
        !ask(kernel, at, CL_KERNEL_ARG_TYPE_QUALIFIER, &qualifiers, sizeof qualifiers) ||
        !ask(kernel, at, CL_KERNEL_ARG_TYPE_NAME, type, sizeof type - 1) ||
        !ask(kernel, at, CL_KERNEL_ARG_NAME, name, sizeof name - 1) || !name[0] || strpbrk(type, "\t\n") ||
        strpbrk(name, "\t\n"))
        return false;
    rnl_text_add(out, "%c\t%s%s%s\t%s\t%s\n", letter_of(space), qualifiers & CL_KERNEL_ARG_TYPE_CONST ? "c" : "",
                 qualifiers & CL_KERNEL_ARG_TYPE_RESTRICT ? "r" : "",
                 qualifiers & CL_KERNEL_ARG_TYPE_VOLATILE ? "v" : "", type, name);
    return true;
}

static bool add_kernel(cl_kernel kernel, rnl_text *out)
{
    char name[NAME_BYTES] = "";
    cl_uint count = 0;
    if (RNL_CL_RUN(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL)) != CL_SUCCESS ||
        RNL_CL_RUN(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL)) != CL_SUCCESS)
        return false;
    rnl_text_add(out, "kernel %s\n", name);
    bool known = true;
    for (cl_uint i = 0; i < count && known; i++)
        known = add_arg(kernel, i, out);
    return known;
}

static rnl_status list_kernels(cl_program program, cl_kernel **out_kernels, cl_uint *out_count)
{
    cl_uint count = 0;
    *out_kernels = NULL;
    *out_count = 0;
    if (RNL_CL_RUN(clCreateKernelsInProgram(program, 0, NULL, &count)) != CL_SUCCESS || count == 0)
        return RNL_OK;
    TRY(rnl_alloc(count, sizeof **out_kernels, out_kernels));
    if (RNL_CL_RUN(clCreateKernelsInProgram(program, count, *out_kernels, NULL)) == CL_SUCCESS)
        *out_count = count;
    return RNL_OK;
}

rnl_status rnl_reflection_get(const rnl_device *device, cl_program program, rnl_text *out_text)
{
    cl_kernel *kernels;
    cl_uint count;
    bool known = true;
    (void)device;
    rnl_text_add(out_text, "%s", "");
    TRY(list_kernels(program, &kernels, &count));
    for (cl_uint i = 0; i < count; i++) {
        known = known && add_kernel(kernels[i], out_text);
        clReleaseKernel(kernels[i]);
    }
    rnl_free(kernels);
    TRY(out_text->status);
    if (!known) {
        out_text->length = 0;
        out_text->data[0] = '\0';
    }
    return RNL_OK;
}

rnl_status rnl_reflection_names(cl_program program, rnl_text *out_names)
{
    size_t bytes = 0;
    cl_uint count = 0;
    char *names;
    rnl_text_add(out_names, "%s", "");
    /* NVIDIA's driver crashes when it is asked for the names of none. */
    if (RNL_CL_RUN(clCreateKernelsInProgram(program, 0, NULL, &count)) != CL_SUCCESS || count == 0)
        return out_names->status;
    if (RNL_CL_RUN(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &bytes)) != CL_SUCCESS)
        return out_names->status;
    TRY(rnl_alloc(bytes + 1, 1, &names));
    if (RNL_CL_RUN(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, bytes, names, NULL)) == CL_SUCCESS)
        for (const char *at = names; *at; at += strspn(at, ";")) {
            const size_t length = strcspn(at, ";");
            rnl_text_add(out_names, "%s%.*s", out_names->length > 0 ? ", " : "", (int)length, at);
            at += length;
        }
    rnl_free(names);
    return out_names->status;
}

/* ---- Reading ---- */

/* Cuts a field off: up to `end`, which becomes its NUL. */
static char *cut(char **rest, char end)
{
    char *field = *rest, *stop = strchr(field, end);
    if (!stop)
        return NULL;
    *stop = '\0';
    *rest = stop + 1;
    return field;
}

static bool read_arg(char **rest, rnl_kernel_arg_info *out)
{
    const char *space = cut(rest, '\t'), *qualifiers = space ? cut(rest, '\t') : NULL;
    out->type = qualifiers ? cut(rest, '\t') : NULL;
    out->name = out->type ? cut(rest, '\n') : NULL;
    if (!out->name)
        return false;
    out->space = *space == 'g'   ? RNL_SPACE_GLOBAL
                 : *space == 'c' ? RNL_SPACE_CONSTANT
                 : *space == 'l' ? RNL_SPACE_LOCAL
                                 : RNL_SPACE_PRIVATE;
    out->is_const = strchr(qualifiers, 'c');
    out->is_restrict = strchr(qualifiers, 'r');
    out->is_volatile = strchr(qualifiers, 'v');
    return true;
}

/* The line behind "kernel NAME"; NULL when there is none. */
static char *find_kernel(char *text, const char *kernel)
{
    const size_t length = strlen(kernel);
    for (char *at = text; *at;) {
        char *end = strchr(at, '\n');
        if (!end)
            return NULL;
        if (strncmp(at, "kernel ", 7) == 0 && (size_t)(end - at) == 7 + length && memcmp(at + 7, kernel, length) == 0)
            return end + 1;
        at = end + 1;
    }
    return NULL;
}

rnl_status rnl_reflection_find(const char *text, const char *kernel, uint32_t arg_count, rnl_reflected *out_reflected)
{
    rnl_reflected found = {0};
    rnl_status status = RNL_OK;
    *out_reflected = found;
    GOTO(rnl_strdup(text ? text : "", &found.text));
    GOTO(rnl_alloc(arg_count, sizeof *found.items, &found.items));
    char *rest = find_kernel(found.text, kernel);
    for (uint32_t i = 0; rest && i < arg_count; i++)
        if (strncmp(rest, "kernel ", 7) == 0 || !read_arg(&rest, &found.items[i]))
            rest = NULL;
    if (rest && (*rest == '\0' || strncmp(rest, "kernel ", 7) == 0)) {
        *out_reflected = found;
        return RNL_OK;
    }
done:
    rnl_reflected_free(&found);
    return status;
}

void rnl_reflected_free(rnl_reflected *reflected)
{
    rnl_free(reflected->text);
    rnl_free(reflected->items);
    *reflected = (rnl_reflected){0};
}

size_t rnl_reflection_type_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},  {"int", 4},
                 {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t length = strlen(types[i].name);
        if (strncmp(type, types[i].name, length) != 0)
            continue;
        char *end;
        const char *lanes = type + length;
        const unsigned long count = isdigit((unsigned char)*lanes) ? strtoul(lanes, &end, 10) : 1;
        if (!*lanes)
            return types[i].bytes;
        if (isdigit((unsigned char)*lanes) && !*end && count >= 2 && count <= 16)
            return types[i].bytes * (count == 3 ? 4 : count);
    }
    return 0;
}
