// nanosleep() for tests under ThreadSanitizer, in place of its own. That one notes for each thread how far it had come when the
// caller slept, so that a report can say "as if synchronized via sleep"; an emulated GPU has a thousand threads, and a host
// thread that waits for it spends more time on that than on sleeping.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int nanosleep(const timespec* wanted, timespec* left) {
  return static_cast<int>(syscall(SYS_nanosleep, wanted, left));
}
