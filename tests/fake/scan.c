/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the heads of kernels in preprocessed text: names, required groups, and what parameters are. */
#include "fake/fake.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* True when the text at `at` is this word, and all of it. */
static bool is_word(const char *at, const char *word)
{
    size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && !is_name_char(at[length]);
}

static char *skip_space(char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static char *skip_word(char *at)
{
    while (is_name_char(*at))
        at++;
    return at;
}

/* Behind the parenthesis that closes the one at `at`. */
static char *skip_parentheses(char *at)
{
    int depth = 0;
    do {
        depth += (*at == '(') - (*at == ')');
    } while (*at++ && depth > 0);
    return at;
}

/* The end of a word or of a quoted text or of one other character. */
static char *skip_token(char *at)
{
    if (is_name_char(*at))
        return skip_word(at);
    if (*at != '"' && *at != '\'')
        return at + 1;
    char quote = *at++;
    while (*at && *at != quote)
        at += *at == '\\' && at[1] ? 2 : 1;
    return at + (*at != '\0');
}

/* reqd_work_group_size(a, b, c), where they are plain numbers. */
static void read_group(char *at, size_t *group)
{
    at = skip_space(skip_word(at));
    for (int i = 0; i < 3; i++) {
        group[i] = strtoul(at + 1, &at, 10);
        at = skip_space(at);
    }
    if (*at != ')' || group[0] == 0)
        memset(group, 0, 3 * sizeof *group);
}

/* ---- Parameters ---- */

static bool has_word(const char *text, const char *word)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_name_char(at[-1])) && !is_name_char(at[strlen(word)]))
            return true;
    return false;
}

/* Bytes of a type by its name, "uint4"; 0 for a name that OpenCL C has not. */
static size_t value_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},   {"int", 4},
                 {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"size_t", 8}, {"double", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i].name), count = 0;
        if (strncmp(type, types[i].name, length) != 0)
            continue;
        if (type[length] == '\0')
            return types[i].bytes;
        count = strtoul(type + length, NULL, 10);
        if (count == 2 || count == 3 || count == 4 || count == 8 || count == 16)
            return types[i].bytes * (count == 3 ? 4 : count);
    }
    return 0;
}

static bool is_qualifier(const char *word)
{
    static const char *const words[] = {"__global", "global",     "__local",      "local",  "__constant",
                                        "constant", "__private",  "private",      "const",  "restrict",
                                        "volatile", "__restrict", "__restrict__", "__const"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* The last word is the name, the others that are no qualifiers make the type. */
static void name_parameter(char *text, fake_parameter *parameter)
{
    char *last = text + strlen(text), *type = calloc(1, strlen(text) + 2), *to = type;
    while (last > text && !is_name_char(last[-1]))
        last--;
    last[0] = '\0';
    while (last > text && is_name_char(last[-1]))
        last--;
    parameter->name = strdup(last);
    *last = '\0';
    for (char *at = skip_space(text), *end; type && *at; at = skip_space(end)) {
        end = skip_token(at);
        char kept = *end;
        *end = '\0';
        if (!is_qualifier(at))
            to += strlen(strcpy(to, at));
        *end = kept;
    }
    parameter->type = type;
    if (!type || !parameter->name)
        abort();
}

static fake_parameter read_parameter(char *text)
{
    fake_parameter parameter = {.address = CL_KERNEL_ARG_ADDRESS_PRIVATE};
    bool pointer = strchr(text, '*') != NULL;
    if (has_word(text, "__local") || has_word(text, "local"))
        parameter.address = CL_KERNEL_ARG_ADDRESS_LOCAL;
    else if (has_word(text, "__constant") || has_word(text, "constant"))
        parameter.address = CL_KERNEL_ARG_ADDRESS_CONSTANT;
    else if (pointer)
        parameter.address = CL_KERNEL_ARG_ADDRESS_GLOBAL;
    name_parameter(text, &parameter);
    if (parameter.address == CL_KERNEL_ARG_ADDRESS_LOCAL)
        parameter.kind = FAKE_ARG_LOCAL;
    else if (pointer)
        parameter.kind = FAKE_ARG_MEMORY;
    else
        parameter.bytes = value_bytes(parameter.type);
    return parameter;
}

/* `text` is what stands between the parentheses; it is taken apart. */
static void read_parameters(char *text, fake_function *function)
{
    text = skip_space(text);
    if (!*text || is_word(text, "void"))
        return;
    while (text) {
        char *comma = text;
        while (*comma && *comma != ',')
            comma = *comma == '(' ? skip_parentheses(comma) : comma + 1;
        char *next = *comma ? comma + 1 : NULL;
        *comma = '\0';
        size_t count = function->parameter_count + 1;
        fake_parameter *grown = realloc(function->parameters, count * sizeof *grown);
        if (!grown)
            abort();
        grown[count - 1] = read_parameter(text);
        function->parameters = grown;
        function->parameter_count = (cl_uint)count;
        text = next;
    }
}

/* ---- Functions ---- */

/* Reads the head behind the word kernel; returns where to go on. */
static char *read_head(char *at, size_t *group, fake_function **list)
{
    while (*at && *at != ';' && *at != '{') {
        at = skip_space(at);
        char *end = skip_token(at), *next = skip_space(end);
        if (is_word(at, "__attribute__")) {
            char *wish = strstr(at, "reqd_work_group_size");
            end = skip_parentheses(next);
            if (wish && wish < end)
                read_group(wish, group);
        } else if (is_name_char(*at) && *next == '(') {
            char *close = skip_parentheses(next);
            fake_function *function = calloc(1, sizeof *function);
            if (!function || !(function->name = strndup(at, (size_t)(end - at))))
                abort();
            memcpy(function->group, group, sizeof function->group);
            close[-1] = '\0';
            read_parameters(next + 1, function);
            function->next = *list;
            *list = function;
            return close;
        }
        at = end;
    }
    return at;
}

fake_function *fake_find_functions(char *text)
{
    fake_function *list = NULL;
    size_t group[3] = {0};
    for (char *at = text; *at;) {
        if (is_word(at, "reqd_work_group_size"))
            read_group(at, group);
        if (is_word(at, "__kernel") || is_word(at, "kernel")) {
            at = read_head(skip_word(at), group, &list);
            memset(group, 0, sizeof group);
        } else {
            at = skip_token(at);
        }
    }
    return list;
}
