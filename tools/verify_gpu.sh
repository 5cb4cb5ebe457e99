#!/usr/bin/env bash
# Everything that only a GPU can show, one line for each, each under a time limit of its own. tools/stage puts this script
# beside the staged programs.
#   verify_gpu.sh [PART...]     of: tests abuse sanitize right soak rows serve grain (default: all, in this order)
# tests      the GPU tests
# abuse      a program that is stopped for 40 s, and one in drain mode that a debugger stops and looks at
# sanitize   memcheck, synccheck and racecheck of a small mixed workload; and that racecheck finds mistakes; the first two of
#            the tuned decode with small models
# right      logits of the tuned decode against the portable tasks: texts at once, long contexts, sizes
# soak       200,000 tokens of Llama-3.2-1B, every repeat with the same logits
# rows       the measurements of README's tables; nothing else may run on the GPU meanwhile
# serve      latency against offered load, of the runtime and its peers; nor here
# grain      the patterns of Task Bench, likewise
# FLYWHEEL_LOGS names the folder for logs and results (default: logs beside the script). Status 1 when something failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
./unpack || exit 1
export FLYWHEEL_BUILD_DIR=$PWD FLYWHEEL_LOGS=${FLYWHEEL_LOGS:-$PWD/logs}
mkdir -p "$FLYWHEEL_LOGS"
llama=apps/llama/llama bad=0

# try NAME SECONDS COMMAND...
try() {
  local name=$1 seconds=$2 begun=$SECONDS word=pass
  shift 2
  timeout --kill-after=5 "$seconds" "$@" >"$FLYWHEEL_LOGS/$name.log" 2>&1 </dev/null || word="FAIL($?)"
  [[ "$word" == pass ]] || bad=$((bad + 1))
  printf '%-28s %-9s %4d s  %s\n' "$name" "$word" $((SECONDS - begun)) \
    "$(grep -v '^\s*$' "$FLYWHEEL_LOGS/$name.log" | tail -n 1 | cut -c 1-110)"
}

tests() { ./run_gpu_tests.sh || bad=$((bad + 1)); }

# The debugger must see the kernel in one of its visits, and the program must end well after them.
debugged() {
  FLYWHEEL_MODE=drain "$llama" soak --device gpu --shape llama-3.2-1b --tokens 50000 --length 2000 &
  local program=$! seen=
  sleep 10
  for visit in 1 2 3 4; do
    sleep 1
    seen+=$(timeout 60 cuda-gdb -batch -p $program -ex 'info cuda kernels' -ex detach 2>&1)
  done
  echo "$seen"
  wait $program && grep -q flywheel_kernel <<<"$seen"
}
abuse() {
  export -f debugged
  export llama
  try abuse_stopped 180 env FLYWHEEL_STOP_SECONDS=40 tests/test_device_neighbours 'a process that is stopped for long*'
  try abuse_debugger 150 bash -c debugged
}

sanitize() {
  local decode="tuned on the GPU: both families write*,tuned on the GPU: a seed names a text in a runtime*"
  for tool in memcheck synccheck; do
    try "sanitize_$tool" 150 compute-sanitizer --tool "$tool" --error-exitcode 9 tests/test_device_sanitize
    try "sanitize_decode_$tool" 200 compute-sanitizer --tool "$tool" --error-exitcode 9 tests/test_apps_llama_tuned_gpu "$decode"
  done
  try sanitize_racecheck 240 compute-sanitizer --tool racecheck --error-exitcode 9 tests/test_device_racecheck
  for mistake in scratch page handoff; do
    try "sanitize_finds_$mistake" 60 bash -c \
      'compute-sanitizer --tool racecheck --error-exitcode 9 tests/test_device_racecheck "planted: $1"; (($? == 9))' _ "$mistake"
  done
}

# portable NAME SECONDS SHAPE OPTIONS...
portable() {
  local name=$1 seconds=$2 shape=$3
  shift 3
  try "right_$name" "$seconds" "$llama" bench --device gpu --shape "$shape" --runs 0 "$@"
}
right() {
  portable 1b 60 llama-3.2-1b --portable-check 32 --portable-context 1024 8192
  for texts in 2 4 8; do portable "1b_b$texts" 60 llama-3.2-1b --batch "$texts" --portable-check 8; done
  # Again and again: a fence that was missing showed in one run of six.
  for run in {1..12}; do portable "1b_b8_again_$run" 60 llama-3.2-1b --batch 8 --portable-check 8; done
  portable 8b 90 llama-3.1-8b --portable-check 4 --portable-context 1024
  portable 8b_b4 120 llama-3.1-8b --batch 4 --portable-check 2
  portable qwen 60 qwen3-0.6b --portable-check 8 --portable-context 1024 8192
  portable 1b_cp_async 60 llama-3.2-1b --no-bulk --portable-check 8 --portable-context 1024
}

soak() { try soak 240 "$llama" soak --device gpu --shape llama-3.2-1b --tokens 200000; }

# row NAME SECONDS OPTIONS...
row() {
  local name=$1 seconds=$2
  shift 2
  try "rows_$name" "$seconds" "$llama" bench --device gpu --out "$FLYWHEEL_LOGS/decode.json" "$@"
  grep -E '^(decode|  [.]|  limit)' "$FLYWHEEL_LOGS/rows_$name.log"
}
rows() {
  # One at a time, as who starts there would: what has room for more is split into more parts.
  for context in 128 1024 8192; do row "1b_c$context" 90 --shape llama-3.2-1b --context "$context"; done
  row 1b_b4 90 --shape llama-3.2-1b --batch 4 --context 128
  row 1b_b8 90 --shape llama-3.2-1b --batch 8 --context 128
  row 8b 200 --shape llama-3.1-8b --context 128
  try rows_runtime 200 apps/bench/bench --out "$FLYWHEEL_LOGS"
}

# In a folder of its own: the files of both are named by the GPU.
serve() {
  try serve 500 apps/serve_bench/serve_bench --seconds 1 --out "$FLYWHEEL_LOGS/serve"
  grep -E '^(serve|task|batch|graph|workload)' "$FLYWHEEL_LOGS/serve.log"
}

grain() {
  try grain 580 apps/taskbench/taskbench --rounds 3 --out "$FLYWHEEL_LOGS/taskbench"
  grep -E '^grain[.].*(step|metg) ' "$FLYWHEEL_LOGS/grain.log"
}

for part in "${@:-tests abuse sanitize right soak rows serve grain}"; do
  for one in $part; do
    case $one in
      tests | abuse | sanitize | right | soak | rows | serve | grain) "$one" ;;
      *) echo "verify_gpu: there is no part '$one'; there are tests, abuse, sanitize, right, soak, rows, serve and grain" >&2 && exit 1 ;;
    esac
  done
done
if ((bad)); then echo "verify_gpu: $bad FAILED, logs in $FLYWHEEL_LOGS"; else echo "verify_gpu: ok, logs in $FLYWHEEL_LOGS"; fi
((bad == 0))
