/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCKSTEP_BACKEND_H_
#define LOCKSTEP_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

/* The C interface between Lockstep and a backend plugin. Free-standing: includes nothing of ours.
 *
 * A plugin is a shared library that exports one symbol, lockstep_backend_query.
 *
 * Versions. Host and plugin each support a range of interface versions; the highest common one is
 * used. Structures start with their size in bytes as their maker knows it. Fields are only ever
 * appended. A reader ignores what lies beyond the size it knows and treats what lies beyond the
 * size it was given as zero. A slot that is null is not supported: the host answers
 * LOCKSTEP_E_NOT_SUPPORTED for it, except where the slot's comment names another policy.
 *
 * Errors. Slots return a code and, when it is not LOCKSTEP_OK, fill the caller's error record.
 * The record may be null. Nothing throws across this border. A failed call has no effect, and its
 * outputs are not to be read.
 *
 * Threads. Every slot may be called from any thread at any time, a fresh one too. A plugin never
 * relies on ambient state (a current device or context) and leaves it as it found it. Handles may
 * be used by several threads at once; destroying one while another call uses it is the caller's
 * mistake.
 *
 * Lifetime. The host's table outlives every plugin; plugins are never unloaded. Objects are
 * destroyed by the host at the latest before the device they belong to. destroy slots return
 * nothing, accept null, and do not fail: work in flight that uses the object either completes
 * first or is kept valid. They may be called while the process exits, when a driver may be gone:
 * then they do nothing.
 *
 * Order. Work is executed in the order in which it was enqueued on a stream. Errors of work
 * surface at the next synchronise of that stream (or device) and stay; of a destroyed one, once.
 *
 * Capture. "Capture: legal" says that the slot may be called while a stream captures, "illegal"
 * that it then returns LOCKSTEP_E_ILLEGAL_DURING_CAPTURE and invalidates the capture concerned, by
 * the rules of the driver in question (docs/capture.md). The host backend follows CUDA's.
 */

