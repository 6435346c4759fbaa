/* A bh filter in C: passes every batch on as it is, counts its instructions, and logs a line for every so many
 * batches (seen with BH_LOG=info). Copy it and rewrite the batch in `execute`. The numbers E-… are those of docs/engines.md. */
#include "bh_component.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const bh_host_table *host;
    struct bh_child child;
    uint64_t *instructions; /* shown by `bh run --profile` as count.instructions */
    long log_every, batches;
} filter;

static const char *const KEYS[] = {"log_every", NULL};

static bh_status fail(bh_error_record *error, bh_status status, const char *text) {
    snprintf((char *)error->text, sizeof error->text, "%s", text);
    return error->status = status;
}

static bh_status create(const bh_host_table *host, const struct bh_child *children, size_t child_count, void **context,
                        bh_error_record *error) {
    const char *every = host->config(host->context, "log_every");
    long log_every = every != NULL ? strtol(every, NULL, 10) : 1;
    filter *self;
    if (child_count != 1) return fail(error, BH_STATUS_INIT, "a filter needs one component below it");
    if (log_every < 1) return fail(error, BH_STATUS_CONFIG, "config key 'log_every' must be a number from 1");
    if ((self = calloc(1, sizeof *self)) == NULL) return fail(error, BH_STATUS_MEMORY, "out of memory");
    self->host = host;
    self->child = children[0];
    self->instructions = host->counter(host->context, "instructions");
    self->log_every = log_every;
    *context = self;
    return BH_OK;
}

/* The tables are lent and read-only (E-10). To rewrite, fill tables of your own, and a bh_batch that refers to them, and
 * pass that on; it must be a valid batch with the same effect on every base that is LIVE_OUT (E-50). The host checks. */
static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t block_count,
                         uint64_t *ticket, bh_report *report, bh_error_record *error) {
    filter *self = context;
    size_t work = 0;
    for (size_t i = 0; i < batch->instrs.len; i++) {
        bh_opcode opcode = batch->instrs.data[i].opcode;
        work += opcode < BH_OP_NOP || opcode >= BH_OP_FIRST_EXTENSION; /* not SYNC, FREE, DISCARD */
    }
    *self->instructions += work; /* calls are serialised, and nobody else counts here */
    if (++self->batches % self->log_every == 0) {
        char line[96];
        snprintf(line, sizeof line, "a batch of %zu operations on %zu arrays", work, batch->bases.len);
        self->host->log(self->host->context, BH_LOG_INFO, line);
    }
    return self->child.table->execute(self->child.context, batch, blocks, block_count, ticket, report, error);
}

/* Slots that are left out go to the child: capabilities, map, wait and so on. */
static const bh_component_table TABLE = {
    .struct_size = sizeof(bh_component_table),
    .abi_version = BH_ABI_VERSION,
    .kind = BH_KIND_FILTER,
    .name = "count",
    .version = "count 0.1.0",
    .keys = KEYS,
    .create = create,
    .destroy = free,
    .execute = execute,
};

const bh_component_table *bh_component_entry(uint32_t version) { return version == BH_ABI_VERSION ? &TABLE : NULL; }
