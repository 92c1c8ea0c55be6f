// SPDX-License-Identifier: Apache-2.0
//
// Transient units. A property that systemd does not have, or has with another type, is refused, as systemd refuses it
// (org.freedesktop.systemd1(5)). The program runs as its properties say, as far as a program can tell.
#define _GNU_SOURCE
#include "lab-systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVICE_INTERFACE "org.freedesktop.systemd1.Service"

enum { MOST = 32 };

struct unit {
    char name[256];
    char *path;
    uint32_t process;
    uint32_t last_process;
    int32_t code;
    int32_t status;
    int is_held;
    sd_bus_slot *slot;
};

// What is to be run. Strings are the message's.
struct program {
    const char *path;
    char **arguments;
    char **environment;
    const char *user;
    const char *directory;
    int input;
    int output;
    int forbids_privileges;
    int ignores_pipes;
    int is_held;
    uint64_t capabilities;
    uint32_t mask;
};

static struct unit units[MOST];
static enum { ACCEPT, REFUSE, IGNORE } order;
static const char *groups;

static const sd_bus_vtable unit_table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("MainPID", "u", NULL, offsetof(struct unit, process), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ExecMainPID", "u", NULL, offsetof(struct unit, last_process), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ExecMainCode", "i", NULL, offsetof(struct unit, code), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ExecMainStatus", "i", NULL, offsetof(struct unit, status), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

int take_order(const char *line) {
    static const char *const lines[] = {"accept\n", "refuse\n", "ignore\n"};
    for (int index = 0; index < 3; index++) {
        if (strcmp(line, lines[index]) != 0) continue;
        order = index;
        return 0;
    }
    return -1;
}

void make_groups_below(const char *directory) { groups = directory; }

static struct unit *find(const char *name) {
    for (int index = 0; index < MOST; index++)
        if (strcmp(units[index].name, name) == 0) return &units[index];
    return NULL;
}

static void group_file(const struct unit *unit, const char *file, char path[512]) {
    snprintf(path, 512, "%s/%s%s", groups, unit->name, file);
}

// Without a reference nothing is left of a unit that has ended.
static void collect(struct unit *unit) {
    if (unit->is_held || unit->process != 0) return;
    char path[512];
    group_file(unit, "", path);
    if (groups) rmdir(path);
    printf("gone %s\n", unit->name);
    fflush(stdout);
    sd_bus_slot_unref(unit->slot);
    free(unit->path);
    memset(unit, 0, sizeof *unit);
}

// MARK: The properties

static const char *const types[][2] = {
    {"AddRef", "b"}, {"CapabilityBoundingSet", "t"}, {"CollectMode", "s"}, {"Description", "s"}, {"Environment", "as"},
    {"ExecStart", "a(sasb)"}, {"IgnoreSIGPIPE", "b"}, {"KillMode", "s"}, {"NoNewPrivileges", "b"},
    {"StandardError", "s"}, {"StandardInputFileDescriptor", "h"}, {"StandardOutput", "s"},
    {"StandardOutputFileDescriptor", "h"}, {"SyslogIdentifier", "s"}, {"TimeoutStartUSec", "t"}, {"Type", "s"},
    {"UMask", "u"}, {"User", "s"}, {"WorkingDirectory", "s"},
};

static const char *type_of(const char *property) {
    for (size_t index = 0; index < sizeof types / sizeof *types; index++)
        if (strcmp(types[index][0], property) == 0) return types[index][1];
    return NULL;
}

// Two dollar signs stand for one; one begins a variable, which no program of a test is to be given.
static int unescape(char *argument) {
    char *end = argument;
    for (; *argument; argument++) {
        if (*argument == '$' && *++argument != '$') return -EINVAL;
        *end++ = *argument;
    }
    *end = 0;
    return 0;
}

static int read_command(sd_bus_message *call, struct program *program) {
    int ignores_failure;
    check(sd_bus_message_enter_container(call, 'a', "(sasb)"), "reading");
    check(sd_bus_message_enter_container(call, 'r', "sasb"), "reading");
    check(sd_bus_message_read(call, "s", &program->path), "reading");
    check(sd_bus_message_read_strv(call, &program->arguments), "reading");
    check(sd_bus_message_read(call, "b", &ignores_failure), "reading");
    check(sd_bus_message_exit_container(call), "reading");
    check(sd_bus_message_exit_container(call), "reading");
    printf("ExecStart=%s", program->path);
    for (char **argument = program->arguments; argument && *argument; argument++) {
        if (unescape(*argument) != 0) return -EINVAL;
        printf(" [%s]", *argument);
    }
    puts("");
    return 0;
}

static void read_environment(sd_bus_message *call, struct program *program) {
    check(sd_bus_message_read_strv(call, &program->environment), "reading");
    for (char **variable = program->environment; variable && *variable; variable++)
        printf("Environment=%s\n", *variable);
}

static void read_text(sd_bus_message *call, const char *name, struct program *program) {
    const char *text;
    check(sd_bus_message_read(call, "s", &text), "reading");
    printf("%s=%s\n", name, text);
    if (strcmp(name, "User") == 0) program->user = text;
    if (strcmp(name, "WorkingDirectory") == 0) program->directory = text;
}

static void read_flag(sd_bus_message *call, const char *name, struct program *program) {
    int flag;
    check(sd_bus_message_read(call, "b", &flag), "reading");
    printf("%s=%s\n", name, flag ? "yes" : "no");
    if (strcmp(name, "AddRef") == 0) program->is_held = flag;
    if (strcmp(name, "NoNewPrivileges") == 0) program->forbids_privileges = flag;
    if (strcmp(name, "IgnoreSIGPIPE") == 0) program->ignores_pipes = flag;
}

static void read_descriptor(sd_bus_message *call, const char *name, struct program *program) {
    int number;
    struct stat status;
    check(sd_bus_message_read(call, "h", &number), "reading");
    int is_socket = fstat(number, &status) == 0 && S_ISSOCK(status.st_mode);
    printf("%s=%s\n", name, is_socket ? "a socket" : "no socket");
    *(strcmp(name, "StandardInputFileDescriptor") == 0 ? &program->input : &program->output) = number;
}

static void read_number(sd_bus_message *call, const char *name, char type, struct program *program) {
    uint64_t number = 0;
    uint32_t half = 0;
    check(sd_bus_message_read_basic(call, type, type == 't' ? (void *)&number : (void *)&half), "reading");
    printf("%s=%llu\n", name, (unsigned long long)(type == 't' ? number : half));
    if (strcmp(name, "CapabilityBoundingSet") == 0) program->capabilities = number;
    if (strcmp(name, "UMask") == 0) program->mask = half;
}

static int read_property(sd_bus_message *call, struct program *program, sd_bus_error *error) {
    const char *name, *type;
    check(sd_bus_message_read(call, "s", &name), "reading");
    check(sd_bus_message_peek_type(call, NULL, &type), "reading");
    const char *known = type_of(name);
    if (!known || strcmp(known, type) != 0)
        return sd_bus_error_setf(error, SD_BUS_ERROR_PROPERTY_READ_ONLY,
                                 "Cannot set property %s of the type %s, or unknown property.", name, type);
    check(sd_bus_message_enter_container(call, 'v', type), "reading");
    if (strcmp(type, "a(sasb)") == 0) {
        if (read_command(call, program) != 0)
            return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s has a variable.", name);
    } else if (strcmp(type, "as") == 0) {
        read_environment(call, program);
    } else if (*type == 's') {
        read_text(call, name, program);
    } else if (*type == 'b') {
        read_flag(call, name, program);
    } else if (*type == 'h') {
        read_descriptor(call, name, program);
    } else {
        read_number(call, name, *type, program);
    }
    return sd_bus_message_exit_container(call);
}

static int read_properties(sd_bus_message *call, struct program *program, sd_bus_error *error) {
    int result;
    check(sd_bus_message_enter_container(call, 'a', "(sv)"), "reading");
    while ((result = sd_bus_message_enter_container(call, 'r', "sv")) > 0) {
        result = read_property(call, program, error);
        if (result < 0) return result;
        check(sd_bus_message_exit_container(call), "reading");
    }
    const char *directory = program->directory;
    if (!directory || *directory != '-' || directory[1] != '/')
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "WorkingDirectory= expects an absolute path or '~'");
    return result;
}

