// SPDX-License-Identifier: Apache-2.0
// What the code objects in this folder are made of; see README.md.
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

struct Padded {
  float a;
  double b;
};
struct Three {
  float x, y, z;
};

extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
          __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
}

template <typename T, int N>
__global__ void scale(T* values, T factor, unsigned long long count) {
  unsigned long long i = __builtin_amdgcn_workitem_id_x();
  if (i < count) values[i] *= factor * N;
}
template __global__ void scale<float, 3>(float*, float, unsigned long long);

extern "C" __global__ void mixed(bool flag, short small, Three three, double large, Padded padded,
                                 int* out) {
  __shared__ int kept[64];
  unsigned i = __builtin_amdgcn_workitem_id_x();
  kept[i & 63] = flag ? small : static_cast<int>(three.x + padded.a);
  __builtin_amdgcn_s_barrier();
  out[i] = kept[(i + 1) & 63] + static_cast<int>(large + padded.b);
}
