/* libnvidia-ml.so.1 for tests: answers from a text file, so that the real pynvml runs without a GPU.
 *
 * The file is $NVML_SHIM, read anew at every call. Each line is KEY VALUE:
 *     count 2                       how many GPUs
 *     init !9                       the return code of nvmlInit
 *     0.PersistenceMode 1           of GPU 0; "*." is of every GPU that has no line of its own
 *     0.EccMode 1 1                 several values, in the order of the call's arguments
 *     0.PersistenceMode !4          a return code instead of a value
 *     0.field.83 3 1000+250         type and value; grows by 250 at each call within a process
 *     0.process 4711 1048576        pid and bytes, one line for each
 *     0.link.3 1                    state of a link
 *     0.p2p.1 0 0 4                 to GPU 1: reading, writing, NVLink
 *     0.lost_after 7                calls on it until the GPU is lost (15)
 *     0.SetPersistenceMode lie      a setter that says 0 and changes nothing; !4 refuses; else it obeys
 * A key without a line is not supported (3). What a setter was asked is appended to $NVML_SHIM.log.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25, LOST = 15 };
enum { MAX_KEYS = 512, TEXT = 256 };

typedef void *Device;
typedef unsigned int uint;
typedef unsigned long long ulonglong;

static int index_of(Device device) { return (int)(intptr_t)device - 1; }

static const char *path(void) {
    const char *name = getenv("NVML_SHIM");
    return name ? name : "/nonexistent";
}

/* The value of the nth line of a key, without the line's end; 0 when there is none. */
static int line_of(const char *key, int nth, char *value) {
    FILE *file = fopen(path(), "r");
    char line[TEXT];
    size_t length = strlen(key);
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) || line[length] != ' ' || nth-- > 0) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(value, TEXT, "%s", line + length + 1);
        found = 1;
    }
    fclose(file);
    return found;
}

static int calls_of(const char *key) {
    static char keys[MAX_KEYS][64];
    static int calls[MAX_KEYS];
    for (int i = 0; i < MAX_KEYS; i++) {
        if (!keys[i][0]) snprintf(keys[i], sizeof keys[i], "%s", key);
        if (!strcmp(keys[i], key)) return calls[i]++;
    }
    return 0;
}

/* Looks a fact of a GPU up; the return code of the call. */
static int look(Device device, const char *name, int nth, char *value) {
    char key[TEXT], after[TEXT];
    int gpu = index_of(device);
    snprintf(key, sizeof key, "%d.lost_after", gpu);
    if (line_of(key, 0, after) && calls_of(key) >= atoi(after)) return LOST;
    snprintf(key, sizeof key, "%d.%s", gpu, name);
    if (!line_of(key, nth, value)) {
        snprintf(key, sizeof key, "*.%s", name);
        if (!line_of(key, nth, value)) return NOT_SUPPORTED;
    }
    return value[0] == '!' ? atoi(value + 1) : OK;
}

/* One number, "1000+250" grown by the calls so far; *text moves behind it. */
static ulonglong number(const char *key, char **text) {
    ulonglong value = strtoull(*text, text, 0);
    if (**text == '+') value += strtoull(*text + 1, text, 0) * (ulonglong)calls_of(key);
    return value;
}

static int numbers(Device device, const char *name, int count, ulonglong *values) {
    char text[TEXT], key[TEXT];
    char *at = text;
    int code = look(device, name, 0, text);
    snprintf(key, sizeof key, "%d.%s", index_of(device), name);
    for (int i = 0; !code && i < count; i++) values[i] = number(key, &at);
    return code;
}

/* --- the library and the machine --- */

int nvmlInitWithFlags(uint flags) {
    char value[TEXT];
    (void)flags;
    return line_of("init", 0, value) && value[0] == '!' ? atoi(value + 1) : OK;
}

int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    (void)code;
    return "a code of the shim";
}

static int words(const char *key, char *into, uint size) {
    char value[TEXT];
    if (!line_of(key, 0, value)) return NOT_SUPPORTED;
    if (value[0] == '!') return atoi(value + 1);
    snprintf(into, size, "%s", value);
    return OK;
}

int nvmlSystemGetDriverVersion(char *into, uint size) { return words("driver", into, size); }

int nvmlSystemGetCudaDriverVersion(int *version) {
    char value[TEXT];
    int code = words("cuda", value, sizeof value);
    if (!code) *version = atoi(value);
    return code;
}

