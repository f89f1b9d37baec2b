#!/usr/bin/env bash
# Goes into the folder that ci/gpu-bundle makes, as run.sh. Runs there what needs a GPU and prints
# what happened: each step, then one table of all of them.
#   run.sh [STAGE...]      default: all of  devices bench examples conformance hip facts exits sanitizer
# OUT names the folder for reports, traces and logs (default: out beside this file).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
mkdir -p "$out"
exec > >(tee "$out/log") 2>&1
bin=$here/bin
sim=$here/sim
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LOCKSTEP_CACHE_DIR=${LOCKSTEP_CACHE_DIR:-/tmp/lockstep-cache}
# A GPU that is not found is a failure here, never a skip.
export LOCKSTEP_REQUIRE_BACKENDS=cuda
summary=()
failed=0

# step NAME COMMAND...: runs it, says how it ended and how long it took.
step() {
  local name=$1 begin=$SECONDS code
  shift
  echo; echo "== $name"
  # Programs that hang may not take the rest along; functions of this file set their own limits.
  if [[ $(type -t "$1") == file ]]; then timeout 200 "$@"; else "$@"; fi
  code=$?
  summary+=("$(printf '%-6s %4d s  %s' "$([[ $code == 0 ]] && echo ok || echo "FAIL $code")" $((SECONDS - begin)) "$name")")
  ((code == 0)) || failed=$((failed + 1))
}
# bars NAME COMMAND...: a benchmark. A bar that is not met is told in its table and in ours, and fails
# nothing here: whose machine it is, and who else is on it, is not ours to say.
bars() {
  local name=$1 bars_code
  shift
  step "$name" measured "$@"
  ((bars_code == 0)) || summary[-1]+=": NOT ALL BARS MET"
}
measured() {
  if [[ $(type -t "$1") == file ]]; then timeout 200 "$@"; else "$@"; fi
  bars_code=$?
  ((bars_code <= 1))
}
# expect CODE TEXT COMMAND...: ends with that code and says that text (a regular expression).
expect() {
  local code=$1 text=$2 said got
  shift 2
  said=$(timeout 100 "$@" 2>&1)
  got=$?
  echo "[exit $got] $said"
  [[ $got == "$code" ]] && grep -qE -- "$text" <<<"$said" || { echo "  expected exit $code and: $text"; return 1; }
}
simulated() {
  LOCKSTEP_CUDA_LIBRARY=$sim/libcuda.so.1 LOCKSTEP_NVRTC_LIBRARY=$sim/libnvrtc.so.13 CUDA_SIM_DEVICES=${GPUS:-1} timeout 200 "$@"
}
# The folder of the first file that matches one of the patterns.
folder_of() {
  local pattern file
  for pattern in "$@"; do
    for file in $pattern; do [[ -e $file ]] && { dirname "$file"; return 0; }; done
  done
  return 1
}
GPUS=$("$bin/lockstep" devices 2>/dev/null | grep -cE '^(cuda|  ).* sm_')
((GPUS > 2)) && GPUS=2
nvrtc=$(folder_of /usr/local/cuda/lib64/libnvrtc.so.13 '/usr/local/cuda*/lib64/libnvrtc.so.13' '/usr/local/cuda*/lib/libnvrtc.so.13' \
  '/usr/local/cuda*/targets/*/lib/libnvrtc.so.13' '/usr/local/lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so.13' \
  '/usr/lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so.13' '/opt/*/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.13')

stage_devices() {
  echo "$(nproc) processors, $GPUS GPUs used, NVRTC in ${nvrtc:-(none found)}"
  step "devices" "$bin/lockstep" devices
}

stage_bench() {
  echo "clock source: $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>&1); huge pages: $(cat /sys/kernel/mm/transparent_hugepage/enabled 2>&1)"
  bars "recorder on empty functions" "$bin/recorder_bench" "$out/recorder_bench.json"
  bars "benchmark beside the driver and CUPTI, in five processes" bench_processes
}
# Where a process's pages come to lie moves what is measured by as much as the bars leave room for:
# one process differs from the next by more than its own confidence says. So several are asked, and
# the median of what they say is compared with the bar.
bench_processes() {
  local number parts=()
  for number in 1 2 3 4 5; do
    parts+=("$out/gpu_bench-$number.json")
    echo "-- process $number"
    timeout 100 "$bin/gpu_bench" "${parts[-1]}"
    (($? <= 1)) || return 5
  done
  python3 - "${parts[@]}" <<'P'
import json, statistics, sys
bars = {}
for path in sys.argv[1:]:
    for table in json.load(open(path))["tables"]:
        for bar in table["bars"]:
            bars.setdefault((bar["what"], bar["direction"], bar["limit"], bar["unit"]), []).append(bar["median"])
missed = 0
print("-- median of the processes (each)")
for (what, direction, limit, unit), values in bars.items():
    median = statistics.median(values)
    met = median <= limit if direction == "at most" else median >= limit
    missed += not met
    print(f"  {'met    ' if met else 'NOT MET'}  {what}: {median:.4g} {unit} ({', '.join(f'{value:.4g}' for value in values)}), bar {direction} {limit:g}")
sys.exit(1 if missed else 0)
P
}

