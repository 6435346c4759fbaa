/* A third-party engine: adds, multiplies and takes roots of f64 arrays in memory of its own, and refuses all else. */
#include <bh_component.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct engine {
    const struct bh_registry_table *registry;
    uint32_t space;
    uint64_t *operations;
};

static bh_status fail(struct bh_error_record *error, bh_status status, const char *text) {
    snprintf((char *)error->text, sizeof error->text, "%s", text);
    return error->status = status;
}

static bh_status create(const struct bh_host_table *host, const struct bh_child *children, size_t child_count,
                        void **context, struct bh_error_record *error) {
    struct engine *engine = *context = calloc(1, sizeof *engine);
    (void)children, (void)child_count;
    if (!engine) return fail(error, BH_STATUS_MEMORY, "no memory for the third-party engine");
    engine->operations = host->counter(host->context, "third-party.operations");
    return BH_STATUS_OK;
}

static void destroy(void *context) { free(context); }

static bh_status bind(void *context, const struct bh_registry_table *registry, struct bh_error_record *error) {
    struct engine *engine = context;
    engine->registry = registry;
    (void)error;
    engine->space = registry->new_space(registry->context);
    return BH_STATUS_OK;
}

static void capabilities(void *context, struct bh_capabilities *found) {
    (void)context;
    memset(found, 0, sizeof *found);
    found->parallelism = 1;
}

static int is_system(const bh_instr *instr) { return instr->opcode >= BH_OP_NOP && instr->opcode <= BH_OP_DISCARD; }

static int32_t supports(void *context, const bh_batch *batch, uint32_t index) {
    const bh_block *block = &batch->blocks.data[index];
    (void)context;
    for (uint32_t i = 0; i < block->instr_count; i++) {
        const bh_instr *instr = &batch->instrs.data[batch->block_instrs.data[block->instrs + i]];
        if (is_system(instr)) continue;
        if (instr->opcode != BH_OP_ADD && instr->opcode != BH_OP_MULTIPLY && instr->opcode != BH_OP_SQRT) return 0;
        if (batch->bases.data[batch->views.data[instr->operands[0]].base].dtype != BH_TYPE_F64) return 0;
    }
    return 1;
}

#ifndef BEFORE_TO_HOST
#define BEFORE_TO_HOST
#endif

static bh_status to_host(void *context, void *handle, void *data, size_t bytes, struct bh_error_record *error) {
    (void)context, (void)error;
    BEFORE_TO_HOST;
    memcpy(data, handle, bytes);
    return BH_STATUS_OK;
}

#ifndef LEAKS_COPIES
#define LEAKS_COPIES 0
#endif

static void drop(void *context, void *handle) {
    (void)context;
    if (!LEAKS_COPIES) free(handle);
}

/* This engine's copy of a base, made if need be; a write makes all other copies stale. */
static bh_status copy_of(struct engine *engine, const bh_base *base, uint32_t access, double **copy, bh_error_record *error) {
    const struct bh_registry_table *registry = engine->registry;
    const struct bh_attachment_ops operations = {.struct_size = sizeof operations, .to_host = to_host, .drop = drop};
    int upload = !(access & BH_ACCESS_DISCARD), written = (access & BH_ACCESS_WRITE) != 0;
    bh_loan loan, host;
    bh_status status = registry->acquire(registry->context, base, engine->space, access, &loan, error);
    if (status != BH_STATUS_OK) return status;
    *copy = loan.data;
    registry->release(registry->context, &loan);
    if (*copy) return BH_STATUS_OK;
    if (upload) status = registry->acquire(registry->context, base, BH_HOST_SPACE, BH_ACCESS_READ, &host, error);
    if (status != BH_STATUS_OK) return status;
    *copy = malloc((size_t)base->len * 8 + 1);
    if (*copy && upload) memcpy(*copy, host.data, (size_t)base->len * 8);
    if (upload) registry->release(registry->context, &host);
    if (!*copy) return fail(error, BH_STATUS_MEMORY, "no memory for a copy of an array");
    status = registry->attach(registry->context, base, engine->space, *copy, written, &operations, error);
    if (status != BH_STATUS_OK) free(*copy);
    return status;
}

