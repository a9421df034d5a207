/* A small libnvidia-ml.so.1: enough of NVML's binary interface to see that pynvml is called with what it passes on.
 *
 * Layouts are those of nvml.h. Two GPUs, the second in MIG mode with one instance; all answers are invented, and
 * functions that are not here are missing as they are from an old driver.
 */
#include <stdio.h>
#include <stdlib.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, VERSION_MISMATCH = 25 };
enum { GPU_0 = 0x1000, GPU_1 = 0x1001, INSTANCE = 0x2000 };
enum { ALL_LINKS = 0xFFFFFFFF, UNSIGNED_LONG_LONG = 3, XID = 8 };

typedef unsigned long long u64;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory;
typedef struct { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; } Process;
typedef struct { unsigned field, scope; long long time_us, latency_us; unsigned type, result; u64 value; } Field;
typedef struct { unsigned version, is_supported; } Support;
typedef struct { unsigned id, result; double value; char *names[3]; } Metric;
typedef struct { unsigned version, count; long *earlier, *later; Metric metrics[]; } Metrics;
typedef struct { void *device; u64 type, data; unsigned gpu_instance, compute_instance; } Event;

static long long time_us = 1000000;
static long samples_taken, samples_held;
static int xids = 1;

int nvmlInitWithFlags(unsigned flags) { return flags ? NOT_SUPPORTED : SUCCESS; }
int nvmlShutdown(void) { return printf("%ld samples held\n", samples_held) < 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { return snprintf(text, size, "570.1") < 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, long *device) { *device = GPU_0 + index; return SUCCESS; }
int nvmlDeviceGetName(long device, char *text, unsigned size) { return snprintf(text, size, "GPU \xff") < 0; }
int nvmlDeviceGetUUID(long device, char *text, unsigned size) { return snprintf(text, size, "GPU-%lx", device) < 0; }
int nvmlDeviceGetMigMode(long device, unsigned *now, unsigned *next) { *now = *next = device == GPU_1; return SUCCESS; }
int nvmlDeviceGetMaxMigDeviceCount(long device, unsigned *count) { *count = 7; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(long device, unsigned index, long *instance) {
    *instance = INSTANCE;
    return index == 4 ? SUCCESS : NOT_FOUND;
}
int nvmlDeviceGetGpuInstanceId(long device, unsigned *id) { *id = 5; return device == INSTANCE ? SUCCESS : NOT_FOUND; }

int nvmlDeviceGetUtilizationRates(long device, Utilization *rates) {
    *rates = (Utilization){77, 11};
    return device == GPU_0 ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetMemoryInfo_v2(long device, Memory *memory) {
    if (memory->version != (sizeof(Memory) | 2 << 24)) return VERSION_MISMATCH;
    memory->total = 1ULL << 40;
    memory->used = device;
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(long device, unsigned *count, Process *processes) {
    unsigned room = *count;
    *count = 2;
    if (room < 2) return INSUFFICIENT_SIZE;
    processes[0] = (Process){.pid = 42, .memory = -1ULL};
    processes[1] = (Process){.pid = 41, .memory = 1ULL << 33};
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(long device, unsigned kind, unsigned *mhz) { *mhz = 1000 + kind; return SUCCESS; }
int nvmlDeviceGetPowerUsage(long device, unsigned *mw) { *mw = 123456; return SUCCESS; }
int nvmlDeviceGetCurrentClocksEventReasons(long device, u64 *mask) { *mask = 1ULL << 63 | 0x40; return SUCCESS; }
int nvmlDeviceGetTotalEccErrors(long device, unsigned kind, unsigned counter, u64 *count) {
    *count = (1ULL << 32) + kind;
    return counter ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetFieldValues(long device, int count, Field *fields) {
    time_us += 500000;
    for (Field *field = fields; field < fields + count; field++) {
        int is_of_links = field->field >= 138;
        field->time_us = time_us;
        field->type = UNSIGNED_LONG_LONG;
        field->value = 3 * (u64)time_us;
        field->result = is_of_links && field->field < 150 && field->scope != ALL_LINKS ? NOT_FOUND : SUCCESS;
    }
    return SUCCESS;
}

int nvmlGpmQueryDeviceSupport(long device, Support *support) {
    support->is_supported = 1;
    return support->version == 1 ? SUCCESS : VERSION_MISMATCH;
}
int nvmlGpmSampleAlloc(long **sample) { *sample = calloc(1, sizeof(long)); samples_held++; return SUCCESS; }
int nvmlGpmSampleFree(long *sample) { free(sample); samples_held--; return SUCCESS; }
int nvmlGpmSampleGet(long device, long *sample) { *sample = ++samples_taken; return SUCCESS; }
int nvmlGpmMigSampleGet(long device, unsigned gpu_instance, long *sample) {
    *sample = ++samples_taken;
    return device == GPU_1 && gpu_instance == 5 ? SUCCESS : NOT_FOUND;
}
int nvmlGpmMetricsGet(Metrics *asked) {
    if (asked->version != 1 || *asked->earlier >= *asked->later) return VERSION_MISMATCH;
    for (unsigned at = 0; at < asked->count; at++) asked->metrics[at].value = asked->metrics[at].id * 10.5;
    return SUCCESS;
}

int nvmlEventSetCreate(long *set) { *set = 0x9000; return SUCCESS; }
int nvmlEventSetFree(long set) { return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(long device, u64 *types) { *types = XID; return SUCCESS; }
int nvmlDeviceRegisterEvents(long device, u64 types, long set) { return types == XID ? SUCCESS : NOT_SUPPORTED; }
int nvmlEventSetWait_v2(long set, Event *event, unsigned timeout_ms) {
    *event = (Event){(void *)GPU_1, XID, 79, 0, 0};
    return timeout_ms || xids-- <= 0 ? TIMEOUT : SUCCESS;
}
