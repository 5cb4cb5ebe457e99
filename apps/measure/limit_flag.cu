// limit.flag_round_trip: the least it can take to ask a running kernel something and hear back.
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "apps/measure/kernel_timer.cuh"
#include "apps/measure/limits.hpp"

namespace measure {
namespace {

// Each flag has one writer and cache lines of its own: across PCIe only plain loads and stores are atomic.
struct alignas(256) Flag {
  unsigned value;
};

struct Mailbox {
  Flag request;  // the host writes it
  Flag reply;    // the GPU writes it
};

using SystemWord = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Answers each request with its own number. If a request never comes it gives up, and the host, waiting
// longer, says so.
__global__ void __launch_bounds__(32) echo(KernelReport* report, Mailbox* mail, unsigned exchanges) {
  const SystemWord request(mail->request.value), reply(mail->reply.value);
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i <= exchanges; ++i) {
    // Acquire pairs with the host's release store of the request; release pairs with its acquire load of the
    // reply.
    if (!spin_until(report, [&] { return request.load(cuda::memory_order_acquire) == i; })) return;
    reply.store(i, cuda::memory_order_release);
  }
}

// Longer than the kernel's own patience, so that when this gives up the kernel has ended and nothing is
// stuck.
constexpr double kPatienceUs = 5e6;

bool wait_for(const std::atomic_ref<unsigned>& flag, unsigned number) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int poll = 0; poll < 1024; ++poll) {
      if (flag.load(std::memory_order_acquire) == number) return true;
    }
  } while (microseconds_since(begin) < kPatienceUs);
  return false;
}

void exchange(Mailbox& mail, unsigned number) {
  std::atomic_ref<unsigned>(mail.request.value).store(number, std::memory_order_release);
  if (!wait_for(std::atomic_ref<unsigned>(mail.reply.value), number)) {
    throw std::runtime_error("limit.flag_round_trip: the GPU did not answer request " + std::to_string(number) +
                             " within five seconds. Leave the GPU to this program alone and run it again");
  }
}

// A launch that waits for its kernel would wait for a kernel that waits for us.
void refuse_blocking_launches() {
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) != "0") {
    throw std::runtime_error(
        "limit.flag_round_trip talks to a kernel while it runs, and CUDA_LAUNCH_BLOCKING forbids "
        "that: unset it");
  }
}

}  // namespace

Samples flag_round_trip(int samples) {
  refuse_blocking_launches();
  constexpr int kWarmUp = 1000;
  const MappedObject<Mailbox> mail;
  const DeviceBuffer<KernelReport> report(1);
  const Stream stream;
  report.fill(0, stream);
  echo<<<1, 32, 0, stream.get()>>>(report.get(), mail.device(), static_cast<unsigned>(kWarmUp + samples));
  check_cuda(cudaGetLastError(), "launch of echo");
  unsigned number = 0;
  const Samples times = time_each(kWarmUp, samples, [&] { exchange(mail.host(), ++number); });
  stream.synchronize();
  return times;
}

}  // namespace measure
