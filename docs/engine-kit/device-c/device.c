/* A bh engine in C with the manners of a device: memory of its own, a queue that a worker thread carries out, and tickets
 * for work that is under way. It adds, subtracts, multiplies and divides f64 arrays; everything else goes to the engine
 * below. Replace the worker by your device's queue. The numbers E-… are those of docs/engines.md. */
#include "bh_component.h"
#include <pthread.h>
#include <stdlib.h>

/* A base in the device's memory. The registry holds one reference, each job that uses it another. */
typedef struct {
    double *data;
    size_t references, writers; /* jobs in the queue that will change it */
} copy;

/* What the worker does: fills a copy from host memory, or computes. */
typedef struct job {
    struct job *next;
    uint64_t number;
    bh_opcode opcode; /* 0: an upload */
    bh_loan loan;     /* of an upload: content that stays as it is until then (E-29) */
    copy *operands[3];
    double constants[3];
    uint32_t rank;
    int64_t count, start[3], shape[BH_MAX_RANK], stride[3][BH_MAX_RANK];
} job;

typedef struct {
    const bh_registry_table *registry;
    uint64_t *instructions;
    uint32_t space;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *first, *last;
    uint64_t queued, done; /* numbers of jobs; a ticket is the number of its last one (E-32) */
    int stops;
} device;

static bh_status fail(bh_error_record *error, bh_status status, const char *text) {
    strcpy((char *)error->text, text);
    return error->status = status;
}

static void release(copy *held) { /* with the lock held */
    if (--held->references) return;
    free(held->data);
    free(held);
}

/* --- The worker ---------------------------------------------------------------------------------------------------- */

static void compute(const job *work) {
    int64_t at[3], index[BH_MAX_RANK] = {0};
    double *data[3];
    for (int k = 0; k < 3; k++) {
        at[k] = work->start[k];
        data[k] = work->operands[k] ? work->operands[k]->data : (double *)&work->constants[k];
    }
    for (int64_t left = work->count; left > 0; left--) {
        double a = data[1][at[1]], b = data[2][at[2]];
        data[0][at[0]] = work->opcode == BH_OP_ADD ? a + b : work->opcode == BH_OP_SUBTRACT ? a - b
                         : work->opcode == BH_OP_MULTIPLY ? a * b : a / b;
        for (uint32_t d = work->rank; d-- > 0;) { /* the next element in C order */
            int wraps = ++index[d] == work->shape[d];
            for (int k = 0; k < 3; k++) at[k] += wraps ? work->stride[k][d] * (1 - work->shape[d]) : work->stride[k][d];
            if (!wraps) break;
            index[d] = 0;
        }
    }
}