stage_examples() {
  local device example run
  for device in cuda host sim; do
    run=(); [[ $device == sim ]] && run=(simulated)
    for example in digits streams attention reduce; do
      step "$example on $device" "${run[@]}" "$bin/lockstep-$example" --device "${device/sim/cuda}" --out "$out/$device"
    done
  done
  step "golden digits" "$bin/lockstep" diff --args "$here/golden/digits.jsonl.zst" "$out/cuda/digits-eager.jsonl"
  local trace pair words
  for trace in digits-eager digits-replay streams attention reduce; do
    for pair in "host cuda" "host sim" "sim cuda"; do
      for words in "" "--args"; do
        # shellcheck disable=SC2086
        step "diff $words $trace: $pair" "$bin/lockstep" diff $words "$out/${pair% *}/$trace.jsonl" "$out/${pair#* }/$trace.jsonl"
      done
    done
  done
  for trace in streams reduce; do step "values of $trace: host cuda" cmp "$out/host/$trace.txt" "$out/cuda/$trace.txt"; done
}

stage_conformance() {
  step "conformance on the GPU, in full" "$bin/lockstep-conformance" --backend cuda --full --waivers "$here/waivers/cuda.toml" --report "$out/conformance-cuda.json"
  step "conformance on the simulated driver" simulated "$bin/lockstep-conformance" --backend cuda --waivers "$here/waivers/cuda.toml" --report "$out/conformance-sim.json"
  step "both reports compared" "$bin/lockstep-conformance" compare "$out/conformance-cuda.json" "$out/conformance-sim.json"
  LOCKSTEP_HOST_DEVICES=2 step "conformance of host" "$bin/lockstep-conformance" --backend host --waivers "$here/waivers/host.toml" --report "$out/conformance-host.json"
}

# The hip plugin on this GPU: its runtime is ours and forwards to CUDA.
on_hip() {
  LOCKSTEP_HIP_LIBRARY=$here/hip_on_cuda/libamdhip64.so.7 LOCKSTEP_NVRTC_LIBRARY=${nvrtc:+$nvrtc/libnvrtc.so.13} timeout 600 "$@"
}
stage_hip() {
  if [[ ! -d $here/hip_on_cuda ]]; then
    echo "the bundle was made without the hip plugin: nothing to run"
    return
  fi
  step "devices of hip" on_hip "$bin/lockstep" devices --verbose
  local example trace other words
  for example in digits streams attention reduce; do
    step "$example on hip" on_hip "$bin/lockstep-$example" --device hip:0 --out "$out/hip"
    for other in host cuda; do  # where stage examples did not run
      [[ -e $out/$other/$example.jsonl || -e $out/$other/$example-eager.jsonl ]] ||
        step "$example on $other" "$bin/lockstep-$example" --device "$other" --out "$out/$other"
    done
  done
  for trace in digits-eager digits-replay streams attention reduce; do
    for other in host cuda; do
      for words in "" "--args"; do
        # shellcheck disable=SC2086
        step "diff $words $trace: $other hip" "$bin/lockstep" diff $words "$out/$other/$trace.jsonl" "$out/hip/$trace.jsonl"
      done
    done
  done
  for trace in streams reduce; do step "values of $trace: cuda hip" cmp "$out/cuda/$trace.txt" "$out/hip/$trace.txt"; done
  step "conformance of hip on the GPU, in full" on_hip "$bin/lockstep-conformance" --backend hip --full --waivers "$here/waivers/hip.toml" --report "$out/conformance-hip.json"
}