// MARK: The program

// Where to tell that there will be no program; closed by exec.
static int report;

// The statuses are those of systemd.exec(5), "Process Exit Codes".
_Noreturn static void give_up(int status) {
    (void)!write(report, "", 1);
    _exit(status);
}

static void put_in_group(const struct unit *unit) {
    char path[512];
    if (!groups) return;
    group_file(unit, "", path);
    mkdir(path, 0755);
    group_file(unit, "/cgroup.procs", path);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, "0", 1) != 1) give_up(219);
}

static void become(const char *number) {
    // Root of a user namespace may change nothing about its groups.
    if ((uid_t)atoi(number) == getuid()) return;
    struct passwd *user = getpwuid((uid_t)atoi(number));
    if (!user || initgroups(user->pw_name, user->pw_gid) != 0) give_up(217);
    if (setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0) give_up(216);
    if (setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0) give_up(217);
}

_Noreturn static void run(const struct unit *unit, const struct program *program) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, program->ignores_pipes ? SIG_IGN : SIG_DFL);
    setsid();
    put_in_group(unit);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    // What is written to the journal is to be seen in a test's output.
    if (dup2(program->input >= 0 ? program->input : null, 0) < 0) give_up(202);
    if (dup2(program->output >= 0 ? program->output : 2, 1) < 0) give_up(202);
    syscall(SYS_close_range, 3, ~0U, 1U << 2);
    umask(program->mask);
    if (chdir(program->directory + 1) != 0 && chdir("/") != 0) give_up(200);
    for (int capability = 0; capability < 64; capability++)
        if (!(program->capabilities >> capability & 1)) prctl(PR_CAPBSET_DROP, capability);
    if (program->user) become(program->user);
    if (program->forbids_privileges) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // The change of user took it away.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execve(program->path, program->arguments, program->environment);
    give_up(203);
}

