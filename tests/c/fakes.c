/* Components that are wrong in one way each; FAKE picks the way. */
#if FAKE == 13
#define bh_component_entry declared_entry
#endif
#include <bh_component.h>
#undef bh_component_entry
#include <stdio.h>
#include <string.h>

#define WRONG_VERSION 1 /* was built for another version, and says so */
#define NO_TABLE 2      /* serves other versions only */
#define NULL_SLOTS 3    /* has no function but create */
#define FAILING_INIT 4  /* cannot start */
#define FAILING 5       /* starts, and fails at every block */
#define SILENT 6        /* fails without a word */
#define CORRUPTING 7    /* a filter that passes on a malformed batch */
#define DAMAGED 8       /* states an absurd size */
#define NULL_DATA 9     /* a filter that passes on a table without an address, */
#define NULL_BLOCKS 10  /* a list of blocks without one, */
#define NULL_BATCH 11   /* no batch, */
#define NULL_CONTEXT 12 /* no context of its child */
#define NO_FUNCTION 13  /* exports data in its entry's place */
#define PASSES_NULL (FAKE >= NULL_DATA && FAKE <= NULL_CONTEXT)

#if FAKE != NO_TABLE
static struct bh_child child;

static bh_status create(const struct bh_host_table *host, const struct bh_child *children, size_t child_count,
                        void **context, struct bh_error_record *error) {
    (void)host;
    *context = NULL;
    if (child_count > 0) child = children[0];
    if (FAKE != FAILING_INIT) return BH_STATUS_OK;
    snprintf((char *)error->text, sizeof error->text, "the fan does not turn");
    return error->status = BH_STATUS_INIT;
}
#endif

#if FAKE == FAILING || FAKE == SILENT
static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t count, uint64_t *ticket,
                         bh_report *report, struct bh_error_record *error) {
    (void)context, (void)report;
    *ticket = 0;
    if (count == 0 || FAKE == SILENT) return BH_STATUS_DEVICE;
    error->block = blocks[0];
    error->instr = batch->block_instrs.data[batch->blocks.data[blocks[0]].instrs] + 1;
    snprintf((char *)error->text, sizeof error->text, "the device fell off the bus");
    return error->status = BH_STATUS_DEVICE;
}
#elif FAKE == CORRUPTING
static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t count, uint64_t *ticket,
                         bh_report *report, struct bh_error_record *error) {
    bh_view_record views[64];
    bh_batch copy = *batch;
    (void)context;
    if (batch->views.len > 64) return BH_STATUS_BATCH;
    memcpy(views, batch->views.data, batch->views.len * sizeof *views);
    for (size_t i = 0; i < batch->views.len; i++) views[i].start += 1000000;
    copy.views.data = views;
    return child.table->execute(child.context, &copy, blocks, count, ticket, report, error);
}
#elif PASSES_NULL
static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t count, uint64_t *ticket,
                         bh_report *report, struct bh_error_record *error) {
    bh_batch copy = *batch;
    (void)context;
    if (FAKE == NULL_DATA) copy.instrs.data = NULL;
    if (FAKE == NULL_BLOCKS) blocks = NULL, count = 1;
    return child.table->execute(FAKE == NULL_CONTEXT ? NULL : child.context, FAKE == NULL_BATCH ? NULL : &copy, blocks, count,
                                ticket, report, error);
}
#endif

#if FAKE != NO_TABLE
static const struct bh_component_table TABLE = {
    .struct_size = FAKE == DAMAGED ? 7 : sizeof TABLE,
    .abi_version = FAKE == WRONG_VERSION ? 1 : BH_ABI_VERSION,
    .kind = FAKE == CORRUPTING || PASSES_NULL ? BH_KIND_FILTER : BH_KIND_ENGINE,
    .name = "fake",
    .version = "fake 1.0",
    .create = create,
#if FAKE == FAILING || FAKE == SILENT || FAKE == CORRUPTING || PASSES_NULL
    .execute = execute,
#endif
};
#endif

#if FAKE == NO_FUNCTION
const struct bh_component_table *own_table(void) { return &TABLE; }
long bh_component_entry = 1;
#else
const struct bh_component_table *bh_component_entry(uint32_t version) {
    (void)version;
#if FAKE == NO_TABLE
    return NULL;
#else
    return &TABLE;
#endif
}
#endif
