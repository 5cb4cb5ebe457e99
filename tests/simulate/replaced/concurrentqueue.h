// Lets moodycamel's queue know threads by std::this_thread::get_id(), as it does on ARM: all fibers share one thread's
// thread_local addresses.
#pragma once

#include <atomic>
#include <thread>

#define _M_ARM 1
#pragma GCC system_header  // of what follows, #include_next is an extension
#include_next <concurrentqueue.h>
#undef _M_ARM
