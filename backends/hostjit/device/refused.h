// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// What the host cannot do, declared so that using it is an error at the user's own position.

#define LOCKSTEP_WARP(name)                                                                     \
  template <class... Arguments>                                                                 \
  __attribute__((unavailable(                                                                   \
      "the host backend runs the threads of a block one after the other and has no warps; use " \
      "shared memory and __syncthreads(), or run this kernel on a GPU"))) inline int            \
  name(Arguments...) {                                                                          \
    return 0;                                                                                   \
  }

LOCKSTEP_WARP(__shfl_sync)
LOCKSTEP_WARP(__shfl_up_sync)
LOCKSTEP_WARP(__shfl_down_sync)
LOCKSTEP_WARP(__shfl_xor_sync)
LOCKSTEP_WARP(__shfl)
LOCKSTEP_WARP(__shfl_up)
LOCKSTEP_WARP(__shfl_down)
LOCKSTEP_WARP(__shfl_xor)
LOCKSTEP_WARP(__ballot_sync)
LOCKSTEP_WARP(__any_sync)
LOCKSTEP_WARP(__all_sync)
LOCKSTEP_WARP(__ballot)
LOCKSTEP_WARP(__any)
LOCKSTEP_WARP(__all)
LOCKSTEP_WARP(__activemask)
LOCKSTEP_WARP(__syncwarp)
LOCKSTEP_WARP(__match_any_sync)
LOCKSTEP_WARP(__match_all_sync)
LOCKSTEP_WARP(__reduce_add_sync)
LOCKSTEP_WARP(__reduce_min_sync)
LOCKSTEP_WARP(__reduce_max_sync)
LOCKSTEP_WARP(__reduce_and_sync)
LOCKSTEP_WARP(__reduce_or_sync)
LOCKSTEP_WARP(__reduce_xor_sync)
#undef LOCKSTEP_WARP

#define LOCKSTEP_TEXTURE(name)                                                    \
  template <class... Types, class... Arguments>                                   \
  __attribute__((                                                                 \
      unavailable("the host backend has no textures and surfaces; read the data " \
                  "through a pointer, or run this kernel on a GPU"))) inline int  \
  name(Arguments...) {                                                            \
    return 0;                                                                     \
  }
LOCKSTEP_TEXTURE(tex1D)
LOCKSTEP_TEXTURE(tex1Dfetch)
LOCKSTEP_TEXTURE(tex2D)
LOCKSTEP_TEXTURE(tex3D)
LOCKSTEP_TEXTURE(surf1Dread)
LOCKSTEP_TEXTURE(surf2Dread)
LOCKSTEP_TEXTURE(surf1Dwrite)
LOCKSTEP_TEXTURE(surf2Dwrite)
#undef LOCKSTEP_TEXTURE
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;
