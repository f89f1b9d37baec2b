// SPDX-License-Identifier: Apache-2.0

// Linked into every test program of a ThreadSanitizer build.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  // When a thread has ended, the C library frees its variables of dynamically loaded libraries from
  // whatever thread next reuses its stack. It orders that by means the sanitizer does not see.
  return "race:_dl_deallocate_tls\n";
}
