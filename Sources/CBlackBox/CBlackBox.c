// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CBlackBox.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

_Static_assert(sizeof(struct black_box) <= 4096, "it is one page");

static const uint64_t magic = 0x64696f7462781;
// Room for the handler and, where one is installed, for that of Swift's runtime.
static const size_t stack_size = 64 * 1024;
// More of a long message than this tells it from no other.
static const size_t most_digested = 4096;

static struct black_box *box;
static const char *program = "";
static const char *prefix = "";
// On which place this thread is at work, and one more.
static _Thread_local int current;
static _Thread_local int has_stack;
static pthread_key_t stack_key;
static atomic_flag has_crashed = ATOMIC_FLAG_INIT;

static const struct {
    int number;
    const char *name;
} fatal[] = {
    {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
    {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"},   {SIGSEGV, "SIGSEGV"},
};
enum { fatal_count = sizeof fatal / sizeof *fatal };
static struct sigaction before[fatal_count];

// MARK: the box

struct black_box *black_box_map(int file) {
    struct stat status;
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (file >= 0) {
        if (fstat(file, &status) != 0) return NULL;
        if (status.st_size < (off_t)sizeof(struct black_box)) return errno = EINVAL, NULL;
    }
    struct black_box *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, flags, file, 0);
    if (mapped == MAP_FAILED) return NULL;
    if (mapped->magic != magic) memset(mapped, 0, sizeof *mapped);
    mapped->magic = magic;
    for (int place = 0; place < black_box_places; place++) mapped->works[place].text[black_box_text - 1] = 0;
    for (int index = 0; index < black_box_entries; index++) mapped->entries[index].text[black_box_text - 1] = 0;
    return mapped;
}

static uint64_t digest(const unsigned char *bytes, size_t count) {
    // FNV-1a, eight bytes at a time: nobody is to be hindered from finding two that are alike.
    uint64_t value = 0xcbf29ce484222325 ^ count;
    if (count > most_digested) count = most_digested;
    for (size_t index = 0; index < count; index += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + index, count - index < 8 ? count - index : 8);
        value = (value ^ word) * 0x100000001b3;
    }
    return value;
}

static void write_text(char *place, const char *text, size_t length) {
    if (length > black_box_text - 1) length = black_box_text - 1;
    memcpy(place, text, length);
    place[length] = 0;
}

// The compiler may not move what is written before the kind behind it, nor the other way round: who reads it is a
// handler on this thread, or a process that comes later.
static void set_kind(struct black_box_work *work, uint32_t kind) {
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint32_t *)&work->kind = kind;
    atomic_signal_fence(memory_order_seq_cst);
}

static void release_stack(void *stack) {
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(stack, stack_size);
}

