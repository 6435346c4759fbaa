/* The third-party engine with one rule of conduct broken, by the number WRONG; 0 breaks none. */
#ifndef WRONG
#define WRONG 0
#endif
#define LEAKS_COPIES (WRONG == LEAKS)
enum {
    RETIRES_NOTHING = 1, IGNORES_RENAMES, KEEPS_LOANS, RETIRES_TWICE, RETIRES_WILDLY, REVERSES, SUPPORTS_AT_RANDOM,
    UNKNOWN_ACCESS, NAN_CAPABILITIES, FALSE_FAMILY, NO_NAME, ENDLESS_NAME, LEAVES_A_THREAD, CHANGES_DIRECTORY,
    HANDLES_SIGNALS, PRINTS, LEAKS, THROWS, CRASHES, EXITS, HANGS, RELEASES_TWICE, EVALUATES_WRONGLY,
    FORETELLS_NO_NUMBER, REPORTS_NO_NUMBER, SERVES_THE_PROGRAM, WRITES_WHAT_IT_READS, NEVER_DONE, CLAIMS_METHODS,
    THROWS_FROM_COPIES
};
#include <unwind.h>
static struct _Unwind_Exception exception;
#define BEFORE_TO_HOST if (WRONG == THROWS_FROM_COPIES) _Unwind_RaiseException(&exception)
#define bh_component_entry third_party_entry
#include "third_party.c"
#undef bh_component_entry
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void *sleep_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

static void handle(int number) { (void)number; }

static bh_status wrong_create(const struct bh_host_table *host, const struct bh_child *children, size_t child_count,
                              void **context, struct bh_error_record *error) {
    pthread_t thread;
    if (WRONG == LEAVES_A_THREAD) pthread_create(&thread, NULL, sleep_for_ever, NULL);
    if (WRONG == CHANGES_DIRECTORY && chdir("/")) return fail(error, BH_STATUS_DEVICE, "chdir");
    if (WRONG == HANDLES_SIGNALS) signal(SIGUSR1, handle);
    if (WRONG == PRINTS) fprintf(stderr, "third-party: hello\n");
    return create(host, children, child_count, context, error);
}

static void wrong_capabilities(void *context, struct bh_capabilities *found) {
    capabilities(context, found);
    if (WRONG == NAN_CAPABILITIES) found->bandwidth = NAN;
    if (WRONG == RETIRES_NOTHING || WRONG == RETIRES_TWICE || WRONG == RETIRES_WILDLY)
        found->flags |= BH_CAPABILITY_RETIRES_BLOCKS;
    if (WRONG == NEVER_DONE) found->flags |= BH_CAPABILITY_RETIRES_BLOCKS | BH_CAPABILITY_ASYNCHRONOUS;
    if (WRONG == IGNORES_RENAMES) found->flags |= BH_CAPABILITY_RENAMES;
    if (WRONG == EVALUATES_WRONGLY) found->flags |= BH_CAPABILITY_EVALUATES;
    if (WRONG == SERVES_THE_PROGRAM) found->flags |= BH_CAPABILITY_SERVES;
}

/* Blocks with renames that the engine can take, but for the renames. */
static int is_renaming(const bh_batch *batch, uint32_t index) {
    const bh_block *block = &batch->blocks.data[index];
    for (uint32_t i = 0; i < block->instr_count; i++) {
        const bh_instr *instr = &batch->instrs.data[batch->block_instrs.data[block->instrs + i]];
        if (is_system(instr)) continue;
        if (instr->opcode != BH_OP_ADD && instr->opcode != BH_OP_MULTIPLY && instr->opcode != BH_OP_COPY) return 0;
        for (int k = 0; k < instr->count; k++) {
            uint32_t at = bh_operand_index(instr->operands[k]);
            uint8_t type = bh_operand_is_view(instr->operands[k])
                               ? batch->bases.data[batch->views.data[at].base].dtype : batch->constants.data[at].dtype;
            if (type != BH_TYPE_F64) return 0;
        }
    }
    return block->rename_count > 0;
}

static int32_t wrong_supports(void *context, const bh_batch *batch, uint32_t index) {
    static uint32_t asked;
    /* The engine itself knows nothing of renames: it refuses blocks that need them, as others must. */
    if (WRONG != IGNORES_RENAMES && batch->blocks.data[index].rename_count) return 0;
    if (WRONG == IGNORES_RENAMES && is_renaming(batch, index)) return 1;
    if (!supports(context, batch, index)) return 0;
    return WRONG == SUPPORTS_AT_RANDOM ? (++asked * 2654435761u >> 16 & 3) != 0 : 1;
}

/* Acquires a base in a way that breaks a rule. */
static void acquire_wrongly(struct engine *engine, const bh_batch *batch, bh_error_record *error) {
    const struct bh_registry_table *registry = engine->registry;
    bh_loan loan;
    uint32_t access = WRONG == UNKNOWN_ACCESS ? BH_ACCESS_READ | 64 : BH_ACCESS_READ;
    if (!batch->bases.len) return;
    if (registry->acquire(registry->context, &batch->bases.data[0], BH_HOST_SPACE, access, &loan, error)) return;
    if (WRONG != KEEPS_LOANS) registry->release(registry->context, &loan);
    if (WRONG == RELEASES_TWICE) registry->release(registry->context, &loan);
}

