/* A bh engine in C: adds, subtracts, multiplies and divides f64 arrays in memory of its own, and leaves everything else
 * to the engine below it. Copy it and replace `compute`. The numbers E-… are those of docs/engines.md. */
#include "bh_component.h"
#include <stdlib.h>

typedef struct {
    const bh_registry_table *registry;
    uint32_t space;         /* the registry's number for this engine's memory */
    uint64_t *instructions; /* a counter that `bh run --profile` shows */
} engine;

static bh_status no_memory(bh_error_record *error) {
    strcpy((char *)error->text, "kit: out of memory");
    return error->status = BH_STATUS_MEMORY;
}

/* What the registry does with a copy in this engine's memory (E-24). The handle is the memory's address. */
static bh_status to_host(void *context, void *handle, void *data, size_t bytes, bh_error_record *error) {
    (void)context, (void)error;
    memcpy(data, handle, bytes);
    return BH_OK;
}
static void drop(void *context, void *handle) { (void)context, free(handle); }
static const bh_attachment_ops OPERATIONS = {.struct_size = sizeof(bh_attachment_ops), .to_host = to_host, .drop = drop};

/* The base's copy here, brought from the host if need be (E-21, E-22). Scratch for contracted bases: E-16. */
static bh_status borrow(engine *self, const bh_base *base, uint32_t access, double **data, bh_error_record *error) {
    bh_loan here, there;
    bh_status status = self->registry->acquire(self->registry->context, base, self->space, access, &here, error);
    if (status != BH_OK) return status;
    self->registry->release(self->registry->context, &here); /* calls are serialised: it stays until we return */
    if ((*data = here.data) != NULL) return BH_OK;
    size_t bytes = (size_t)base->len * sizeof(double);
    if ((*data = malloc(bytes + 1)) == NULL) return no_memory(error);
    if (!(access & BH_ACCESS_DISCARD)) {
        status = self->registry->acquire(self->registry->context, base, BH_HOST_SPACE, BH_ACCESS_READ, &there, error);
        if (status != BH_OK) return free(*data), status;
        memcpy(*data, there.data, bytes);
        self->registry->release(self->registry->context, &there);
    }
    status = self->registry->attach(self->registry->context, base, self->space, *data, 0, &OPERATIONS, error);
    return status != BH_OK ? free(*data), status : BH_OK;
}
static int is_system(bh_opcode opcode) { return opcode >= BH_OP_NOP && opcode <= BH_OP_DISCARD; }
/* Does the view cover its base, so that writing it leaves nothing of the old values? */
static int covers(const bh_batch *batch, uint32_t view) {
    const bh_view_record *record = &batch->views.data[view];
    const int64_t *shape = bh_view_shape(batch, view), *stride = bh_view_stride(batch, view);
    int64_t next = 1;
    for (uint32_t d = record->rank; d-- > 0; next *= shape[d])
        if (shape[d] != 1 && stride[d] != next) return 0;
    return record->start == 0 && record->len == batch->bases.data[record->base].len;
}

/* One instruction: all operands have the shape of the output (E-13). */
static bh_status compute(engine *self, const bh_batch *batch, const bh_instr *instr, bh_error_record *error) {
    double *data[3], constant[3];
    int64_t offset[3] = {0, 0, 0}, index[BH_MAX_RANK] = {0};
    uint32_t out = bh_operand_index(instr->operands[0]);
    const int64_t *stride[3] = {NULL, NULL, NULL}, *shape = bh_view_shape(batch, out);
    if (batch->views.data[out].len == 0) return BH_OK; /* nothing to do, so nothing to borrow (E-92) */
    for (int k = 2; k >= 0; k--) { /* the output last, so that what it still needs is read before it is claimed */
        uint32_t at = bh_operand_index(instr->operands[k]);
        if (!bh_operand_is_view(instr->operands[k])) {
            data[k] = memcpy(&constant[k], batch->constants.data[at].bits, sizeof constant[k]);
            continue;
        }
        uint32_t access = k > 0 ? BH_ACCESS_READ : BH_ACCESS_WRITE | (covers(batch, at) ? BH_ACCESS_DISCARD : 0);
        bh_status status = borrow(self, &batch->bases.data[batch->views.data[at].base], access, &data[k], error);
        if (status != BH_OK) return status;
        offset[k] = batch->views.data[at].start, stride[k] = bh_view_stride(batch, at);
    }
    for (int64_t left = batch->views.data[out].len; left > 0; left--) {
        double a = data[1][offset[1]], b = data[2][offset[2]];
        data[0][offset[0]] = instr->opcode == BH_OP_ADD ? a + b : instr->opcode == BH_OP_SUBTRACT ? a - b
                             : instr->opcode == BH_OP_MULTIPLY ? a * b : a / b;
        for (uint32_t d = batch->views.data[out].rank; d-- > 0;) { /* the next element in C order */
            int wraps = ++index[d] == shape[d];
            for (int k = 0; k < 3; k++)
                if (stride[k]) offset[k] += wraps ? stride[k][d] * (1 - shape[d]) : stride[k][d];
            if (!wraps) break;
            index[d] = 0;
        }
    }
    ++*self->instructions; /* calls are serialised, and nobody else counts here */
    const bh_base *base = &batch->bases.data[batch->views.data[out].base]; /* now only this copy is right (E-23) */
    return self->registry->attach(self->registry->context, base, self->space, data[0], 1, &OPERATIONS, error);
}

