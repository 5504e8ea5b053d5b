/* SPDX-License-Identifier: Apache-2.0 */
/* The registry. */
#include "graph/custom.h"

#include "base/memory.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME_BYTES 255

typedef struct kept_text {
    struct kept_text *next;
    char text[];
} kept_text;

struct rnl_registry {
    atomic_uint references;
    pthread_mutex_t lock; /* of what follows */
    rnl_custom_entry *entries;
    kept_text *texts;
};

rnl_status rnl_registry_create(rnl_registry **out_registry)
{
    *out_registry = NULL;
    rnl_registry *registry;
    TRY(rnl_alloc(1, sizeof *registry, &registry));
    atomic_init(&registry->references, 1);
    pthread_mutex_init(&registry->lock, NULL);
    *out_registry = registry;
    return RNL_OK;
}

rnl_registry *rnl_registry_retain(rnl_registry *registry)
{
    if (registry)
        atomic_fetch_add_explicit(&registry->references, 1, memory_order_relaxed);
    return registry;
}

static void free_entry(rnl_custom_entry *entry)
{
    rnl_free(entry->domain);
    rnl_free(entry->op_type);
    rnl_free(entry->name);
    rnl_free(entry->implementation);
    rnl_free(entry);
}

void rnl_registry_release(rnl_registry *registry)
{
    if (!registry || atomic_fetch_sub_explicit(&registry->references, 1, memory_order_acq_rel) != 1)
        return;
    for (rnl_custom_entry *entry = registry->entries, *next; entry; entry = next) {
        next = entry->next;
        if (entry->op.release)
            entry->op.release(entry->op.user);
        free_entry(entry);
    }
    for (kept_text *text = registry->texts, *next; text; text = next) {
        next = text->next;
        rnl_free(text);
    }
    pthread_mutex_destroy(&registry->lock);
    rnl_free(registry);
}

/* ---- Adding --------------------------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
    if (!text || !text[0] || strlen(text) > MAX_NAME_BYTES)
        return false;
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            return false;
    return true;
}

static bool is_ours(const char *domain, const char *op_type)
{
    size_t count;
    const rnl_op_schema *const *rows = rnl_op_list(domain, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i]->op_type, op_type) == 0)
            return true;
    return false;
}

static rnl_status check_names(const rnl_custom_operator *op)
{
    if (!op->domain || !op->domain[0] || strcmp(op->domain, "ai.onnx") == 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "the operator %s is to be of ai.onnx, whose operators are ONNX's: give it a "
                    "domain of your own",
                    op->op_type ? op->op_type : "(no name)");
    if (!is_name(op->domain) || !is_name(op->op_type))
        return FAIL(RNL_INVALID_ARGUMENT,
                    "an operator of the domain %.64s needs a name, both of at most %d bytes and without control "
                    "characters",
                    op->domain, MAX_NAME_BYTES);
    if (is_ours(op->domain, op->op_type))
        return FAIL(RNL_INVALID_ARGUMENT, "the operator %s.%s is one that runnel has itself", op->domain, op->op_type);
    return RNL_OK;
}

static rnl_status check(const rnl_custom_operator *op)
{
    TRY(check_names(op));
    if (op->since_version < 1 || op->since_version > INT_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "the operator %s.%s cannot be of version %lld of its domain: from 1 on",
                    op->domain, op->op_type, (long long)op->since_version);
    if (op->min_inputs > op->max_inputs || op->min_outputs > op->max_outputs || op->min_outputs < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "the operator %s.%s cannot have %u to %u inputs and %u to %u outputs",
                    op->domain, op->op_type, op->min_inputs, op->max_inputs, op->min_outputs, op->max_outputs);
    if (!op->infer)
        return FAIL(RNL_INVALID_ARGUMENT, "the operator %s.%s has no infer callback", op->domain, op->op_type);
    if (!op->plan == !op->compute)
        return FAIL(RNL_INVALID_ARGUMENT, "the operator %s.%s needs a plan callback or a compute callback, and has %s",
                    op->domain, op->op_type, op->plan ? "both" : "neither");
    return RNL_OK;
}

static rnl_status join(const char *prefix, const rnl_custom_operator *op, char **out_text)
{
    const size_t room = strlen(prefix) + strlen(op->domain) + strlen(op->op_type) + 2;
    TRY(rnl_alloc(room, 1, out_text));
    snprintf(*out_text, room, "%s%s.%s", prefix, op->domain, op->op_type);
    return RNL_OK;
}

static rnl_status make_entry(rnl_registry *registry, const rnl_custom_operator *op, rnl_custom_entry **out_entry)
{
    rnl_status status = RNL_OK;
    rnl_custom_entry *entry;
    TRY(rnl_alloc(1, sizeof *entry, &entry));
    GOTO(rnl_strdup(op->domain, &entry->domain));
    GOTO(rnl_strdup(op->op_type, &entry->op_type));
    GOTO(join("", op, &entry->name));
    GOTO(join("custom:", op, &entry->implementation));
    entry->registry = registry;
    entry->op = *op;
    entry->op.domain = entry->domain;
    entry->op.op_type = entry->op_type;
    entry->schema = (rnl_op_schema){.op_type = entry->op_type,
                                    .since = (int)op->since_version,
                                    .until = INT_MAX,
                                    .min_inputs = op->min_inputs,
                                    .max_inputs = op->max_inputs,
                                    .min_outputs = op->min_outputs,
                                    .max_outputs = op->max_outputs,
                                    .shape_inputs = op->contents,
                                    .infer = rnl_custom_infer,
                                    .evaluate = op->compute ? rnl_custom_compute : NULL,
                                    .custom = entry};
    *out_entry = entry;
    entry = NULL;
done:
    if (entry)
        free_entry(entry);
    return status;
}

/* The lock is held. */
static bool is_there(const rnl_registry *registry, const rnl_custom_entry *added)
{
    for (const rnl_custom_entry *entry = registry->entries; entry; entry = entry->next)
        if (strcmp(entry->name, added->name) == 0 && entry->schema.since == added->schema.since &&
            strcmp(entry->op_type, added->op_type) == 0)
            return true;
    return false;
}