/* Changes what it has acquired for reading. */
static void change_what_is_read(struct engine *engine, const bh_batch *batch, bh_error_record *error) {
    const struct bh_registry_table *registry = engine->registry;
    bh_loan loan;
    for (size_t i = 0; i < batch->bases.len; i++) {
        if (registry->acquire(registry->context, &batch->bases.data[i], BH_HOST_SPACE, BH_ACCESS_READ, &loan, error)) continue;
        if (batch->bases.data[i].dtype == BH_TYPE_F64 && loan.bytes) ((double *)loan.data)[0] += 1;
        registry->release(registry->context, &loan);
    }
}

static bh_status wrong_execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t count,
                               uint64_t *ticket, bh_report *report, struct bh_error_record *error) {
    struct engine *engine = context;
    const struct bh_registry_table *registry = engine->registry;
    bh_status status = BH_STATUS_OK;
    if (WRONG == THROWS) _Unwind_RaiseException(&exception);
    volatile int *volatile nowhere = NULL;
    if (WRONG == CRASHES) *nowhere = 1;
    if (WRONG == EXITS) _exit(3);
    if (WRONG == HANGS) sleep_for_ever(NULL);
    if (WRONG == KEEPS_LOANS || WRONG == UNKNOWN_ACCESS || WRONG == RELEASES_TWICE) acquire_wrongly(engine, batch, error);
    if (WRONG == REVERSES) {
        for (size_t b = count; b-- > 0 && !status;)
            status = execute(context, batch, &blocks[b], 1, ticket, report, error);
        return status;
    }
    if (WRONG == WRITES_WHAT_IT_READS) change_what_is_read(engine, batch, error);
    status = execute(context, batch, blocks, count, ticket, report, error);
    if (WRONG == REPORTS_NO_NUMBER && report) report->running_seconds = NAN;
    if (WRONG == NEVER_DONE && !status) {
        for (size_t b = 0; b < count; b++) registry->block_done(registry->context, batch, blocks[b]);
        *ticket = 1;
    }
    if (WRONG == RETIRES_TWICE || WRONG == RETIRES_WILDLY)
        for (size_t b = 0; b < count && !status; b++)
            for (int twice = 0; twice < 2; twice++)
                registry->block_done(registry->context, batch, WRONG == RETIRES_WILDLY && twice ? 1u << 20 : blocks[b]);
    return status;
}

static bh_status evaluate_wrongly(void *context, const bh_scalar_operation *operation, bh_evaluation *answer,
                                  struct bh_error_record *error) {
    (void)context, (void)error;
    if (operation->opcode != BH_OP_ADD || operation->dtype != BH_TYPE_F64) return BH_STATUS_OK;
    double a, b;
    memcpy(&a, operation->inputs.data[0].bits, 8), memcpy(&b, operation->inputs.data[1].bits, 8);
    a += b + 1;
    answer->value = operation->inputs.data[0];
    memcpy(answer->value.bits, &a, 8);
    answer->known = 1;
    return BH_STATUS_OK;
}

static bh_status foretell_no_number(void *context, const bh_batch *batch, const uint32_t *blocks, size_t count,
                                    bh_prediction *prediction, struct bh_error_record *error) {
    (void)context, (void)batch, (void)blocks, (void)count, (void)error;
    prediction->seconds = NAN;
    return BH_STATUS_OK;
}

static bh_status serve_the_program(void *context, uint64_t number, bh_served *answer, struct bh_error_record *error) {
    (void)context, (void)number, (void)error;
    answer->ended = 1, answer->exit_code = 3;
    return BH_STATUS_OK;
}

static bh_status wait_for_nothing(void *context, uint64_t ticket, struct bh_error_record *error) {
    (void)context, (void)ticket, (void)error;
    return BH_STATUS_OK;
}

static bh_status never_done(void *context, uint64_t ticket, int32_t *answer, struct bh_error_record *error) {
    (void)context, (void)ticket, (void)error;
    *answer = 0;
    return BH_STATUS_OK;
}

static bh_status claim(void *context, const char *name, uint16_t opcode, int32_t *known, struct bh_error_record *error) {
    (void)context, (void)name, (void)opcode, (void)error;
    *known = 1;
    return BH_STATUS_OK;
}

static char endless[4096];

static struct bh_component_table WRONG_TABLE = {
    .struct_size = sizeof WRONG_TABLE, .abi_version = BH_ABI_VERSION, .kind = BH_KIND_ENGINE, .name = "third-party",
    .version = WRONG == FALSE_FAMILY ? "bh 1.0" : "third 1.0", .create = wrong_create, .destroy = destroy,
    .capabilities = wrong_capabilities, .bind = bind, .supports = wrong_supports, .execute = wrong_execute,
    .evaluate = WRONG == EVALUATES_WRONGLY ? evaluate_wrongly : NULL,
    .predict = WRONG == FORETELLS_NO_NUMBER ? foretell_no_number : NULL,
    .wait = WRONG == NEVER_DONE ? wait_for_nothing : NULL, .poll = WRONG == NEVER_DONE ? never_done : NULL,
    .extmethod = WRONG == CLAIMS_METHODS ? claim : NULL,
    .serve = WRONG == SERVES_THE_PROGRAM ? serve_the_program : NULL,
};

const struct bh_component_table *bh_component_entry(uint32_t version) {
    (void)third_party_entry;
    memset(endless, 'x', sizeof endless);
    if (WRONG == NO_NAME) WRONG_TABLE.name = NULL;
    if (WRONG == ENDLESS_NAME) WRONG_TABLE.name = endless;
    return version == BH_ABI_VERSION ? &WRONG_TABLE : NULL;
}