// A stack that has overflowed has no room for a handler. Once for each thread that is ever at work.
static void have_stack(void) {
    has_stack = 1;
    void *memory = mmap(NULL, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t stack = {.ss_sp = memory, .ss_size = stack_size};
    if (sigaltstack(&stack, NULL) != 0 || pthread_setspecific(stack_key, memory) != 0) release_stack(memory);
}

int black_box_begin(
    int place, int kind, unsigned int user, const void *bytes, size_t count, const char *text, size_t length) {
    if (!box || current) return 0;
    if (!has_stack) have_stack();
    struct black_box_work *work = &box->works[place];
    work->user = user;
    work->digest = bytes ? digest(bytes, count) : 0;
    write_text(work->text, text, length);
    current = place + 1;
    set_kind(work, (uint32_t)kind);
    return 1;
}

void black_box_name(int place, const char *text, size_t length) {
    if (current == place + 1) write_text(box->works[place].text, text, length);
}

void black_box_end(int place) {
    set_kind(&box->works[place], black_box_nothing);
    current = 0;
}

// MARK: the last line

struct line {
    char text[512];
    size_t length;
};

static void add(struct line *line, const char *text) {
    while (*text && line->length < sizeof line->text - 1) line->text[line->length++] = *text++;
}

static void add_number(struct line *line, uint64_t number, unsigned base) {
    char digits[24];
    size_t count = sizeof digits;
    digits[--count] = 0;
    do digits[--count] = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    add(line, digits + count);
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static uintptr_t instruction(const ucontext_t *context) {
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    return 0;
#endif
}

// What addr2line(1) takes, where it is the program's own.
static void add_cause(struct line *line, const siginfo_t *info, const ucontext_t *context) {
    if (info->si_code <= 0) {
        add(line, " sent by process ");
        add_number(line, (uint64_t)info->si_pid, 10);
        return;
    }
    uintptr_t place = instruction(context), start = (uintptr_t)__ehdr_start;
    int is_own = place >= start && place < (uintptr_t)_end;
    add(line, " at ");
    if (is_own) add(line, program);
    add(line, is_own ? "+0x" : "0x");
    add_number(line, is_own ? place - start : place, 16);
}

static void add_work(struct line *line, const struct black_box_work *work) {
    switch (work->kind) {
    case black_box_call:
        add(line, work->text[0] ? " while answering " : " while reading a message");
        add(line, work->text);
        add(line, " of user ");
        add_number(line, work->user, 10);
        break;
    case black_box_connection:
        add(line, " while reading what the server of connection ");
        add(line, work->text);
        add(line, " of user ");
        add_number(line, work->user, 10);
        add(line, " had sent");
        break;
    case black_box_configuration: add(line, " while reading the configuration"); break;
    default: add(line, " while it served nobody in particular");
    }
}

// On which place the process was at work. What somebody sends it, as the service manager does when it hangs, reaches
// any of its threads; what one does to itself reaches that one.
static int place_of(const siginfo_t *info) {
    if (current || info->si_code > 0 || info->si_code == SI_TKILL) return current;
    for (int place = 0; place < black_box_places; place++)
        if (box->works[place].kind != black_box_nothing) return place + 1;
    return 0;
}

static void crashed(int number, siginfo_t *info, void *context) {
    int code = errno, index = 0;
    while (index < fatal_count - 1 && fatal[index].number != number) index++;
    if (!atomic_flag_test_and_set(&has_crashed)) {
        static const struct black_box_work nothing;
        struct line line = {.length = 0};
        add(&line, prefix);
        add(&line, program);
        add(&line, " crashed (");
        add(&line, fatal[index].name);
        add_cause(&line, info, context);
        add(&line, ")");
        int place = place_of(info);
        add_work(&line, place ? &box->works[place - 1] : &nothing);
        add(&line, "\n");
        (void)!write(STDERR_FILENO, line.text, line.length);
        box->place = (uint32_t)place;
        box->signal = (uint32_t)number;
    }
    // Again, for the handler that was set before: it is delivered with the return from here. Swift's runtime takes one
    // that somebody sent for a fault that comes back, and would go on: of that the process just ends.
    int is_own = info->si_code > 0 || info->si_code == SI_TKILL;
    static const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(number, is_own ? &before[index] : &standard, NULL);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info);
    errno = code;
}

// It ends in order.
static void close_box(void) { box->is_open = 0; }

void black_box_watch(struct black_box *mapped, const char *name, int is_journal) {
    box = mapped;
    program = name;
    // The priority "critical", as a line to the journal has it (sd-daemon(3)).
    prefix = is_journal ? "<2>" : "";
    for (int place = 0; place < black_box_places; place++) set_kind(&box->works[place], black_box_nothing);
    box->signal = box->place = 0;
    box->is_open = 1;
    pthread_key_create(&stack_key, release_stack);
    atexit(close_box);
    for (int index = 0; index < fatal_count; index++) {
        struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigfillset(&action.sa_mask);
        sigaction(fatal[index].number, &action, &before[index]);
    }
}