static int reads(const bh_batch *batch, const bh_instr *instr, uint32_t base) {
    for (int o = 1; o < instr->count; o++)
        if (bh_operand_is_view(instr->operands[o]) && batch->views.data[instr->operands[o]].base == base) return 1;
    return 0;
}

static bh_status run(struct engine *engine, const bh_batch *batch, const bh_instr *instr, bh_error_record *error) {
    double *data[3], constants[3];
    const int64_t *stride[3] = {NULL, NULL, NULL};
    int64_t at[3] = {0, 0, 0}, index[BH_MAX_RANK] = {0};
    const bh_view_record *out = &batch->views.data[instr->operands[0]];
    const int64_t *shape = bh_view_shape(batch, instr->operands[0]);
    for (int o = instr->count - 1; o >= 0; o--) { /* the output last, so that what it reads is still valid */
        uint32_t operand = bh_operand_index(instr->operands[o]);
        data[o] = &constants[o];
        if (!bh_operand_is_view(instr->operands[o])) memcpy(data[o], batch->constants.data[operand].bits, 8);
        if (!bh_operand_is_view(instr->operands[o])) continue;
        const bh_view_record *view = &batch->views.data[operand];
        const bh_base *base = &batch->bases.data[view->base];
        uint32_t access = o > 0 ? BH_ACCESS_READ : BH_ACCESS_WRITE;
        if (o == 0 && view->len == base->len && !reads(batch, instr, view->base)) access |= BH_ACCESS_DISCARD;
        bh_status status = copy_of(engine, base, access, &data[o], error);
        if (status != BH_STATUS_OK) return status;
        stride[o] = bh_view_stride(batch, operand);
        at[o] = view->start;
    }
    for (int64_t n = 0; n < out->len; n++) {
        double a = data[1][at[1]], b = instr->count > 2 ? data[2][at[2]] : 0;
        data[0][at[0]] = instr->opcode == BH_OP_ADD ? a + b : instr->opcode == BH_OP_MULTIPLY ? a * b : sqrt(a);
        for (int d = (int)out->rank - 1; d >= 0; d--) {
            int64_t step = ++index[d] < shape[d] ? 1 : 1 - shape[d];
            for (int o = 0; o < instr->count; o++) at[o] += stride[o] ? step * stride[o][d] : 0;
            if (step == 1) break;
            index[d] = 0;
        }
    }
    __atomic_fetch_add(engine->operations, 1, __ATOMIC_RELAXED);
    return BH_STATUS_OK;
}

static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t count, uint64_t *ticket,
                         bh_report *report, struct bh_error_record *error) {
    (void)report;
    *ticket = 0; /* all work is done on return */
    for (size_t b = 0; b < count; b++) {
        const bh_block *block = &batch->blocks.data[blocks[b]];
        for (uint32_t i = 0; i < block->instr_count; i++) {
            uint32_t index = batch->block_instrs.data[block->instrs + i];
            if (is_system(&batch->instrs.data[index])) continue;
            bh_status status = run(context, batch, &batch->instrs.data[index], error);
            if (status == BH_STATUS_OK) continue;
            error->block = blocks[b], error->instr = index + 1;
            return status;
        }
    }
    return BH_STATUS_OK;
}

static const struct bh_component_table TABLE = {
    .struct_size = sizeof TABLE, .abi_version = BH_ABI_VERSION, .kind = BH_KIND_ENGINE, .name = "third-party",
    .version = "third 1.0", .create = create, .destroy = destroy,
    .capabilities = capabilities, .bind = bind, .supports = supports, .execute = execute,
};

const struct bh_component_table *bh_component_entry(uint32_t version) { return version == BH_ABI_VERSION ? &TABLE : NULL; }
