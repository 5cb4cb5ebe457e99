// NVTX, version 3: headers alone. It looks for a profiler once, and loads nothing if there is none.
#include <nvtx3/nvToolsExt.h>

#include "profiler.hpp"

namespace flywheel::detail {

void open_profiler_domain() {
  static void* const domain = nvtxDomainCreateA("flywheel");
  // Release: pairs with the acquire loads in start_range() and stop_range().
  profiler_domain.store(domain, std::memory_order_release);
}

std::uint64_t begin_range(void* domain, const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  const std::uint64_t range = nvtxDomainRangeStartEx(static_cast<nvtxDomainHandle_t>(domain), &attributes);
  return range ? range : ~std::uint64_t{0};  // a profiler may number from 0
}

void end_range(void* domain, std::uint64_t range) {
  nvtxDomainRangeEnd(static_cast<nvtxDomainHandle_t>(domain), ~range ? range : 0);
}

}  // namespace flywheel::detail