stage_facts() {
  local real=$LD_LIBRARY_PATH${nvrtc:+:$nvrtc}
  LOCKSTEP_CUDA_FACTS=$here/facts.txt LD_LIBRARY_PATH=$real step "every row of the facts" "$bin/cuda_facts_test" --gtest_brief=1
  echo; echo "== measured answers"
  LD_LIBRARY_PATH=$real step "measured answers" bash -c '"$1" | tee "$2"; exit ${PIPESTATUS[0]}' _ "$bin/cuda_measure" "$out/measured-gpu.md"
  LD_LIBRARY_PATH=$sim:$LD_LIBRARY_PATH CUDA_SIM_DEVICES=$GPUS timeout 200 "$bin/cuda_measure" >"$out/measured-sim.md" 2>&1
  echo "where the simulated driver answers otherwise (- GPU, + simulated):"
  diff <(grep '^|' "$out/measured-gpu.md") <(grep '^|' "$out/measured-sim.md") | sed -n 's/^< /  - /p; s/^> /  + /p'
  local plugin; plugin=$(find "$here/lib" -name 'liblockstep_backend_cuda.so')
  step "every slot, another context current" "$bin/cuda_slots" "$plugin"
  step "smoke test of the plugin's table" "$bin/cuda_smoke" "$plugin"
}

stage_exits() {
  export LOCKSTEP_ROBUST_DEVICE=cuda:0
  local end
  for end in return:0 exit:3 exit-in-thread:5 exit-while-others-launch:8 exit-in-capture:9 _exit:4 quick_exit:6 abort:134 throw:134 throw-in-thread:134; do
    step "live objects, end by ${end%:*}" expect "${end#*:}" '^done' "$bin/robust_program" end "${end%:*}"
  done
  step "fork before the first use" expect 0 'child: worked' "$bin/robust_program" fork before-use
  for end in after-use in-capture while-launching; do
    step "fork $end" expect 0 'child: error 4: .*fork' "$bin/robust_program" fork "$end"
  done
  unset LOCKSTEP_REQUIRE_BACKENDS
  LOCKSTEP_CUDA_LIBRARY=/nowhere/libcuda.so.1 step "no driver" expect 4 'libcuda was not found.*/nowhere' "$bin/lockstep-reduce" --device cuda:0
  LOCKSTEP_CUDA_LIBRARY=$here/stubs/stub_cuda_old.so step "driver too old" expect 4 '11\.4.*12\.0 or newer' "$bin/lockstep-reduce" --device cuda:0
  local stubs
  if stubs=$(folder_of '/usr/local/cuda*/lib64/stubs/libcuda.so' '/usr/local/cuda*/lib/stubs/libcuda.so' '/usr/local/cuda*/targets/*/lib/stubs/libcuda.so'); then
    LOCKSTEP_CUDA_LIBRARY=$stubs/libcuda.so step "the toolkit's stub" expect 4 'stub' "$bin/lockstep-reduce" --device cuda:0
  else
    echo "no stub libcuda.so of a toolkit here: ours instead"
    LOCKSTEP_CUDA_LIBRARY=$here/stubs/stub_cuda_toolkit.so step "a stub" expect 4 'stub' "$bin/lockstep-reduce" --device cuda:0
  fi
  CUDA_VISIBLE_DEVICES='' step "no device visible" expect 4 'CUDA_VISIBLE_DEVICES|no NVIDIA device' "$bin/lockstep-reduce" --device cuda:0
  # DEV-04: nothing of ours reads the list, whatever is in it.
  local mask
  for mask in 0 1,0 0,,1 1,1 99 -1 abc GPU-12345678 MIG-00000000-0000-0000-0000-000000000000; do
    CUDA_VISIBLE_DEVICES=$mask step "devices with CUDA_VISIBLE_DEVICES=$mask" expect 0 '^cuda +(ready|no device)' "$bin/lockstep" devices
  done
  export LOCKSTEP_REQUIRE_BACKENDS=cuda
}