static void *carry_out(void *context) {
    device *self = context;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        job *work = self->first;
        if (work == NULL && self->stops) break;
        if (work == NULL) {
            pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        if ((self->first = work->next) == NULL) self->last = NULL;
        pthread_mutex_unlock(&self->lock);
        if (work->opcode == 0) {
            memcpy(work->operands[0]->data, work->loan.data, work->loan.bytes);
            self->registry->release(self->registry->context, &work->loan);
        } else {
            compute(work);
        }
        pthread_mutex_lock(&self->lock);
        work->operands[0]->writers--;
        for (int k = 0; k < 3; k++)
            if (work->operands[k]) release(work->operands[k]);
        self->done = work->number;
        free(work);
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* Queues a job; its first operand is what it changes. */
static void queue(device *self, job *work) {
    pthread_mutex_lock(&self->lock);
    work->number = ++self->queued;
    work->operands[0]->writers++;
    for (int k = 0; k < 3; k++)
        if (work->operands[k]) work->operands[k]->references++;
    if (self->last) self->last->next = work; else self->first = work;
    self->last = work;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void wait_for(device *self, uint64_t number) {
    pthread_mutex_lock(&self->lock);
    while (self->done < number) pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

/* --- What the registry does with a copy (E-24, E-80), from any thread ------------------------------------------------ */

static copy *settled(device *self, void *handle) {
    copy *held = handle;
    pthread_mutex_lock(&self->lock);
    while (held->writers) pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return held;
}

static bh_status to_host(void *context, void *handle, void *data, size_t bytes, bh_error_record *error) {
    (void)error;
    memcpy(data, settled(context, handle)->data, bytes);
    return BH_OK;
}

static void drop(void *context, void *handle) {
    device *self = context;
    pthread_mutex_lock(&self->lock);
    release(handle);
    pthread_mutex_unlock(&self->lock);
}

/* Part of a base: only its elements are moved. */
static bh_status read_view(void *context, void *handle, const bh_base *base, const bh_view_spec *view,
                           const bh_host_memory *memory, bh_error_record *error) {
    const double *from = settled(context, handle)->data;
    char *to = memory->data;
    int64_t index[BH_MAX_RANK] = {0}, at = view->start, left = 1;
    (void)base, (void)error;
    for (uint32_t d = 0; d < view->rank; d++) left *= view->shape[d];
    for (; left > 0; left--) {
        memcpy(to, &from[at], sizeof *from);
        for (uint32_t d = view->rank; d-- > 0;) {
            int64_t steps = ++index[d] == view->shape[d] ? 1 - view->shape[d] : 1;
            at += steps * view->stride[d], to += steps * memory->stride[d];
            if (steps == 1) break; /* of an extent of 1, the step back is 0 */
            index[d] = 0;
        }
    }
    return BH_OK;
}

/* A SYNC waits for nothing if there is this; a device would begin a transfer. */
static void prefetch(void *context, void *handle, const bh_base *base, const bh_view_spec *view) {
    (void)context, (void)handle, (void)base, (void)view;
}

static bh_attachment_ops operations(device *self) {
    return (bh_attachment_ops){.struct_size = sizeof(bh_attachment_ops), .context = self, .to_host = to_host, .drop = drop,
                               .read = read_view, .prefetch = prefetch};
}

/* --- Execution -------------------------------------------------------------------------------------------------------- */

static bh_status attach(device *self, const bh_base *base, copy *held, int exclusive, bh_error_record *error) {
    const bh_attachment_ops functions = operations(self);
    return self->registry->attach(self->registry->context, base, self->space, held, exclusive, &functions, error);
}

/* The base's copy here, on its way from the host if need be (E-21, E-22). */
static bh_status borrow(device *self, const bh_base *base, uint32_t access, copy **found, bh_error_record *error) {
    bh_loan here;
    bh_status status = self->registry->acquire(self->registry->context, base, self->space, access, &here, error);
    if (status != BH_OK) return status;
    self->registry->release(self->registry->context, &here); /* calls are serialised: it stays until we return */
    if ((*found = here.data) != NULL) return BH_OK;
    job *upload = calloc(1, sizeof *upload);
    copy *new = calloc(1, sizeof *new);
    if (new) new->references = 1, new->data = malloc((size_t)base->len * sizeof(double) + 1);
    if (!upload || !new || !new->data) {
        if (new) free(new->data);
        return free(new), free(upload), fail(error, BH_STATUS_MEMORY, "kit: out of memory");
    }
    if (!(access & BH_ACCESS_DISCARD)) {
        status = self->registry->acquire(self->registry->context, base, BH_HOST_SPACE, BH_ACCESS_READ | BH_ACCESS_STABLE,
                                         &upload->loan, error);
        if (status != BH_OK) return free(new->data), free(new), free(upload), status;
        upload->operands[0] = new;
        queue(self, upload);
    } else {
        free(upload);
    }
    status = attach(self, base, new, 0, error);
    if (status != BH_OK) drop(self, new);
    return *found = new, status;
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

/* Queues an instruction: the job has all that it needs, as the batch is gone when it runs (E-10). */
static bh_status submit(device *self, const bh_batch *batch, const bh_instr *instr, bh_error_record *error) {
    uint32_t out = bh_operand_index(instr->operands[0]);
    if (batch->views.data[out].len == 0) return BH_OK; /* nothing to do, so nothing to borrow (E-92) */
    job *work = calloc(1, sizeof *work);
    bh_status status = work ? BH_OK : fail(error, BH_STATUS_MEMORY, "kit: out of memory");
    for (int k = 2; k >= 0 && status == BH_OK; k--) { /* the output last, so that what it needs is there before it is claimed */
        uint32_t at = bh_operand_index(instr->operands[k]);
        if (!bh_operand_is_view(instr->operands[k])) {
            memcpy(&work->constants[k], batch->constants.data[at].bits, sizeof(double));
            continue;
        }
        uint32_t access = k > 0 ? BH_ACCESS_READ : BH_ACCESS_WRITE | (covers(batch, at) ? BH_ACCESS_DISCARD : 0);
        const bh_view_record *view = &batch->views.data[at];
        status = borrow(self, &batch->bases.data[view->base], access, &work->operands[k], error);
        work->start[k] = view->start;
        memcpy(work->stride[k], bh_view_stride(batch, at), view->rank * sizeof(int64_t));
    }
    if (status != BH_OK) return free(work), status;
    const bh_view_record *view = &batch->views.data[out];
    work->opcode = instr->opcode, work->rank = view->rank, work->count = view->len;
    memcpy(work->shape, bh_view_shape(batch, out), view->rank * sizeof(int64_t));
    copy *written = work->operands[0];
    queue(self, work);
    ++*self->instructions;
    return attach(self, &batch->bases.data[view->base], written, 1, error); /* now only this copy is right (E-23) */
}

/* SYNC, FREE and DISCARD, base by base: what jobs in the queue still need, they hold themselves (E-33, E-84). */
static bh_status manage(device *self, const bh_batch *batch, const bh_instr *instr, bh_error_record *error) {
    uint32_t action = instr->opcode == BH_OP_SYNC ? BH_RETIRE_SYNC : instr->opcode == BH_OP_FREE ? BH_RETIRE_FREE
                      : BH_RETIRE_DISCARD;
    if (instr->opcode == BH_OP_NOP) return BH_OK;
    const bh_view_record *view = &batch->views.data[bh_operand_index(instr->operands[0])];
    return self->registry->retire(self->registry->context, &batch->bases.data[view->base], action, error);
}

static bh_status execute(void *context, const bh_batch *batch, const uint32_t *blocks, size_t block_count,
                         uint64_t *ticket, bh_report *report, bh_error_record *error) {
    device *self = context;
    size_t count = block_count ? block_count : batch->blocks.len; /* E-12 */
    (void)report;
    for (size_t i = 0; i < count; i++) {
        const bh_block *block = &batch->blocks.data[block_count ? blocks[i] : i];
        for (int managing = 0; managing < 2; managing++) /* data management comes when the block's work is queued */
            for (uint32_t k = 0; k < block->instr_count; k++) {
                uint32_t at = batch->block_instrs.data[block->instrs + k];
                const bh_instr *instr = &batch->instrs.data[at];
                if (is_system(instr->opcode) != managing) continue;
                bh_status status = managing ? manage(self, batch, instr, error) : submit(self, batch, instr, error);
                if (status == BH_OK) continue;
                wait_for(self, self->queued); /* E-40: an error comes without a ticket, so nothing is under way */
                error->block = block_count ? blocks[i] : (uint32_t)i, error->instr = at + 1;
                return status;
            }
    }
    *ticket = self->queued;
    return BH_OK;
}

static bh_status wait(void *context, uint64_t ticket, bh_error_record *error) {
    (void)error; /* nothing that is queued here can fail; if it could: E-43 */
    wait_for(context, ticket);
    return BH_OK;
}

static bh_status poll(void *context, uint64_t ticket, int32_t *answer, bh_error_record *error) {
    device *self = context;
    (void)error;
    pthread_mutex_lock(&self->lock);
    *answer = self->done >= ticket;
    pthread_mutex_unlock(&self->lock);
    return BH_OK;
}

/* --- The component ------------------------------------------------------------------------------------------------------ */

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

static void capabilities(void *context, bh_capabilities *found) { /* E-8, E-31; threads do not live on in a child: E-35 */
    (void)context;
    *found = (bh_capabilities){.parallelism = 1, .bandwidth = 5e9, .launch_seconds = 1e-6,
        .flags = BH_CAPABILITY_ASYNCHRONOUS | BH_CAPABILITY_RETIRES_BLOCKS | BH_CAPABILITY_NO_FORK};
}

static bh_status bind(void *context, const bh_registry_table *registry, bh_error_record *error) {
    device *self = context;
    (void)error, self->registry = registry, self->space = registry->new_space(registry->context);
    return BH_OK;
}

static bh_status create(const bh_host_table *host, const struct bh_child *children, size_t child_count, void **context,
                        bh_error_record *error) {
    device *self = calloc(1, sizeof *self);
    (void)children, (void)child_count; /* the host itself sends refused blocks to the first child */
    if (self == NULL) return fail(error, BH_STATUS_MEMORY, "kit: out of memory");
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    if (pthread_create(&self->worker, NULL, carry_out, self) != 0)
        return free(self), fail(error, BH_STATUS_INIT, "kit: the worker does not start"); /* E-6 */
    self->instructions = host->counter(host->context, "instructions"), *context = self;
    return BH_OK;
}

static void destroy(void *context) { /* E-6: the queue is carried out, the thread joined */
    device *self = context;
    pthread_mutex_lock(&self->lock);
    self->stops = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->worker, NULL);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static const bh_component_table TABLE = {
    .struct_size = sizeof(bh_component_table), .abi_version = BH_ABI_VERSION, .kind = BH_KIND_ENGINE, .name = "kit-device",
    .version = "kit 0.1.0", .create = create, .destroy = destroy, .capabilities = capabilities, .supports = supports,
    .execute = execute, .bind = bind, .wait = wait, .poll = poll,
};
const bh_component_table *bh_component_entry(uint32_t version) { return version == BH_ABI_VERSION ? &TABLE : NULL; }