rnl_status rnl_registry_add(rnl_registry *registry, const rnl_custom_operator *op)
{
    rnl_custom_operator given = RNL_CUSTOM_OPERATOR_INIT;
    rnl_custom_entry *entry;
    if (!registry || !op)
        return FAIL(RNL_INVALID_ARGUMENT, "the %s is NULL", registry ? "operator to be added" : "registry");
    if (op->struct_size < sizeof op->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "the operator was not initialised with RNL_CUSTOM_OPERATOR_INIT");
    memcpy(&given, op, op->struct_size < sizeof given ? op->struct_size : sizeof given);
    TRY(check(&given));
    TRY(make_entry(registry, &given, &entry));
    pthread_mutex_lock(&registry->lock);
    const bool there = is_there(registry, entry);
    if (!there) {
        entry->next = registry->entries;
        registry->entries = entry;
    }
    pthread_mutex_unlock(&registry->lock);
    if (!there)
        return RNL_OK;
    free_entry(entry);
    return FAIL(RNL_INVALID_ARGUMENT, "the operator %s.%s of version %lld is in the registry already", given.domain,
                given.op_type, (long long)given.since_version);
}

/* ---- Asking --------------------------------------------------------------------------------------------------- */

const rnl_op_schema *rnl_registry_find(rnl_registry *registry, const char *domain, const char *op_type, int64_t opset)
{
    const rnl_op_schema *found = NULL;
    if (!registry)
        return NULL;
    pthread_mutex_lock(&registry->lock);
    for (const rnl_custom_entry *entry = registry->entries; entry; entry = entry->next)
        if (entry->schema.since <= opset && (!found || entry->schema.since > found->since) &&
            strcmp(entry->domain, domain) == 0 && strcmp(entry->op_type, op_type) == 0)
            found = &entry->schema;
    pthread_mutex_unlock(&registry->lock);
    return found;
}

/* The lock is held. */
static rnl_status keep(rnl_registry *registry, const char *text, const char **out_text)
{
    kept_text *kept = registry->texts;
    const size_t bytes = strlen(text) + 1;
    while (kept && strcmp(kept->text, text) != 0)
        kept = kept->next;
    if (!kept) {
        TRY(rnl_alloc(1, sizeof *kept + bytes, &kept));
        memcpy(kept->text, text, bytes);
        kept->next = registry->texts;
        registry->texts = kept;
    }
    *out_text = kept->text;
    return RNL_OK;
}

rnl_status rnl_registry_keep(rnl_registry *registry, const char *text, const char **out_text)
{
    pthread_mutex_lock(&registry->lock);
    const rnl_status status = keep(registry, text, out_text);
    pthread_mutex_unlock(&registry->lock);
    return status;
}