/* E-11: what this engine takes. Everything it does not know, it refuses. */
static int32_t supports(void *context, const bh_batch *batch, uint32_t block) {
    const bh_block *found = &batch->blocks.data[block];
    if ((void)context, found->rename_count != 0) return 0; /* E-18 */
    for (uint32_t i = 0; i < found->instr_count; i++) {
        const bh_instr *instr = &batch->instrs.data[batch->block_instrs.data[found->instrs + i]];
        if (is_system(instr->opcode)) continue;
        if (instr->opcode < BH_OP_ADD || instr->opcode > BH_OP_DIVIDE) return 0;
        for (int k = 0; k < instr->count; k++) {
            uint32_t at = bh_operand_index(instr->operands[k]);
            uint8_t type = bh_operand_is_view(instr->operands[k])
                               ? batch->bases.data[batch->views.data[at].base].dtype : batch->constants.data[at].dtype;
            if (type != BH_TYPE_F64) return 0;
        }
    }
    return 1;
}

static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t block_count,
                         uint64_t *ticket, bh_report *report, bh_error_record *error) {
    (void)report;
    *ticket = 0; /* E-31: the work is done when this returns */
    size_t count = block_count ? block_count : batch->blocks.len; /* E-12 */
    for (size_t i = 0; i < count; i++) {
        const bh_block *block = &batch->blocks.data[block_count ? blocks[i] : i];
        for (uint32_t k = 0; k < block->instr_count; k++) {
            uint32_t at = batch->block_instrs.data[block->instrs + k];
            if (is_system(batch->instrs.data[at].opcode)) continue; /* E-15 */
            bh_status status = compute(context, batch, &batch->instrs.data[at], error);
            if (status == BH_OK) continue;
            error->block = block_count ? blocks[i] : (uint32_t)i, error->instr = at + 1; /* E-40: where it stopped */
            return status;
        }
    }
    return BH_OK;
}

static void capabilities(void *context, bh_capabilities *found) { /* E-8: say it yourself */
    (void)context;
    *found = (bh_capabilities){.parallelism = 1, .bandwidth = 5e9, .launch_seconds = 1e-6};
}
static bh_status bind(void *context, const bh_registry_table *registry, bh_error_record *error) {
    engine *self = context;
    (void)error, self->registry = registry, self->space = registry->new_space(registry->context);
    return BH_OK;
}
static bh_status create(const bh_host_table *host, const struct bh_child *children, size_t child_count, void **context,
                        bh_error_record *error) {
    engine *self = calloc(1, sizeof *self);
    (void)children, (void)child_count; /* the host itself sends refused blocks to the first child */
    if (self == NULL) return no_memory(error);
    self->instructions = host->counter(host->context, "instructions"), *context = self;
    return BH_OK;
}

static const bh_component_table TABLE = {
    .struct_size = sizeof(bh_component_table), .abi_version = BH_ABI_VERSION, .kind = BH_KIND_ENGINE, .name = "kit",
    .version = "kit 0.1.0", .create = create, .destroy = free, .capabilities = capabilities, .bind = bind,
    .supports = supports, .execute = execute,
};
const bh_component_table *bh_component_entry(uint32_t version) { return version == BH_ABI_VERSION ? &TABLE : NULL; }
