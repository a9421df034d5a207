/* Every kind of NVTX event, from two threads and, run without arguments, two processes. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtSync.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define JSON_BY_REGISTERED_STRING 8 /* a payload type that is in no header, but in the reports of TensorRT */

static nvtxDomainHandle_t alpha, beta;
static nvtxRangeId_t crossing, crossing_in_domain;

static nvtxEventAttributes_t attributes(const char *text) {
  nvtxEventAttributes_t it = {0};
  it.version = NVTX_VERSION;
  it.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  if (text) {
    it.messageType = NVTX_MESSAGE_TYPE_ASCII;
    it.message.ascii = text;
  }
  return it;
}

static nvtxEventAttributes_t registered(nvtxStringHandle_t text) {
  nvtxEventAttributes_t it = attributes(NULL);
  it.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  it.message.registered = text;
  return it;
}

static void name_this_thread(const char *name) { nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name); }

static void texts(void) {
  static char longest[5000];
  memset(longest, 'x', sizeof longest - 1);
  nvtxMarkA("ascii");
  nvtxMarkW(L"wide \u00e9\u4e16");
  nvtxMarkA("not UTF-8 \xff\xfe");
  nvtxMarkA("");
  nvtxMarkA(longest);
  nvtxEventAttributes_t without = attributes(NULL);
  nvtxMarkEx(&without);
}

static void payload(const char *text, int32_t type, unsigned long long value) {
  nvtxEventAttributes_t it = attributes(text);
  it.payloadType = type;
  it.payload.ullValue = value;
  nvtxMarkEx(&it);
}

static void payloads(void) {
  nvtxEventAttributes_t it = attributes("double");
  it.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  it.payload.dValue = 3.14159;
  nvtxMarkEx(&it);
  it = attributes("float");
  it.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  it.payload.fValue = 0.1f;
  nvtxMarkEx(&it);
  payload("u64", NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, 0xFEDCBA9876543210ULL);
  payload("u64 zero", NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, 0);
  payload("u64 in the middle", NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, 1ULL << 63);
  payload("i64", NVTX_PAYLOAD_TYPE_INT64, (unsigned long long)-6464646464LL);
  payload("u32", NVTX_PAYLOAD_TYPE_UNSIGNED_INT32, 0xFFFFFFF0u);
  payload("i32", NVTX_PAYLOAD_TYPE_INT32, (unsigned)-32);
  payload("double zero", NVTX_PAYLOAD_TYPE_DOUBLE, 0);
  payload("of an unknown type", 77, 5);
  it = attributes("JSON");
  it.payloadType = JSON_BY_REGISTERED_STRING;
  it.payload.ullValue = (uintptr_t)nvtxDomainRegisterStringA(alpha, "{\"layer\": 1}");
  nvtxDomainMarkEx(alpha, &it);
}

static void attributes_of_events(void) {
  nvtxEventAttributes_t it = attributes("coloured");
  it.colorType = NVTX_COLOR_ARGB;
  it.color = 0xFF112233;
  nvtxMarkEx(&it);
  it.color = 0;
  nvtxMarkEx(&it);
  it = attributes("of a category");
  it.category = 3;
  nvtxMarkEx(&it);
  nvtxDomainMarkEx(alpha, &it);
  it.category = 99;
  nvtxMarkEx(&it);
}

static void registered_texts(void) {
  nvtxStringHandle_t of_alpha = nvtxDomainRegisterStringA(alpha, "registered");
  nvtxEventAttributes_t it = registered(of_alpha);
  it.category = 3;
  it.colorType = NVTX_COLOR_ARGB;
  it.color = 0xFF00FF00;
  it.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  it.payload.iValue = -7;
  nvtxDomainRangePushEx(alpha, &it);
  nvtxDomainRangePop(alpha);
  it = registered(nvtxDomainRegisterStringW(beta, L"registered wide"));
  nvtxDomainMarkEx(beta, &it);
  it = registered(nvtxDomainRegisterStringA(NULL, "registered in the default domain"));
  nvtxMarkEx(&it);
  it = registered(of_alpha);
  nvtxDomainMarkEx(beta, &it); /* of another domain */
}

static void ranges(void) {
  nvtxRangePushA("outer");
  nvtxRangePushW(L"inner");
  usleep(1000);
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangePop(); /* none is open */
  nvtxRangeId_t first = nvtxRangeStartA("first"), second = nvtxRangeStartW(L"second");
  nvtxRangeEnd(first);
  nvtxRangeEnd(second);
  nvtxRangeEnd(second); /* has ended */
  nvtxEventAttributes_t it = attributes("of a domain");
  it.category = 7;
  nvtxDomainRangeEnd(beta, nvtxDomainRangeStartEx(beta, &it));
  crossing = nvtxRangeStartA("ends on another thread");
  it = attributes("ends on another thread, too");
  crossing_in_domain = nvtxDomainRangeStartEx(alpha, &it);
  nvtxRangeStartA("never ends");
  it = attributes("is never popped");
  nvtxDomainRangePushEx(alpha, &it);
}

static void *worker(void *unused) {
  name_this_thread("worker");
  nvtxRangeEnd(crossing);
  nvtxDomainRangeEnd(alpha, crossing_in_domain);
  nvtxRangePushA("of the worker");
  nvtxMarkA("mark of the worker");
  nvtxRangePop();
  nvtxRangePushA("open when the worker ends");
  return unused;
}

static void everything(void) {
  name_this_thread("main");
  nvtxNameCategoryA(3, "three");
  nvtxNameCategoryW(4, L"four");
  alpha = nvtxDomainCreateA("Alpha");
  beta = nvtxDomainCreateW(L"Beta");
  nvtxDomainNameCategoryA(alpha, 3, "three of Alpha");
  texts();
  payloads();
  attributes_of_events();
  registered_texts();
  ranges();
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
  pthread_join(thread, NULL);
  nvtxDomainDestroy(beta);
  nvtxDomainCreateA("Alpha");
  nvtxDomainCreateA("Beta"); /* again */
  nvtxNameCategoryA(3, "three renamed");
}

int main(int argc, char **argv) {
  everything();
  if (argc == 1) {
    if (fork() == 0) {
      execl(argv[0], argv[0], "child", (char *)NULL);
      _exit(1);
    }
    wait(NULL);
  }
  nvtxRangePushA("open when the process ends");
  return 0;
}