#ifdef __cplusplus
extern "C" {
#endif

/* Interface versions are major * 1000 + minor. The major changes when something is taken away. */
#define LOCKSTEP_BACKEND_ABI_VERSION 1000u
#define LOCKSTEP_BACKEND_ABI_MIN 1000u
#define LOCKSTEP_BACKEND_ABI_MAX 1000u

typedef int32_t lockstep_code;
enum {
  LOCKSTEP_OK = 0,
  LOCKSTEP_E_INVALID_ARGUMENT = 1,
  LOCKSTEP_E_OUT_OF_MEMORY = 2,
  LOCKSTEP_E_NOT_SUPPORTED = 3,
  LOCKSTEP_E_UNAVAILABLE = 4, /* no driver, no device, or after a fork */
  LOCKSTEP_E_ILLEGAL_DURING_CAPTURE = 5,
  LOCKSTEP_E_CAPTURE_INVALIDATED = 6,
  LOCKSTEP_E_STALE_BUFFER = 7,
  LOCKSTEP_E_MISMATCH = 8,
  LOCKSTEP_E_DEVICE_LOST = 9, /* sticky */
  LOCKSTEP_E_TIMEOUT = 10,
  LOCKSTEP_E_COMPILATION_FAILED = 11,
  LOCKSTEP_E_NOT_FOUND = 12,
  LOCKSTEP_E_LAUNCH_FAILED = 13,
  LOCKSTEP_E_NOT_READY = 14,
  LOCKSTEP_E_INPUT_OUTPUT = 17,
  LOCKSTEP_E_INCOMPATIBLE_PLUGIN = 18,
  LOCKSTEP_E_INTERNAL = 19
};

/* Why a call was illegal during capture, or why a capture ended without a graph. */
typedef uint32_t lockstep_capture_rule;
enum {
  LOCKSTEP_CAPTURE_RULE_NONE = 0,
  LOCKSTEP_CAPTURE_RULE_UNSUPPORTED = 1, /* the call itself (synchronise, allocate, query, …) */
  LOCKSTEP_CAPTURE_RULE_INVALIDATED = 2, /* an earlier call had invalidated it */
  LOCKSTEP_CAPTURE_RULE_MERGE = 3,       /* would join two separate captures */
  LOCKSTEP_CAPTURE_RULE_UNMATCHED = 4,   /* ended on a stream that did not begin it */
  LOCKSTEP_CAPTURE_RULE_UNJOINED = 5,    /* forked work was not joined back */
  LOCKSTEP_CAPTURE_RULE_ISOLATION = 6,   /* depends on work outside the capture */
  LOCKSTEP_CAPTURE_RULE_IMPLICIT = 7,    /* legacy stream used while a blocking stream captures */
  LOCKSTEP_CAPTURE_RULE_CAPTURED_EVENT = 8, /* host asked for an event recorded in a capture */
  LOCKSTEP_CAPTURE_RULE_WRONG_THREAD = 9    /* ended by another thread than began it */
};

/* Filled by the callee; the caller sets struct_size and may point `log` at a buffer. Texts are
 * UTF-8, always terminated, cut when too long. */
typedef struct lockstep_error {
  size_t struct_size;
  lockstep_code code;
  lockstep_capture_rule capture_rule;
  int64_t native_code;
  char native_name[64];
  char call[64];      /* the driver call that failed */
  char message[1024]; /* what happened and what to do about it */
  char* log;          /* optional, caller-owned: a compiler's whole log */
  size_t log_capacity;
  size_t log_size; /* bytes the log needed without the terminator; may exceed the capacity */
} lockstep_error;

/* Opaque handles, owned by the plugin. */
typedef struct lockstep_device lockstep_device;
typedef struct lockstep_stream lockstep_stream;
typedef struct lockstep_event lockstep_event;
typedef struct lockstep_module lockstep_module;
typedef struct lockstep_kernel lockstep_kernel; /* lives as long as its module */
typedef struct lockstep_graph lockstep_graph;
typedef struct lockstep_graph_exec lockstep_graph_exec;

typedef struct lockstep_dim3 {
  uint32_t x, y, z;
} lockstep_dim3;

/* An attribute list: what a later minor version, or one vendor only, adds to a call. An id that
 * the plugin does not know is LOCKSTEP_E_NOT_SUPPORTED, never ignored. */
typedef struct lockstep_attribute {
  uint32_t id;
  uint32_t size; /* bytes at value */
  const void* value;
} lockstep_attribute;

enum {                                                /* launch attributes */
       LOCKSTEP_LAUNCH_CLUSTER = 1,                   /* lockstep_dim3 */
       LOCKSTEP_LAUNCH_COOPERATIVE = 2,               /* uint32_t, 0 or 1 */
       LOCKSTEP_LAUNCH_PRIORITY = 3,                  /* int32_t */
       LOCKSTEP_LAUNCH_PROGRAMMATIC_SERIALIZATION = 4 /* uint32_t, 0 or 1 */
};

/* ---- The recorder: what the host offers -------------------------------------------------------
 *
 * A plugin reports every driver call that enqueues work, at its table of driver calls and nowhere
 * else: begin() before the call, end() after it. The host turns records into trace entries, on
 * another thread and later: begin copies all that the record points to.
 */

typedef uint32_t lockstep_record_kind; /* numbers of OperationKind */
enum {
  LOCKSTEP_RECORD_KERNEL = 0,
  LOCKSTEP_RECORD_MEMCPY = 1,
  LOCKSTEP_RECORD_MEMSET = 2,
  LOCKSTEP_RECORD_GRAPH_LAUNCH = 3,
  LOCKSTEP_RECORD_HOST_FUNC = 4,
  LOCKSTEP_RECORD_EVENT_RECORD = 5,
  LOCKSTEP_RECORD_EVENT_WAIT = 6,
  LOCKSTEP_RECORD_ALLOC = 7,
  LOCKSTEP_RECORD_FREE = 8,
  LOCKSTEP_RECORD_SYNCHRONIZE = 9,
  LOCKSTEP_RECORD_MARK = 10,
  LOCKSTEP_RECORD_STREAM_MEMOP = 11,
  LOCKSTEP_RECORD_EXTERNAL_SEMAPHORE = 12,
  LOCKSTEP_RECORD_PREFETCH = 13,
  LOCKSTEP_RECORD_OPAQUE = 14
};

enum { /* flags, bits of EntryFlag */
       LOCKSTEP_RECORD_CAPTURED = 1u << 0,
       LOCKSTEP_RECORD_FAILED = 1u << 2,
       LOCKSTEP_RECORD_INTERNAL = 1u << 4,
       LOCKSTEP_RECORD_WARMUP = 1u << 5,
       LOCKSTEP_RECORD_DISABLED = 1u << 7 /* graph nodes only */
};

/* How a kernel takes one parameter. */
typedef struct lockstep_parameter {
  uint32_t offset; /* bytes from the start of the parameter buffer */
  uint32_t size;   /* bytes */
  uint8_t tag;     /* 0 scalar, 1 pointer, 2 by-value struct that may have padding, 255 unknown */
  uint8_t reserved[7];
} lockstep_parameter;

/* Direction numbers of MemcpyKind. */
enum {
  LOCKSTEP_COPY_NONE = 0,
  LOCKSTEP_COPY_HTOD = 1,
  LOCKSTEP_COPY_DTOH = 2,
  LOCKSTEP_COPY_DTOD = 3,
  LOCKSTEP_COPY_HTOH = 4
};

/* Identities (`stream`, `graph`, `allocation`, `event`) come from next_id() and are never used
 * twice in a process: a destroyed and recreated stream has a new one at the same address. */
typedef struct lockstep_record {
  size_t struct_size;
  lockstep_record_kind kind;
  uint32_t flags;
  uint32_t name;   /* from intern(): kernel name, driver call, or mark text */
  int32_t device;  /* ordinal within the backend */
  uint64_t stream; /* identity, 0 = none */
  union {
    struct {
      lockstep_dim3 grid, block, cluster; /* cluster 0,0,0 or 1,1,1 = none */
      uint32_t cooperative;
      uint64_t shared_bytes;
      uint32_t attributes;      /* from intern(): compact JSON object text, 0 = none */
      uint32_t parameter_count; /* UINT32_MAX = layout not known */
      const lockstep_parameter* parameters;
      const void* const* arguments; /* one pointer a parameter, as drivers take them */
    } kernel;
    struct {
      uint32_t direction;
      int32_t peer_device;                               /* -1 = none */
      uint64_t width, height, depth;                     /* bytes, rows, planes; not folded */
      uint64_t source, source_pitch, source_slice_pitch; /* address, bytes, bytes */
      uint64_t destination, destination_pitch, destination_slice_pitch;
    } copy;
    struct {
      uint64_t destination, pitch; /* pitch in bytes */
      uint64_t width, height;      /* bytes, rows */
      uint32_t value, value_size;
    } set;
    struct {
      uint64_t graph; /* identity of the executable */
      uint32_t version;
    } graph_launch;
    struct {
      /* Identity of one record of an event: a wait names the record it binds, and so does a
       * synchronise of an event (0 in any other synchronise). */
      uint64_t event;
    } event;
    struct {
      uint64_t allocation, address, bytes;
      uint32_t memory_kind; /* LOCKSTEP_MEMORY_* */
    } memory;
    struct {
      uint32_t mark; /* 0 instant, 1 push, 2 pop */
    } mark;
    uint64_t reserved[24];
  } of;
} lockstep_record;

typedef struct lockstep_graph_edge {
  uint32_t from, to;
  uint32_t programmatic; /* 0 full, 1 programmatic */
} lockstep_graph_edge;

typedef struct lockstep_recorder {
  size_t struct_size;
  /* Non-zero while entries are wanted. Read it before anything else: recording that is off costs
   * one load and one branch (`__atomic_load_n(active, __ATOMIC_RELAXED)`: other threads change it).
   * Stream, graph and allocation reports are wanted at all times. */
  const volatile uint32_t* active;
  /* A process-wide unique number, from 1. */
  uint64_t (*next_id)(void);
  /* The number of a text, the same for equal bytes. Takes a lock: call it when objects are made,
   * not when they are launched. Texts are never forgotten. */
  uint32_t (*intern)(const char* text, size_t length);
  /* Before the driver call. Takes the process-wide sequence number and copies the record, of which
   * struct_size may leave out what lies behind the group of its kind. Null
   * when nothing is wanted of it, also for kinds alloc and free, whose entries memory() makes.
   * Waits when the calling thread's ring is full. */
  void* (*begin)(const lockstep_record* record);
  /* After the driver call, on the same thread, with further flags (captured, failed). Accepts a
   * null slot. graph and node bind a captured entry to its node: 0 and -1 when not captured. */
  void (*end)(void* slot, uint32_t flags, uint64_t graph, int32_t node);
  /* A stream was made, or met for the first time. context tells contexts of one device apart.
   * blocking: 0 does not synchronise with the legacy stream, 1 does, 2 is the legacy stream. */
  void (*define_stream)(uint64_t stream, int32_t device, uint64_t context, int blocking);
  /* An executable graph was made or changed: version counts from 1 and is defined before its first
   * launch. The two newest are kept, so that a launch must name one of these: that of an older one
   * is recorded as of an undefined graph. Nodes in creation order (kernel, memcpy, memset,
   * host_func, event and memory records); empty nodes are kept as LOCKSTEP_RECORD_MARK named
   * "empty"; child graphs are inlined. */
  void (*define_graph)(uint64_t graph, uint32_t version, const lockstep_record* nodes,
                       uint32_t node_count, const lockstep_graph_edge* edges, uint32_t edge_count);
  /* Allocations and frees are always reported, whether active or not, so that pointers can be
   * named by buffer and offset; `record` is of kind alloc or free. An allocation is reported after
   * the driver call, a free before it: in between another thread may be given the address. */
  void (*memory)(const lockstep_record* record);
} lockstep_recorder;

enum {
  LOCKSTEP_LOG_ERROR = 0,
  LOCKSTEP_LOG_WARNING = 1,
  LOCKSTEP_LOG_INFO = 2,
  LOCKSTEP_LOG_DEBUG = 3
};

/* What the host hands to a plugin. Valid as long as the process lives. */
typedef struct lockstep_host {
  size_t struct_size;
  uint32_t abi_min, abi_max; /* what the host supports */
  const char* host_version;  /* for messages */
  void (*log)(uint32_t level, const char* message);
  const lockstep_recorder* recorder;
} lockstep_host;

/* ---- Devices ----------------------------------------------------------------------------------
 */

typedef struct lockstep_device_info {
  size_t struct_size;
  char name[256]; /* a simulated device's name begins with "SIMULATED " */
  char arch[64];  /* sm_90, gfx90a:sramecc+:xnack-, x86_64 */
  char uuid[64];  /* "" = not known */
  char bus_id[32];
  char driver[64]; /* driver version for people */
  uint64_t memory_bytes;
  uint32_t simulated; /* 0 or 1 */
  uint32_t integrated;
} lockstep_device_info;

typedef uint32_t lockstep_device_attribute;
enum { /* values are int64; an attribute that a device does not have is NOT_SUPPORTED */
       LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK = 1,
       LOCKSTEP_ATTR_MAX_BLOCK_X = 2,
       LOCKSTEP_ATTR_MAX_BLOCK_Y = 3,
       LOCKSTEP_ATTR_MAX_BLOCK_Z = 4,
       LOCKSTEP_ATTR_MAX_GRID_X = 5,
       LOCKSTEP_ATTR_MAX_GRID_Y = 6,
       LOCKSTEP_ATTR_MAX_GRID_Z = 7,
       LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK = 8,       /* bytes without opting in */
       LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN = 9, /* bytes with kernel_set_max_dynamic_shared */
       LOCKSTEP_ATTR_WARP_SIZE = 10,                 /* threads; 1 on the host backend */
       LOCKSTEP_ATTR_MULTIPROCESSOR_COUNT = 11,
       LOCKSTEP_ATTR_STREAM_ORDERED_MEMORY = 12, /* 0 or 1, like all below */
       LOCKSTEP_ATTR_COOPERATIVE_LAUNCH = 13,
       LOCKSTEP_ATTR_CLUSTER_LAUNCH = 14,
       LOCKSTEP_ATTR_GRAPHS = 15,
       LOCKSTEP_ATTR_CAPTURE = 16,
       LOCKSTEP_ATTR_GRAPH_MEMORY_NODES = 17,
       LOCKSTEP_ATTR_COMPILES_SOURCE = 18,
       LOCKSTEP_ATTR_LOWEST_STREAM_PRIORITY = 19, /* numbers; lower is more urgent */
       LOCKSTEP_ATTR_HIGHEST_STREAM_PRIORITY = 20,
       LOCKSTEP_ATTR_MAX_GRID_TIMES_BLOCK = 21, /* threads in each dimension; HIP: 2^32 - 1 */
       LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MAJOR = 22,
       LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MINOR = 23
};

/* ---- Memory ------------------------------------------------------------------------------------
 */

enum {
  LOCKSTEP_MEMORY_UNKNOWN = 0, /* not known to the driver: pageable host memory */
  LOCKSTEP_MEMORY_DEVICE = 1,
  LOCKSTEP_MEMORY_PINNED = 2, /* page-locked host memory that the device can reach */
  LOCKSTEP_MEMORY_MANAGED = 3
};

typedef struct lockstep_allocation_desc {
  size_t struct_size;
  uint64_t bytes;       /* > 0 */
  uint32_t memory_kind; /* LOCKSTEP_MEMORY_DEVICE or _PINNED */
  uint32_t reserved;
  lockstep_stream* stream; /* not null: stream-ordered; becomes a node while that stream captures */
  const lockstep_attribute* attributes;
  uint32_t attribute_count;
} lockstep_allocation_desc;

typedef struct lockstep_pointer_info {
  size_t struct_size;
  uint32_t memory_kind;
  int32_t device;       /* -1 = none */
  uint64_t base, bytes; /* of the allocation it lies in; 0 when not known */
} lockstep_pointer_info;

/* A copy of width bytes × height rows × depth planes. Directions are found from the pointers.
 * expected_direction (LOCKSTEP_COPY_*, NONE = whatever it is) that disagrees is INVALID_ARGUMENT.
 */
typedef struct lockstep_copy_desc {
  size_t struct_size;
  const void* source;
  void* destination;
  uint64_t width, height, depth;             /* bytes, rows, planes */
  uint64_t source_pitch, source_slice_pitch; /* bytes; 0 = packed */
  uint64_t destination_pitch, destination_slice_pitch;
  uint32_t expected_direction;
  int32_t source_device,
      destination_device; /* ordinals for a peer copy; -1 = found from pointers */
} lockstep_copy_desc;

typedef struct lockstep_set_desc {
  size_t struct_size;
  void* destination;
  uint64_t width, height, depth; /* ELEMENTS of value_size bytes, rows, planes */
  uint64_t pitch, slice_pitch;   /* bytes; 0 = packed */
  uint32_t value;                /* masked to value_size */
  uint32_t value_size;           /* 1, 2 or 4 */
} lockstep_set_desc;

/* ---- Modules and kernels ------------------------------------------------------------------------
 */

enum {
  LOCKSTEP_MODULE_SOURCE = 1, /* CUDA C++ / HIP C++ text, see lockstep/kernel.h */
  LOCKSTEP_MODULE_BINARY = 2, /* cubin, fatbin, code object, offload bundle; found by its bytes */
  LOCKSTEP_MODULE_PTX = 3
};

typedef struct lockstep_header {
  const char* name; /* as it stands in the #include */
  const char* text;
} lockstep_header;

typedef struct lockstep_module_desc {
  size_t struct_size;
  uint32_t format; /* LOCKSTEP_MODULE_* */
  uint32_t reserved;
  const void* data;        /* source and PTX: terminated text */
  uint64_t bytes;          /* without the terminator */
  const char* source_name; /* for messages; null = "kernel.cu" */
  /* Source only: name expressions of every kernel that will be asked for, e.g. "scale<float, 3>".
   * Kernels that were not named may be missing. */
  const char* const* kernels;
  uint32_t kernel_count;
  const char* const* options; /* compiler options: -D, -I, -std, and what the compiler knows */
  uint32_t option_count;
  const lockstep_header* headers; /* lockstep/kernel.h is always there */
  uint32_t header_count;
} lockstep_module_desc;

typedef struct lockstep_kernel_info {
  size_t struct_size;
  const char* name; /* as the driver reports it; valid as long as the module */
  uint32_t max_threads_per_block;
  uint32_t static_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t registers_per_thread;        /* 0 = not known */
  uint32_t parameter_count;             /* UINT32_MAX = layout not known */
  const lockstep_parameter* parameters; /* valid as long as the module */
  uint32_t max_dynamic_shared_bytes;    /* as it stands now */
} lockstep_kernel_info;

typedef struct lockstep_launch_desc {
  size_t struct_size;
  lockstep_kernel* kernel;
  lockstep_dim3 grid, block;    /* blocks, threads; each at least 1 */
  uint64_t shared_bytes;        /* dynamic */
  const void* const* arguments; /* one pointer a parameter; copied before the call returns */
  uint32_t argument_count;
  /* What the caller knows of each argument (offset ignored); null = take the kernel's layout. A
   * plugin uses its tags where its own layout does not tell pointers. */
  const lockstep_parameter* parameters;
  const lockstep_attribute* attributes; /* LOCKSTEP_LAUNCH_* */
  uint32_t attribute_count;
} lockstep_launch_desc;

/* ---- Streams, capture, graphs
 * -------------------------------------------------------------------- */

enum { LOCKSTEP_STREAM_NON_BLOCKING = 1u << 0 /* does not synchronise with the legacy stream */ };

typedef struct lockstep_stream_desc {
  size_t struct_size;
  uint32_t flags;
  int32_t priority;
} lockstep_stream_desc;

enum { LOCKSTEP_STREAM_LEGACY = 1, LOCKSTEP_STREAM_PER_THREAD = 2 };

enum { LOCKSTEP_EVENT_TIMING = 1u << 0 };

enum {
  LOCKSTEP_CAPTURE_GLOBAL = 0,
  LOCKSTEP_CAPTURE_THREAD_LOCAL = 1,
  LOCKSTEP_CAPTURE_RELAXED = 2
};
enum {
  LOCKSTEP_CAPTURE_NOT_CAPTURING = 0,
  LOCKSTEP_CAPTURE_ACTIVE = 1,
  LOCKSTEP_CAPTURE_IS_INVALIDATED = 2
};

/* Runs on a thread of the driver, in stream order. Must not call the device. */
typedef void (*lockstep_host_function)(void* user_data);

enum {
  LOCKSTEP_NODE_KERNEL = 1,
  LOCKSTEP_NODE_COPY = 2,
  LOCKSTEP_NODE_SET = 3,
  LOCKSTEP_NODE_HOST = 4,
  LOCKSTEP_NODE_EMPTY = 5,
  LOCKSTEP_NODE_CHILD_GRAPH = 6,
  LOCKSTEP_NODE_EVENT_RECORD = 7,
  LOCKSTEP_NODE_EVENT_WAIT = 8,
  LOCKSTEP_NODE_ALLOC = 9,
  LOCKSTEP_NODE_FREE = 10,
  LOCKSTEP_NODE_OTHER = 99
};

/* A node to add: exactly the description that `kind` names is set. Everything is copied. */
typedef struct lockstep_node_desc {
  size_t struct_size;
  uint32_t kind; /* LOCKSTEP_NODE_* */
  uint32_t reserved;
  const lockstep_launch_desc* launch;
  const lockstep_copy_desc* copy;
  const lockstep_set_desc* set; /* depth 1: one node a plane */
  lockstep_host_function function;
  void* user_data;
  lockstep_graph* child; /* cloned */
  lockstep_event* event;
} lockstep_node_desc;

/* A node as listed. Pointers are valid until the graph changes or is destroyed. */
typedef struct lockstep_node_info {
  size_t struct_size;
  uint32_t kind;
  uint32_t reserved;
  const lockstep_record*
      record;            /* what it does, as define_graph reports it; null for a child graph */
  lockstep_graph* child; /* owned by the graph */
} lockstep_node_info;

enum { /* result of graph_exec_update */
       LOCKSTEP_UPDATE_DONE = 0,
       LOCKSTEP_UPDATE_TOPOLOGY_CHANGED = 1,
       LOCKSTEP_UPDATE_NODE_TYPE_CHANGED = 2,
       LOCKSTEP_UPDATE_FUNCTION_CHANGED = 3,
       LOCKSTEP_UPDATE_PARAMETERS_CHANGED = 4,
       LOCKSTEP_UPDATE_NOT_SUPPORTED = 5
};

/* ---- The plugin's table
 * --------------------------------------------------------------------------- */

typedef struct lockstep_backend {
  size_t struct_size;
  uint32_t abi_version; /* the one chosen from both ranges */
  int32_t priority;     /* `auto` takes the highest with a usable real device; host 0, GPUs 100 */
  const char* name;     /* "host", "cuda", "hip": lower case, [a-z0-9_] */
  const char* vendor;
  const char* version; /* of the plugin */

  /* Starts the driver. Idempotent and thread-safe; a failure is remembered and given again.
   * UNAVAILABLE with a message for people when there is no driver, or it is too old. Any other slot
   * may be called only after it succeeded. native_code and native_name stay empty when the driver's
   * library itself is not there, which `auto` passes over quietly; a driver that is there but does
   * not serve fills them with its answer and is worth a warning. A driver without a device is
   * NOT_FOUND with a message, or OK and a device_count of 0. */
  lockstep_code (*initialize)(lockstep_error*);
  lockstep_code (*device_count)(uint32_t* count, lockstep_error*);
  lockstep_code (*device_info)(uint32_t ordinal, lockstep_device_info*, lockstep_error*);
  lockstep_code (*device_attribute)(uint32_t ordinal, lockstep_device_attribute, int64_t* value,
                                    lockstep_error*);
  /* Null policy: what is decided by capability, in words, is unknown. JSON object text,
   * plugin-owned. */
  const char* (*capabilities)(uint32_t ordinal);

  /* Devices are shared and counted: open as often as you like, close as often. */
  lockstep_code (*device_open)(uint32_t ordinal, lockstep_device**, lockstep_error*);
  void (*device_close)(lockstep_device*);
  lockstep_code (*device_memory)(lockstep_device*, uint64_t* free_bytes, uint64_t* total_bytes,
                                 lockstep_error*);                        /* capture: legal */
  lockstep_code (*device_synchronize)(lockstep_device*, lockstep_error*); /* capture: illegal */
  /* CUcontext, hipDevice_t ordinal as pointer, null on host. Null policy: none. */
  void* (*device_native)(lockstep_device*);

  lockstep_code (*memory_allocate)(lockstep_device*, const lockstep_allocation_desc*, void**,
                                   lockstep_error*); /* capture: illegal unless stream-ordered */
  /* stream not null: stream-ordered. Null pointers are accepted. Capture: illegal unless
   * stream-ordered. */
  lockstep_code (*memory_free)(lockstep_device*, void*, lockstep_stream* stream, lockstep_error*);
  lockstep_code (*memory_register)(lockstep_device*, void*, uint64_t bytes,
                                   lockstep_error*); /* capture: illegal */
  lockstep_code (*memory_unregister)(lockstep_device*, void*, lockstep_error*);
  lockstep_code (*pointer_info)(lockstep_device*, const void*, lockstep_pointer_info*,
                                lockstep_error*); /* capture: legal */
  lockstep_code (*peer_access)(lockstep_device* from, lockstep_device* to, uint32_t* can_access,
                               lockstep_error*);
  lockstep_code (*peer_enable)(lockstep_device* from, lockstep_device* to,
                               lockstep_error*); /* enabling twice is fine */

  lockstep_code (*module_create)(lockstep_device*, const lockstep_module_desc*, lockstep_module**,
                                 lockstep_error*); /* capture: legal */
  void (*module_destroy)(lockstep_module*);
  void* (*module_native)(lockstep_module*);
  /* name: a name expression given at creation, or the driver's own (mangled) name. */
  lockstep_code (*module_kernel)(lockstep_module*, const char* name, lockstep_kernel**,
                                 lockstep_error*);
  lockstep_code (*module_global)(lockstep_module*, const char* name, void** address,
                                 uint64_t* bytes, lockstep_error*);
  /* Makes everything of the module resident, so that a capture meets no lazy loading. Null policy:
   * nothing to do. */
  lockstep_code (*module_load_all)(lockstep_module*, lockstep_error*);
  lockstep_code (*kernel_info)(lockstep_kernel*, lockstep_kernel_info*, lockstep_error*);
  lockstep_code (*kernel_set_max_dynamic_shared)(lockstep_kernel*, uint32_t bytes,
                                                 lockstep_error*); /* capture: legal */
  void* (*kernel_native)(lockstep_kernel*);

  lockstep_code (*stream_create)(lockstep_device*, const lockstep_stream_desc*, lockstep_stream**,
                                 lockstep_error*); /* capture: legal */
  /* The legacy or the calling thread's stream of the device; destroying the handle leaves it alone.
   */
  lockstep_code (*stream_special)(lockstep_device*, uint32_t which, lockstep_stream**,
                                  lockstep_error*);
  lockstep_code (*stream_from_native)(lockstep_device*, void* native, lockstep_stream**,
                                      lockstep_error*); /* borrowed */
  void (*stream_destroy)(lockstep_stream*); /* does not wait; enqueued work is still done */
  void* (*stream_native)(lockstep_stream*);
  uint64_t (*stream_identity)(lockstep_stream*);                          /* as recorded */
  lockstep_code (*stream_synchronize)(lockstep_stream*, lockstep_error*); /* capture: illegal */
  lockstep_code (*stream_query)(lockstep_stream*,
                                lockstep_error*); /* OK or NOT_READY; capture: illegal */

  lockstep_code (*event_create)(lockstep_device*, uint32_t flags, lockstep_event**,
                                lockstep_error*); /* capture: legal */
  lockstep_code (*event_from_native)(lockstep_device*, void* native, lockstep_event**,
                                     lockstep_error*);
  void (*event_destroy)(lockstep_event*);
  void* (*event_native)(lockstep_event*);
  lockstep_code (*event_record)(lockstep_event*, lockstep_stream*,
                                lockstep_error*); /* capture: marks a point in it */
  lockstep_code (*event_query)(lockstep_event*,
                               lockstep_error*); /* OK or NOT_READY; never recorded: OK */
  lockstep_code (*event_synchronize)(lockstep_event*, lockstep_error*); /* capture: illegal */
  lockstep_code (*event_elapsed)(lockstep_event* begin, lockstep_event* end, double* milliseconds,
                                 lockstep_error*);
  lockstep_code (*stream_wait_event)(lockstep_stream*, lockstep_event*,
                                     lockstep_error*); /* capture: joins or forks */

  lockstep_code (*launch)(lockstep_stream*, const lockstep_launch_desc*,
                          lockstep_error*); /* capture: a node */
  lockstep_code (*copy)(lockstep_stream*, const lockstep_copy_desc*,
                        lockstep_error*); /* capture: a node; empty: none */
  lockstep_code (*set)(lockstep_stream*, const lockstep_set_desc*,
                       lockstep_error*); /* capture: a node; empty: none */
  lockstep_code (*host_function)(lockstep_stream*, lockstep_host_function, void* user_data,
                                 lockstep_error*); /* capture: a node */

  lockstep_code (*capture_begin)(lockstep_stream*, uint32_t mode, lockstep_error*);
  /* Always leaves the capture, whatever it returns; *graph is null unless LOCKSTEP_OK. Every stream
   * is usable afterwards. */
  lockstep_code (*capture_end)(lockstep_stream*, lockstep_graph** graph, lockstep_error*);
  /* id is the same for all streams of one capture and never used again. Legal at all times. */
  lockstep_code (*capture_status)(lockstep_stream*, uint32_t* status, uint64_t* id,
                                  lockstep_error*);
  /* Exchanges the calling thread's mode; *mode holds the former one afterwards. */
  lockstep_code (*capture_thread_mode)(lockstep_device*, uint32_t* mode, lockstep_error*);

  lockstep_code (*graph_create)(lockstep_device*, lockstep_graph**, lockstep_error*);
  lockstep_code (*graph_clone)(lockstep_graph*, lockstep_graph**, lockstep_error*);
  void (*graph_destroy)(lockstep_graph*);
  void* (*graph_native)(lockstep_graph*);
  /* Adds a node that begins after `dependencies` (node ordinals) ended; *node is its ordinal. */
  lockstep_code (*graph_add_node)(lockstep_graph*, const lockstep_node_desc*,
                                  const uint32_t* dependencies, uint32_t dependency_count,
                                  uint32_t* node, lockstep_error*);
  lockstep_code (*graph_node_count)(lockstep_graph*, uint32_t*, lockstep_error*);
  lockstep_code (*graph_node)(lockstep_graph*, uint32_t node, lockstep_node_info*,
                              lockstep_error*); /* in creation order */
  /* Edges; call with capacity 0 to learn the count. Sorted by (from, to). */
  lockstep_code (*graph_edges)(lockstep_graph*, lockstep_graph_edge* edges, uint32_t capacity,
                               uint32_t* count, lockstep_error*);

  lockstep_code (*graph_instantiate)(lockstep_graph*, lockstep_graph_exec**,
                                     lockstep_error*); /* capture: illegal but relaxed */
  void (*graph_exec_destroy)(lockstep_graph_exec*);    /* launches in flight complete */
  void* (*graph_exec_native)(lockstep_graph_exec*);
  uint64_t (*graph_exec_identity)(lockstep_graph_exec*, uint32_t* version);
  /* Gives the executable the nodes' new parameters. *result tells why it could not (then the code
   * is OK, the executable is as before and no error is left behind). */
  lockstep_code (*graph_exec_update)(lockstep_graph_exec*, lockstep_graph*, uint32_t* result,
                                     lockstep_error*);
  lockstep_code (*graph_exec_set_enabled)(lockstep_graph_exec*, uint32_t node, uint32_t enabled,
                                          lockstep_error*);
  lockstep_code (*graph_exec_launch)(lockstep_graph_exec*, lockstep_stream*,
                                     lockstep_error*); /* capture: illegal */

  /* CUgraph, hipGraph_t; destroying the handle leaves the native graph alone. */
  lockstep_code (*graph_from_native)(lockstep_device*, void* native, lockstep_graph**,
                                     lockstep_error*);
} lockstep_backend;

/* The one exported symbol. Chooses an interface version from both ranges and returns the plugin's
 * table, or null with the error filled (INCOMPATIBLE_PLUGIN when the ranges do not meet). Must not
 * start the driver, make threads or print. May be called more than once; gives the same table. */
typedef const lockstep_backend* (*lockstep_backend_query_function)(const lockstep_host*,
                                                                   lockstep_error*);

#if defined(LOCKSTEP_BACKEND_IMPLEMENTATION)
__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_query(
    const lockstep_host* host, lockstep_error* error);
#endif

#ifdef __cplusplus
}
#endif
#endif /* LOCKSTEP_BACKEND_H_ */