#ifndef WITHOUT_CONFIDENTIAL_COMPUTE
int nvmlSystemGetConfComputeState(uint *state) { /* environment, feature, developer's tools */
    char value[TEXT];
    int code = words("confidential_compute", value, sizeof value);
    if (!code) state[0] = 0, state[1] = (uint)atoi(value), state[2] = 0;
    return code;
}
#endif

int nvmlDeviceGetCount_v2(uint *count) {
    char value[TEXT];
    int code = words("count", value, sizeof value);
    if (!code) *count = (uint)atoi(value);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(uint index, Device *device) {
    char value[TEXT];
    *device = (Device)(intptr_t)(index + 1);
    int code = look(*device, "handle", 0, value);
    return code == NOT_SUPPORTED ? OK : code;
}

/* --- facts of one GPU --- */

#define STRING(name)                                                          \
    int nvmlDeviceGet##name(Device device, char *into, uint size) {           \
        char value[TEXT];                                                     \
        int code = look(device, #name, 0, value);                             \
        if (!code) snprintf(into, size, "%s", value);                         \
        return code;                                                          \
    }
STRING(Name)
STRING(UUID)
STRING(BoardPartNumber)
STRING(VbiosVersion)

int nvmlDeviceGetGspFirmwareVersion(Device device, char *into) {
    char value[TEXT];
    int code = look(device, "GspFirmwareVersion", 0, value);
    if (!code) snprintf(into, 64, "%s", value);
    return code;
}

#define ONE(name, type)                                                       \
    int nvmlDeviceGet##name(Device device, type *into) {                      \
        ulonglong value[1];                                                   \
        int code = numbers(device, #name, 1, value);                          \
        if (!code) *into = (type)value[0];                                    \
        return code;                                                          \
    }
ONE(PersistenceMode, uint)
ONE(PowerManagementLimit, uint)
ONE(EnforcedPowerLimit, uint)
ONE(PowerManagementDefaultLimit, uint)
ONE(ComputeMode, uint)
ONE(CurrPcieLinkGeneration, uint)
ONE(MaxPcieLinkGeneration, uint)
ONE(CurrPcieLinkWidth, uint)
ONE(MaxPcieLinkWidth, uint)
ONE(PowerUsage, uint)
ONE(TotalEnergyConsumption, ulonglong)
#ifdef OLD_DRIVER
ONE(CurrentClocksThrottleReasons, ulonglong)
#else
ONE(CurrentClocksEventReasons, ulonglong)
#endif

#define TWO(name, type)                                                       \
    int nvmlDeviceGet##name(Device device, type *one, type *two) {            \
        ulonglong value[2];                                                   \
        int code = numbers(device, #name, 2, value);                          \
        if (!code) *one = (type)value[0], *two = (type)value[1];              \
        return code;                                                          \
    }
TWO(EccMode, uint)
TWO(MigMode, uint)
TWO(CudaComputeCapability, int)
TWO(PowerManagementLimitConstraints, uint)

/* A fact that has a number among its arguments: NAME.NUMBER. */
#define OF(name, type)                                                        \
    int nvmlDeviceGet##name(Device device, uint which, type *into) {          \
        char key[64];                                                         \
        ulonglong value[1];                                                   \
        snprintf(key, sizeof key, #name ".%u", which);                        \
        int code = numbers(device, key, 1, value);                            \
        if (!code) *into = (type)value[0];                                    \
        return code;                                                          \
    }
OF(ClockInfo, uint)
OF(MaxClockInfo, uint)
OF(ApplicationsClock, uint)
OF(TemperatureThreshold, uint)
OF(Temperature, uint)

int nvmlDeviceGetTotalEccErrors(Device device, uint kind, uint counter, ulonglong *into) {
    (void)kind, (void)counter;
    return numbers(device, "TotalEccErrors", 1, into);
}

int nvmlDeviceGetRemappedRows(Device device, uint *one, uint *two, uint *three, uint *four) {
    ulonglong value[4];
    int code = numbers(device, "RemappedRows", 4, value);
    if (!code) *one = (uint)value[0], *two = (uint)value[1], *three = (uint)value[2], *four = (uint)value[3];
    return code;
}

int nvmlDeviceGetUtilizationRates(Device device, uint *rates) {
    ulonglong value[1];
    int code = numbers(device, "Utilization", 1, value);
    if (!code) rates[0] = (uint)value[0], rates[1] = 0;
    return code;
}

int nvmlDeviceGetMarginTemperature(Device device, uint *into) { /* version, degrees */
    ulonglong value[1];
    int code = numbers(device, "MarginTemperature", 1, value);
    if (!code) into[1] = (uint)value[0];
    return code;
}

int nvmlDeviceGetPciInfo_v3(Device device, char *into) {
    char value[TEXT];
    int code = look(device, "BusId", 0, value);
    if (!code) snprintf(into + 36, 32, "%s", value);
    return code;
}

int nvmlDeviceGetBAR1MemoryInfo(Device device, ulonglong *into) { return numbers(device, "BAR1", 1, into); }

int nvmlDeviceGetMemoryInfo(Device device, ulonglong *into) { /* total, free, used */
    ulonglong value[3];
    int code = numbers(device, "Memory", 3, value); /* total, used, reserved */
    if (!code) into[0] = value[0], into[1] = value[0] - value[1] - value[2], into[2] = value[1] + value[2];
    return code;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(Device device, ulonglong *into) { /* version, total, reserved, free, used */
    ulonglong value[3];
    char own[TEXT];
    int code = look(device, "Memory_v2", 0, own); /* a return code of this version alone */
    if (code == NOT_SUPPORTED) code = numbers(device, "Memory", 3, value);
    if (!code) into[1] = value[0], into[2] = value[2], into[3] = value[0] - value[1] - value[2], into[4] = value[1];
    return code;
}
#endif

typedef struct { uint pid; ulonglong bytes; uint instance, compute_instance; } Process;

static int processes(Device device, const char *name, uint *count, Process *into) {
    char value[TEXT];
    uint found = 0;
    int code = look(device, name, 0, value);
    if (code == NOT_SUPPORTED) return *count = 0, OK;
    if (code) return code;
    while (!look(device, name, (int)found, value)) found++;
    if (found > *count) return *count = found, INSUFFICIENT_SIZE;
    for (uint i = 0; i < found; i++) {
        char *at = value;
        look(device, name, (int)i, value);
        into[i].pid = (uint)strtoull(at, &at, 0);
        into[i].bytes = *at ? strtoull(at, &at, 0) : ~0ULL;
    }
    return *count = found, OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device device, uint *count, Process *into) {
    return processes(device, "process", count, into);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, uint *count, Process *into) {
    return processes(device, "mps_process", count, into);
}

int nvmlDeviceGetNvLinkState(Device device, uint link, uint *state) {
    char key[64], value[TEXT];
    ulonglong one[1];
    snprintf(key, sizeof key, "link.%u", link);
    int code = numbers(device, key, 1, one);
    if (!code) *state = (uint)one[0];
    return code == NOT_SUPPORTED && !look(device, "link.0", 0, value) ? INVALID_ARGUMENT : code;
}

int nvmlDeviceGetP2PStatus(Device one, Device other, uint kind, uint *status) {
    char key[64];
    ulonglong value[3];
    snprintf(key, sizeof key, "p2p.%d", index_of(other));
    int code = numbers(one, key, 3, value);
    if (!code) *status = (uint)value[kind];
    return code;
}

typedef struct {
    uint version;
    unsigned char cluster[16];
    uint status, clique, state, mask;
    unsigned char summary;
} Fabric;

int nvmlDeviceGetGpuFabricInfoV(Device device, Fabric *into) {
    ulonglong value[4];
    int code = numbers(device, "Fabric", 4, value); /* state, status, mask, summary */
    int third = into->version >> 24 == 3;
    char old[TEXT];
    if (third && !look(device, "fabric_v2_only", 0, old)) return VERSION_MISMATCH;
    if (code) return code;
    into->state = (uint)value[0], into->status = (uint)value[1], into->mask = (uint)value[2];
    if (third) into->summary = (unsigned char)value[3];
    return OK;
}

typedef struct {
    uint id, scope;
    int64_t stamp, latency;
    uint type, code;
    union { double real; uint word; ulonglong wide; int sign; unsigned short half; } value;
} Field;

int nvmlDeviceGetFieldValues(Device device, int count, Field *fields) {
    char value[TEXT];
    int whole = look(device, "fields", 0, value);
    if (whole && whole != NOT_SUPPORTED) return whole;
    for (int i = 0; i < count; i++) {
        char key[64];
        ulonglong pair[2];
        snprintf(key, sizeof key, "field.%u", fields[i].id);
        fields[i].code = (uint)numbers(device, key, 2, pair);
        if (fields[i].code) continue;
        fields[i].type = (uint)pair[0];
        fields[i].value.wide = 0;
        if (pair[0] == 0) fields[i].value.real = (double)pair[1];
        else if (pair[0] == 1 || pair[0] == 5) fields[i].value.word = (uint)pair[1];
        else if (pair[0] == 6) fields[i].value.half = (unsigned short)pair[1];
        else fields[i].value.wide = pair[1];
    }
    return OK;
}

typedef struct { uint version, allowed[8], requested[8], enforced[8]; } Profiles;

int nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(Device device, Profiles *into) {
    ulonglong value[1];
    int code = numbers(device, "PowerProfiles", 1, value); /* the first word of the mask */
    if (!code) into->requested[0] = into->enforced[0] = (uint)value[0];
    return code;
}

/* --- setters: they change the file, as a driver keeps what it was told --- */

static void put(Device device, const char *name, ulonglong value) {
    char temporary[TEXT], key[64], line[TEXT];
    snprintf(temporary, sizeof temporary, "%s.new", path());
    snprintf(key, sizeof key, "%d.%s ", index_of(device), name);
    FILE *from = fopen(path(), "r"), *to = fopen(temporary, "w");
    if (!from || !to) abort();
    while (fgets(line, sizeof line, from))
        if (strncmp(line, key, strlen(key))) fputs(line, to);
    fprintf(to, "%s%llu\n", key, value);
    fclose(from);
    fclose(to);
    rename(temporary, path());
}

/* What a setter does: a return code, -1 to obey, 0 to lie. */
static int asked(Device device, const char *setter, ulonglong value) {
    char log[TEXT], answer[TEXT];
    snprintf(log, sizeof log, "%s.log", path());
    FILE *file = fopen(log, "a");
    if (!file) abort();
    fprintf(file, "%d.%s %llu\n", index_of(device), setter, value);
    fclose(file);
    int code = look(device, setter, 0, answer);
    if (code == NOT_SUPPORTED) return -1;
    return code ? code : strcmp(answer, "lie") ? -1 : OK;
}

int nvmlDeviceSetPersistenceMode(Device device, uint mode) {
    int code = asked(device, "SetPersistenceMode", mode);
    return code < 0 ? put(device, "PersistenceMode", mode), OK : code;
}

int nvmlDeviceSetPowerManagementLimit(Device device, uint limit) {
    int code = asked(device, "SetPowerManagementLimit", limit);
    if (code >= 0) return code;
    put(device, "PowerManagementLimit", limit);
    put(device, "EnforcedPowerLimit", limit);
    return OK;
}

static int unlock(Device device, const char *setter) {
    ulonglong reasons[1];
    int code = asked(device, setter, 0);
    if (code >= 0) return code;
    if (!numbers(device, "CurrentClocksEventReasons", 1, reasons))
        put(device, "CurrentClocksEventReasons", reasons[0] & ~2ULL);
    return OK;
}

int nvmlDeviceResetGpuLockedClocks(Device device) { return unlock(device, "ResetGpuLockedClocks"); }
int nvmlDeviceResetMemoryLockedClocks(Device device) { return unlock(device, "ResetMemoryLockedClocks"); }

typedef struct { uint version, mask[8]; } Requested;

int nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(Device device, Requested *from) {
    ulonglong now[1] = {0};
    int code = asked(device, "WorkloadPowerProfileSetRequestedProfiles", from->mask[0]);
    if (code >= 0) return code;
    numbers(device, "PowerProfiles", 1, now);
    return put(device, "PowerProfiles", now[0] | from->mask[0]), OK;
}

int nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(Device device, Requested *from) {
    ulonglong now[1] = {0};
    int code = asked(device, "WorkloadPowerProfileClearRequestedProfiles", from->mask[0]);
    if (code >= 0) return code;
    numbers(device, "PowerProfiles", 1, now);
    return put(device, "PowerProfiles", now[0] & ~(ulonglong)from->mask[0]), OK;
}
