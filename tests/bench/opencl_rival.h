// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace bench {

/// The same three kernels on the first OpenCL device (PoCL where Debian's package is installed).
class OpenClRival {
 public:
  /// \throws std::runtime_error when there is no OpenCL device, with the reason.
  OpenClRival(int saxpy_count, int product_size);
  ~OpenClRival();

  std::string device_name() const;
  void launch_nothing_and_wait();
  void saxpy_and_wait(float a);
  void product_and_wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bench
