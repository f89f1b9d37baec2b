// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 120
#include "opencl_rival.h"

#include <CL/cl.h>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr char kSource[] = R"(
__kernel void nothing() {}
__kernel void saxpy(float a, __global const float* x, __global float* y, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
__kernel void tiled_product(__global const float* a, __global const float* b, __global float* c, int n) {
  __local float tile_a[16][16], tile_b[16][16];
  int tx = get_local_id(0), ty = get_local_id(1);
  int row = get_group_id(1) * 16 + ty, column = get_group_id(0) * 16 + tx;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[ty][tx] = a[row * n + k + tx];
    tile_b[ty][tx] = b[(k + ty) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < 16; ++j) sum += tile_a[ty][j] * tile_b[j][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}
)";

void check(cl_int code, const char* what) {
  if (code != CL_SUCCESS)
    throw std::runtime_error(std::string(what) + " failed with " + std::to_string(code));
}

}  // namespace

struct OpenClRival::Impl {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel nothing = nullptr, saxpy = nullptr, product = nullptr;
  cl_mem x = nullptr, y = nullptr, z = nullptr;
  int count = 0, size = 0;

  cl_kernel make_kernel(const char* name) const {
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(program, name, &code);
    check(code, name);
    return kernel;
  }
  cl_mem make_buffer(std::size_t floats) const {
    cl_int code = CL_SUCCESS;
    cl_mem buffer =
        clCreateBuffer(context, CL_MEM_READ_WRITE, floats * sizeof(float), nullptr, &code);
    check(code, "clCreateBuffer");
    const float one = 1.0f;
    check(clEnqueueFillBuffer(queue, buffer, &one, sizeof one, 0, floats * sizeof(float), 0,
                              nullptr, nullptr),
          "fill");
    return buffer;
  }
  void launch(cl_kernel kernel, cl_uint dimensions, const std::size_t* global,
              const std::size_t* local) const {
    check(clEnqueueNDRangeKernel(queue, kernel, dimensions, nullptr, global, local, 0, nullptr,
                                 nullptr),
          "launch");
    check(clFinish(queue), "clFinish");
  }
};

OpenClRival::OpenClRival(int saxpy_count, int product_size) : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.count = saxpy_count;
  impl.size = product_size;
  cl_platform_id platform = nullptr;
  cl_uint platforms = 0;
  if (clGetPlatformIDs(1, &platform, &platforms) != CL_SUCCESS || platforms == 0) {
    throw std::runtime_error("no OpenCL platform (Debian package pocl-opencl-icd)");
  }
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &impl.device, nullptr), "clGetDeviceIDs");
  cl_int code = CL_SUCCESS;
  impl.context = clCreateContext(nullptr, 1, &impl.device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  impl.queue = clCreateCommandQueue(impl.context, impl.device, 0, &code);
  check(code, "clCreateCommandQueue");
  const char* source = kSource;
  impl.program = clCreateProgramWithSource(impl.context, 1, &source, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  check(clBuildProgram(impl.program, 1, &impl.device, "", nullptr, nullptr), "clBuildProgram");
  impl.nothing = impl.make_kernel("nothing");
  impl.saxpy = impl.make_kernel("saxpy");
  impl.product = impl.make_kernel("tiled_product");
  impl.x = impl.make_buffer(static_cast<std::size_t>(saxpy_count));
  impl.y = impl.make_buffer(static_cast<std::size_t>(saxpy_count));
  impl.z = impl.make_buffer(static_cast<std::size_t>(product_size) *
                            static_cast<std::size_t>(product_size));
  check(clFinish(impl.queue), "clFinish");
}

OpenClRival::~OpenClRival() {
  for (cl_kernel kernel : {impl_->nothing, impl_->saxpy, impl_->product}) {
    if (kernel != nullptr) clReleaseKernel(kernel);
  }
  for (cl_mem buffer : {impl_->x, impl_->y, impl_->z}) {
    if (buffer != nullptr) clReleaseMemObject(buffer);
  }
  if (impl_->program != nullptr) clReleaseProgram(impl_->program);
  if (impl_->queue != nullptr) clReleaseCommandQueue(impl_->queue);
  if (impl_->context != nullptr) clReleaseContext(impl_->context);
}

std::string OpenClRival::device_name() const {
  std::vector<char> name(256);
  check(clGetDeviceInfo(impl_->device, CL_DEVICE_NAME, name.size(), name.data(), nullptr),
        "clGetDeviceInfo");
  return name.data();
}

void OpenClRival::launch_nothing_and_wait() {
  const std::size_t size = 32;
  impl_->launch(impl_->nothing, 1, &size, &size);
}

void OpenClRival::saxpy_and_wait(float a) {
  clSetKernelArg(impl_->saxpy, 0, sizeof a, &a);
  clSetKernelArg(impl_->saxpy, 1, sizeof impl_->x, &impl_->x);
  clSetKernelArg(impl_->saxpy, 2, sizeof impl_->y, &impl_->y);
  clSetKernelArg(impl_->saxpy, 3, sizeof impl_->count, &impl_->count);
  const auto global = static_cast<std::size_t>(impl_->count);
  const std::size_t local = 256;
  impl_->launch(impl_->saxpy, 1, &global, &local);
}

void OpenClRival::product_and_wait() {
  clSetKernelArg(impl_->product, 0, sizeof impl_->x, &impl_->x);
  clSetKernelArg(impl_->product, 1, sizeof impl_->y, &impl_->y);
  clSetKernelArg(impl_->product, 2, sizeof impl_->z, &impl_->z);
  clSetKernelArg(impl_->product, 3, sizeof impl_->size, &impl_->size);
  const auto size = static_cast<std::size_t>(impl_->size);
  const std::size_t global[2] = {size, size}, local[2] = {16, 16};
  impl_->launch(impl_->product, 2, global, local);
}

}  // namespace bench
