/* As many NVTX events as the first argument says, a million without one. Of ten, six are nested ranges with a text, two
   have a registered one, one is a mark with a payload, and one a start/end range with a colour and a category. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static nvtxEventAttributes_t attributes(void) {
  nvtxEventAttributes_t it = {0};
  it.version = NVTX_VERSION;
  it.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  it.messageType = NVTX_MESSAGE_TYPE_ASCII;
  return it;
}

int main(int argc, char **argv) {
  long n_events = argc > 1 ? atol(argv[1]) : 1000000;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("engine");
  nvtxEventAttributes_t named = attributes(), mark = attributes(), request = attributes();
  named.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  named.message.registered = nvtxDomainRegisterStringA(domain, "forward");
  mark.message.ascii = "loss";
  mark.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  request.message.ascii = "request";
  request.category = 7;
  request.colorType = NVTX_COLOR_ARGB;
  request.color = 0xFF76B900;
  for (long step = 0; step < n_events / 10; step++) {
    char text[64];
    snprintf(text, sizeof text, "step %ld", step);
    nvtxRangePushA(text);
    nvtxRangePushA("load");
    nvtxRangePop();
    nvtxRangePushA("compute");
    nvtxRangePushA("attention");
    nvtxRangePop();
    nvtxRangePushA("mlp");
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePushA("optimizer");
    nvtxRangePop();
    nvtxDomainRangePushEx(domain, &named);
    nvtxDomainRangePushEx(domain, &named);
    nvtxDomainRangePop(domain);
    nvtxDomainRangePop(domain);
    mark.payload.dValue = step * 0.5;
    nvtxDomainMarkEx(domain, &mark);
    nvtxRangeEnd(nvtxRangeStartEx(&request));
    nvtxRangePop();
  }
  return 0;
}