static int ended(sd_event_source *source, const siginfo_t *info, void *data) {
    struct unit *unit = data;
    unit->process = 0;
    unit->code = info->si_code;
    unit->status = info->si_status;
    int result = sd_bus_emit_properties_changed(bus, unit->path, SERVICE_INTERFACE, "MainPID", "ExecMainCode",
                                                "ExecMainStatus", NULL);
    check(result, "telling");
    collect(unit);
    return 0;
}

// Whether the program runs, which is waited for, as with `Type=exec`.
static int begin(struct unit *unit, const struct program *program) {
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) != 0) check(-errno, "making a pipe");
    report = ends[1];
    pid_t process = fork();
    if (process < 0) check(-errno, "beginning a program");
    if (process == 0) run(unit, program);
    close(ends[1]);
    ssize_t count = read(ends[0], &byte, 1);
    if (count < 0) check(-errno, "waiting for a program");
    close(ends[0]);
    unit->last_process = (uint32_t)process;
    if (count == 0) {
        unit->process = unit->last_process;
        check(sd_event_add_child(sd_bus_get_event(bus), NULL, process, WEXITED, ended, unit), "watching a program");
        return 1;
    }
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)process, &info, WEXITED) != 0) check(-errno, "waiting for the end of a program");
    unit->code = info.si_code;
    unit->status = info.si_status;
    return 0;
}

// MARK: Methods

int start_transient_unit(sd_bus_message *call, void *data, sd_bus_error *error) {
    struct program program = {.input = -1, .output = -1, .capabilities = ~0ULL};
    const char *name, *mode;
    check(sd_bus_message_read(call, "ss", &name, &mode), "reading");
    printf("transient %s %s\n", name, mode);
    int result = read_properties(call, &program, error);
    puts(order == ACCEPT && result >= 0 ? "read" : "refused");
    fflush(stdout);
    if (result < 0) return result;
    if (order == IGNORE) return 1;
    if (order == REFUSE)
        return sd_bus_error_set_const(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                      "Interactive authentication required.");
    if (find(name)) return sd_bus_error_setf(error, SERVICE ".UnitExists", "Unit %s was already loaded.", name);
    struct unit *unit = find("");
    if (!unit) return -ENOSPC;
    snprintf(unit->name, sizeof unit->name, "%s", name);
    unit->is_held = program.is_held;
    check(sd_bus_path_encode(ROOT "/unit", name, &unit->path), "naming");
    check(sd_bus_add_object_vtable(bus, &unit->slot, unit->path, SERVICE_INTERFACE, unit_table, unit), "adding");
    result = answer_with_job(call);
    job_ended(name, begin(unit, &program) ? "done" : "failed");
    collect(unit);
    return result;
}

int stop_unit(sd_bus_message *call, void *data, sd_bus_error *error) {
    const char *name, *mode;
    check(sd_bus_message_read(call, "ss", &name, &mode), "reading");
    printf("stop %s %s\n", name, mode);
    fflush(stdout);
    struct unit *unit = find(name);
    if (!unit) return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not loaded.", name);
    if (unit->process != 0) kill((pid_t)unit->process, SIGTERM);
    int result = answer_with_job(call);
    job_ended(name, "done");
    return result;
}

int release_unit(sd_bus_message *call, void *data, sd_bus_error *error) {
    const char *name;
    check(sd_bus_message_read(call, "s", &name), "reading");
    struct unit *unit = find(name);
    if (!unit) return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not loaded.", name);
    if (!unit->is_held) return sd_bus_error_setf(error, SERVICE ".NotReferenced", "Unit has not been referenced yet.");
    unit->is_held = 0;
    int result = sd_bus_reply_method_return(call, "");
    collect(unit);
    return result;
}