# sanitize TOOL SHARDS SECONDS COMMAND...: the suite in parts, as many at a time as there are
# processors; one line a part that is not clean, one line for all of them.
sanitize() {
  local tool=$1 shards=$2 limit=$3 logs=$out/sanitizer/$1
  shift 3
  mkdir -p "$logs"
  # shellcheck disable=SC2016
  seq "$shards" | xargs -P "$(nproc)" -I{} bash -c '
    log=$1/{}.log; limit=$2; shift 2
    once() { timeout "$limit" "${@:2}" >"$1" 2>&1; echo "[exit $?]" >>"$1"; ! grep -q "Internal Sanitizer Error" "$1"; }
    # Now and then the tool loses track of a launch: that part is run again.
    for round in 1 2; do
      once "$log" "${@//SHARD/{}}" && exit
      echo "  part {}, round $round: $(grep -m1 -o "Internal Sanitizer Error.*" "$log")"
    done
    # Where it stays so, each case of the part alone: one with which the tool fails even then is
    # named, the others are judged.
    [[ ${*: -2:1} == --shard ]] || exit 0
    sed -n "s/^passed  \([^ ]*\) .*/\1/p" "$log" | sort -u >"$log.cases"
    while IFS= read -r name; do
      for round in 1 2; do once "$log.alone" "${@:1:$#-2}" --filter "$name" && break; done
      if grep -q "Internal Sanitizer Error" "$log.alone"; then echo "$name" >>"$log.lost"; else cat "$log.alone" >>"$log.judged"; fi
    done <"$log.cases"
    # Clean when each judged one is.
    if [[ -e $log.judged ]] && ! grep "^\[exit" "$log.judged" | grep -qv "exit 0"; then mv "$log.judged" "$log"; fi
    ' _ "$logs" "$limit" "$@"
  local clean=0 shard log errors
  for ((shard = 1; shard <= shards; shard++)); do
    log=$logs/$shard.log
    errors=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY' "$log" | sed 's/^=* *//' | paste -sd ';')
    if grep -q '^\[exit 0\]' "$log" && [[ -n $errors ]]; then
      clean=$((clean + 1))
    else
      echo "  part $shard: ${errors:-no summary} $(tail -1 "$log"); $(grep -E 'failed|given up|ERROR|Invalid|Leaked|hazard' "$log" | head -3 | paste -sd '|' | cut -c1-400)"
    fi
  done
  echo "$tool: $clean of $shards parts clean; $(cat "$logs"/*.log | grep -hE '^conformance of' | awk '{for (i = 1; i <= NF; i++) if ($i == "runs,") r += $(i - 1); else if ($i == "passed,") p += $(i - 1)} END {print r + 0, "runs,", p + 0, "passed"}')"
  cat "$logs"/*.log | grep -hoE 'ERROR SUMMARY: [0-9]+ errors?|RACECHECK SUMMARY: [^(]*|LEAK SUMMARY: [0-9]+ bytes leaked in [0-9]+ allocations' | sort | uniq -c
  local lost
  lost=$(cat "$logs"/*.lost 2>/dev/null | sort -u | paste -sd ' ')
  if [[ -n $lost ]]; then echo "$tool: NOT CHECKED, since the tool loses track of their launches even alone: $lost"; fi
  # One or two such are the tool's; more would mean that nothing is checked any more.
  ((clean == shards && $(wc -w <<<"$lost") <= 2))
}

stage_sanitizer() {
  local tool
  tool=$(command -v compute-sanitizer) || tool=$(folder_of '/usr/local/cuda*/bin/compute-sanitizer' '/usr/local/cuda*/compute-sanitizer/compute-sanitizer' '/usr/local/cuda*/extras/compute-sanitizer/compute-sanitizer' '/opt/*/compute-sanitizer/compute-sanitizer')/compute-sanitizer
  if [[ ! -x $tool ]]; then
    echo "compute-sanitizer was not found"
    summary+=("FAIL           sanitizer: compute-sanitizer was not found")
    failed=$((failed + 1))
    return
  fi
  "$tool" --version | tail -1
  # Cases make calls that have to fail: what a call answers is the suite's to judge.
  local common=(--report-api-errors no --error-exitcode 9 --print-limit 20)
  local left_out=stream.runs_beside_a_waiting_stream
  echo "left out: $left_out: the tool runs one kernel at a time, behind the host function that waits for the kernel"
  step "memcheck with leak check" sanitize memcheck "${SHARDS:-64}" "${LIMIT:-150}" "$tool" --tool memcheck --leak-check full "${common[@]}" "$bin/cuda_leaks" SHARD/"${SHARDS:-64}" "$left_out"
  step "racecheck" sanitize racecheck "${SHARDS:-64}" "${LIMIT:-150}" "$tool" --tool racecheck "${common[@]}" "$bin/lockstep-conformance" --backend cuda --verbose --exclude "$left_out" --shard SHARD/"${SHARDS:-64}"
}

stages=("$@")
((${#stages[@]} > 0)) || stages=(devices bench examples conformance hip facts exits sanitizer)
for stage in "${stages[@]}"; do
  declare -F "stage_$stage" >/dev/null || { echo "no stage $stage" >&2; exit 2; }
  "stage_$stage"
done
echo
printf '%s\n' "${summary[@]}"
echo
echo "gpu-bundle: ${#summary[@]} steps, $failed failed, $SECONDS s"
exit $((failed > 0))
